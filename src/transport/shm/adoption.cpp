// Adopting memory: which pages, and the exchange of private pages for shared ones with the same content.
#include "transport/shm/adoption.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "transport/shm/other_threads.h"
#include "transport/shm/vm_areas.h"

namespace osc::shm {
namespace {

// One exchange: it bounds the memory that exists twice, and it is the size of a huge page.
constexpr std::size_t kChunk = std::size_t{2} << 20;
constexpr std::size_t kSmallestPage = 4096;
// Areas that an exchange may add, and that the rest of the process may need soon.
constexpr long kSpareAreas = 1024;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

std::uintptr_t page() {
    static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return kPage;
}

std::uintptr_t down(std::uintptr_t address) {
    return address / page() * page();
}

std::uintptr_t up(std::uintptr_t address) {
    return down(address + page() - 1);
}

struct Range {
    std::uintptr_t first;
    std::uintptr_t end;
};

// The pages on which nothing but the range lies. malloc() gives a large piece pages of its own, with a header of two
// words before the first byte: then the pages with the header and with the rounding belong to the range too.
__attribute__((no_sanitize("address"))) Range whole_pages(std::uintptr_t first, std::size_t bytes) {
    Range pages{up(first), down(first + bytes)};
#ifdef __GLIBC__
    constexpr std::uintptr_t kHeader = 2 * sizeof(std::size_t);
    constexpr std::size_t kFlags = 7, kOwnMapping = 2;
    if (bytes < page() || first % page() != kHeader) return pages;
    const auto* const header = reinterpret_cast<const std::size_t*>(first - kHeader);
    const std::size_t size = header[1] & ~kFlags;
    const std::uintptr_t chunk = first - kHeader;
    const bool own = header[0] == 0 && (header[1] & kFlags) == kOwnMapping && size % page() == 0;
    if (!own || chunk + size < first + bytes) return pages;
    pages.first = chunk;
    if (chunk + size == up(first + bytes)) pages.end = chunk + size;
#endif
    return pages;
}

// A number of /proc/self/status, in KiB; 0 if there is none.
long status_kib(const char* name) {
    std::FILE* const file = std::fopen("/proc/self/status", "re");
    if (file == nullptr) return 0;
    char line[256];
    long found = 0;
    const std::size_t length = std::strlen(name);
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::strncmp(line, name, length) == 0 && line[length] == ':') found = std::atol(line + length + 1);
    std::fclose(file);
    return found;
}

long most_areas() {
    std::FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "re");
    if (file == nullptr) return 65530;
    long most = 0;
    const bool read = std::fscanf(file, "%ld", &most) == 1;
    std::fclose(file);
    return read ? most : 65530;
}

// Memory that only this process sees. Private pages of a file are such memory too: data of the program.
bool is_adoptable(const VmArea& area) {
    const auto here = reinterpret_cast<std::uintptr_t>(&area);  // on the caller's stack
    return !area.shared && area.readable && area.writable && !area.executable && !area.special &&
           (here < area.first || here >= area.end);
}

// The pages of [first, end) that have content of their own: bit i for page i. Pages that were never touched read as
// zero in both files, and need no copy.
class Present {
  public:
    Present(std::uintptr_t first, std::uintptr_t end, bool sparse) : count_((end - first) / page()) {
        entries_.fill(~std::uint64_t{0});
        if (!sparse) return;
        const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        const std::size_t wanted = count_ * sizeof(std::uint64_t);
        if (::pread(fd, entries_.data(), wanted, static_cast<off_t>(first / page() * sizeof(std::uint64_t))) !=
            static_cast<ssize_t>(wanted))
            entries_.fill(~std::uint64_t{0});
        ::close(fd);
    }
    bool all() const { return run_end(0, true) == count_; }
    /// Calls f(first page, end page) for each run; false as soon as f returns false.
    template <class F>
    bool each_run(F&& f) const {
        for (std::size_t at = run_end(0, false); at < count_;) {
            const std::size_t stop = run_end(at, true);
            if (!f(at, stop)) return false;
            at = run_end(stop, false);
        }
        return true;
    }

  private:
    static constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;
    std::size_t run_end(std::size_t at, bool present) const {
        while (at < count_ && ((entries_[at] & kPresentOrSwapped) != 0) == present)
            ++at;
        return at;
    }
    std::size_t count_;
    std::array<std::uint64_t, kChunk / kSmallestPage> entries_;
};

bool write_all(int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
    const auto* at = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        const ssize_t done = ::pwrite(fd, at, bytes, static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        offset += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

}  // namespace

Adoption& Adoption::mine() {
    static auto* const made = [] {
        auto* const adoption = new Adoption(Arena::mine());
        ::pthread_atfork([] { mine().before_fork(); }, [] { mine().after_fork_in_parent(); },
                         [] { mine().after_fork_in_child(); });
        return adoption;
    }();
    return *made;
}

bool Adoption::is_own(const VmArea& area) const {
    return area.shared && area.inode != 0 && area.inode == inode_ && area.device == device_ &&
           area.offset >= kAdoptedOffset;
}

bool Adoption::open_file(std::size_t bytes) {
    const int fd = arena_.adoption_file(bytes);
    struct stat file = {};
    if (fd < 0 || ::fstat(fd, &file) != 0) return false;
    fd_ = fd;
    device_ = file.st_dev;
    inode_ = file.st_ino;
    return true;
}

// The longest part of the range that lies in the arena's file, and what else lies there.
Adoption::Survey Adoption::survey(std::uintptr_t first, std::uintptr_t end) const {
    Survey found;
    SharedPart part;
    VmAreas areas;
    VmArea area;
    while (areas.next(area)) {
        ++found.areas;
        if (area.end <= first || area.first >= end) continue;
        const std::uintptr_t from = std::max(area.first, first);
        const std::uintptr_t to = std::min(area.end, end);
        if (!is_own(area)) {
            if (is_adoptable(area)) found.adoptable.push_back({from, to, area.inode == 0});
            continue;
        }
        const std::uint64_t offset = area.offset + (from - area.first);
        if (part.end == from && part.offset + part.bytes() == offset)
            part.end = to;
        else
            part = {from, to, offset};
        if (part.bytes() > found.longest.bytes()) found.longest = part;
    }
    return found;
}

const char* Adoption::refusal(const Survey& found, std::size_t bytes, const Limits& limits) {
    if (bytes < limits.least) return "it has too few whole pages";
    if (found.adoptable.empty()) return "it is not private memory that can be read and written";
    if (limits.alone && has_other_threads()) return "another thread of the program runs";
    if (status_kib("VmLck") > 0) return "the process has locked memory";
    if (limits.alone && status_kib("VmPin") > 0) return "the process has registered memory with a device";
    if (found.areas + kSpareAreas > most_areas()) return "the process is near vm.max_map_count";
    if (limits.in_use && std::any_of(found.adoptable.begin(), found.adoptable.end(),
                                     [&](const Piece& piece) { return limits.in_use(piece.first, piece.end); }))
        return "another window exposes it already";
    if (!open_file(bytes)) return errno == EFBIG ? "RLIMIT_FSIZE forbids it" : "memory is short";
    return nullptr;
}

SharedPart Adoption::adopt(const void* base, std::size_t bytes, const Limits& limits, std::string& why) {
    why.clear();
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const Range pages = whole_pages(begin, bytes);
    if (pages.first >= pages.end || pages.end > kAddresses) return {};
    const Inside inside(*this);
    Survey found;
    const auto clipped = [&] {
        SharedPart part = found.longest;
        if (!part) return part;
        const std::uintptr_t first = std::max(part.first, begin);
        part.offset += first - part.first;
        part.first = first;
        part.end = std::min(part.end, begin + bytes);
        return part;
    };
    if (VmArea area; fd_ >= 0 && area_at(pages.first, area) && is_own(area) && area.end >= pages.end) {
        found.longest = {pages.first, pages.end, area.offset + (pages.first - area.first)};
        return clipped();
    }
    found = survey(pages.first, pages.end);
    if (found.longest.bytes() == pages.end - pages.first) return clipped();
    if (const char* const reason = refusal(found, pages.end - pages.first, limits); reason != nullptr) {
        why = reason;
        return clipped();
    }
    if (!intervals_.empty()) sweep_locked();
    for (const Piece& piece : found.adoptable) {
        if (overlaps(piece.first, piece.end)) {
            why = "mremap has moved memory that was adopted here";
            continue;
        }
        if (!copy_in(piece, why)) break;
    }
    found = survey(pages.first, pages.end);
    return clipped();
}

bool Adoption::copy_in(const Piece& piece, std::string& why) {
    const Handlers handlers;
    if (!handlers.wait()) {
        why = "a thread of the host MPI, which may run the program's signal handlers, did not stop";
        return false;
    }
    for (std::uintptr_t first = piece.first; first < piece.end;) {
        const std::uintptr_t end = std::min(piece.end, (first / kChunk + 1) * kChunk);
        if (!swap_chunk({first, end, piece.sparse})) {
            why = std::string("the system refused: ") + std::strerror(errno);
            return false;
        }
        add(first, end);
        first = end;
    }
    return true;
}

// Copies the pages into the file, then puts the file's pages in their place. The old pages are free after that.
bool Adoption::swap_chunk(const Piece& chunk) {
    const std::size_t bytes = chunk.end - chunk.first;
    const std::uint64_t offset = kAdoptedOffset + chunk.first;
    auto* const address = reinterpret_cast<std::byte*>(chunk.first);
    const Present present(chunk.first, chunk.end, chunk.sparse);
    const bool whole = present.all();
    bool good =
        !arena_.allocates_early() || ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
    good = good && present.each_run([&](std::size_t from, std::size_t to) {
        return write_all(fd_, address + from * page(), (to - from) * page(), offset + from * page());
    });
    good = good && ::mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | (whole ? MAP_POPULATE : 0),
                          fd_, static_cast<off_t>(offset)) != MAP_FAILED;
    if (!good) {
        const int error = errno;
        drop_pages(offset, bytes);
        errno = error;
        return false;
    }
    // Where shared memory may have huge pages only on demand. An error means that it may not.
    ::madvise(address, bytes, MADV_HUGEPAGE);
    if (!whole)
        present.each_run([&](std::size_t from, std::size_t to) {
            ::madvise(address + from * page(), (to - from) * page(), kPopulateWrite);
            return true;
        });
    return true;
}

}  // namespace osc::shm
