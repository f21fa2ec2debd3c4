// Adopting memory: which pages may become shared, which slot of offsets they get, and their exchange for pages of the
// arena's file with the same content. One file, because each step relies on what the ones before it have checked.
// Build: osc_adopt_core
#include "plugins/adopt/adoption.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/pages.h"
#include "base/system_file.h"
#include "shm/other_threads.h"
#include "shm/vm_areas.h"

namespace osc::shm {
namespace {

// Areas that an exchange may add, and that the rest of the process may need soon.
constexpr unsigned long kSpareAreas = 1024;
constexpr unsigned long kMostAreas = 65530;  // the system's default
constexpr const char* kRefused = "the system refused";
constexpr const char* kTooSmall = "it has too few whole pages";
constexpr const char* kStatus = "/proc/thread-self/status";
constexpr const char* kUnreadable = "/proc/thread-self/maps cannot be read";

// The pages on which nothing but the range lies. malloc() gives a large piece pages of its own, with a header of two
// words before the first byte: then the pages with the header and with the rounding belong to the range too. The size
// in the header reaches to the end of the pages, or, since glibc 2.43, to two words before it.
__attribute__((no_sanitize("address"))) Place whole_pages(std::uintptr_t first, std::size_t bytes) {
    Place pages{base::page_up(first), base::page_down(first + bytes)};
#ifdef __GLIBC__
    constexpr std::uintptr_t kHeader = 2 * sizeof(std::size_t);
    constexpr std::size_t kFlags = 7, kOwnMapping = 2;
    if (bytes < base::page_bytes() || first % base::page_bytes() != kHeader) return pages;
    const auto* const header = reinterpret_cast<const std::size_t*>(first - kHeader);
    const std::size_t size = header[1] & ~kFlags;
    const std::uintptr_t chunk = first - kHeader;
    const std::uintptr_t end = base::page_up(chunk + size);
    const std::size_t rest = end - (chunk + size);
    const bool own = header[0] == 0 && (header[1] & kFlags) == kOwnMapping && (rest == 0 || rest == kHeader);
    if (!own || chunk + size < first + bytes) return pages;
    pages.first = chunk;
    if (end == base::page_up(first + bytes)) pages.end = end;
#endif
    return pages;
}

// Whether the program or a library of it has the address in its file: static data, as far as it was initialised.
bool is_static(std::uintptr_t address) {
    Dl_info info{};
    return ::dladdr(reinterpret_cast<const void*>(address), &info) != 0;
}

// Memory that only this process sees. Private pages of a file are such memory too: data of the program.
bool is_adoptable(const VmArea& area) {
    const auto here = reinterpret_cast<std::uintptr_t>(&area);  // on the caller's stack
    return !area.shared && area.readable && area.writable && !area.executable && !area.special &&
           (here < area.first || here >= area.end);
}

struct Flag {
    const char* name;  // as smaps writes it
    const char* meaning;
};

// What a mapping of the arena's file could not keep, or may not have.
constexpr Flag kFlags[] = {{"lo", "it is locked"},
                           {"ht", "it has reserved huge pages"},
                           {"io", "it is a device's"},
                           {"pf", "it is a device's"},
                           {"wf", "the program gave it MADV_WIPEONFORK"},
                           {"dc", "the program gave it MADV_DONTFORK"},
                           {"dd", "the program gave it MADV_DONTDUMP"},
                           {"um", "a userfaultfd watches it"},
                           {"uw", "a userfaultfd watches it"},
                           {"ui", "a userfaultfd watches it"}};

const char* meaning_of(const char* flags) {
    for (const Flag& flag : kFlags) {
        const char padded[] = {' ', flag.name[0], flag.name[1], ' ', '\0'};
        if (std::strstr(flags, padded) != nullptr) return flag.meaning;
    }
    return nullptr;
}

// Areas with different policies are different areas.
bool has_policy(std::uintptr_t address) {
    constexpr unsigned long kOfAddress = 2;  // MPOL_F_ADDR
    int policy = 0;
    return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, address, kOfAddress) == 0 && policy != 0;
}

// Why memory in [first, end) cannot become a mapping of a file without a loss of what the program or a driver has asked
// for it: locks, huge pages, advice about fork and core dumps, a NUMA policy, a userfaultfd. Null if there is no
// reason, or no list. /proc/thread-self/smaps has for each area a line as in maps, and lines "VmFlags: rd wr mr ..."
// and "AnonHugePages: 2048 kB"; `huge` becomes true if an area has such. The kernel visits all pages of the process up
// to `end` for it.
const char* special_treatment(std::uintptr_t first, std::uintptr_t end, bool& huge) {
    std::FILE* const file = std::fopen("/proc/thread-self/smaps", "re");
    if (file == nullptr) return nullptr;
    char line[512];
    const char* found = nullptr;
    bool begins = true;  // a line, which may be longer than the buffer
    bool within = false;
    while (found == nullptr && std::fgets(line, sizeof line, file) != nullptr) {
        const bool is_start = begins;
        char* const stop = std::strchr(line, '\n');
        begins = stop != nullptr;
        if (!is_start) continue;
        unsigned long from = 0, to = 0, kilobytes = 0;
        if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            if (from >= end) break;
            within = to > first;
            if (within && has_policy(from > first ? from : first)) found = "the program gave it a NUMA policy";
        } else if (within && std::sscanf(line, "AnonHugePages: %lu", &kilobytes) == 1) {
            huge = huge || kilobytes > 0;
        } else if (within && std::strncmp(line, "VmFlags:", 8) == 0) {
            if (stop != nullptr) *stop = ' ';
            found = meaning_of(line);
        }
    }
    std::fclose(file);
    return found;
}

// One exchange: it bounds the memory that exists twice, and it is the size of a huge page.
constexpr std::size_t kChunk = std::size_t{2} << 20;
constexpr std::size_t kSmallestPage = 4096;
// Which older headers lack.
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ
constexpr int kCollapse = 25;      // MADV_COLLAPSE

// Reads few bytes of most pages that have any content, the heap's headers among them.
__attribute__((no_sanitize("address", "thread"))) bool reads_as_zero(std::uintptr_t page) {
    using Word = std::uint64_t __attribute__((may_alias));
    const auto* const words = reinterpret_cast<const Word*>(page);
    for (std::size_t i = 0; i < base::page_bytes() / sizeof(Word); i += 4)
        if ((words[i] | words[i + 1] | words[i + 2] | words[i + 3]) != 0) return false;
    return true;
}

// The pages of [first, end) that have content of their own: bit i for page i. Anonymous pages that were never touched,
// or read as zero all the same, need no copy: holes of the file do so too.
class Present {
  public:
    Present(std::uintptr_t first, std::uintptr_t end, bool sparse) : count_((end - first) / base::page_bytes()) {
        entries_.fill(~std::uint64_t{0});
        if (!sparse) return;
        const int fd = ::open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        const std::size_t wanted = count_ * sizeof(std::uint64_t);
        if (::pread(fd, entries_.data(), wanted,
                    static_cast<off_t>(first / base::page_bytes() * sizeof(std::uint64_t))) !=
            static_cast<ssize_t>(wanted))
            entries_.fill(~std::uint64_t{0});
        ::close(fd);
        for (std::size_t i = 0; i < count_; ++i)
            if ((entries_[i] & kPresentOrSwapped) != 0 && reads_as_zero(first + i * base::page_bytes()))
                entries_[i] = 0;
    }
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
    // Not on the heap, which may be adopted, and which fork() copies while this object is in use.
    alignas(Adoption) static std::byte place[sizeof(Adoption)];
    static auto* const made = new (place) Adoption(Arena::mine());
    return *made;
}

bool Adoption::is_own(const VmArea& area) const {
    return area.shared && area.inode != 0 && area.inode == inode_ && area.device == device_ &&
           area.offset >= kAdoptedOffset;
}

bool Adoption::owned() const {
    const volatile char* const mark = owner_.load(std::memory_order_acquire);
    return mark != nullptr && *mark != 0;
}

// The mark is cleared in any child that gets a copy of this process's memory, whatever call makes it.
Adoption::Refusal Adoption::open_file(int fd) {
    if (owner_.load() != nullptr && !owned()) return {"a child of fork shares its parent's arena"};
    if (fd_ >= 0) return {};
    struct stat file = {};
    if (::fstat(fd, &file) != 0) return {kRefused, errno};
    const long mark =
        ::syscall(SYS_mmap, nullptr, base::page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    if (mark == -1) return {kRefused, errno};
    if (::syscall(SYS_madvise, mark, base::page_bytes(), MADV_WIPEONFORK) != 0) {
        const int error = errno;
        ::syscall(SYS_munmap, mark, base::page_bytes());
        return {kRefused, error};
    }
    fd_ = fd;
    device_ = file.st_dev;
    inode_ = file.st_ino;
    auto* const owner = reinterpret_cast<volatile char*>(mark);
    *owner = 1;
    owner_.store(owner, std::memory_order_release);
    return {};
}

// The longest part of the range that lies in the arena's file, and what may come to lie there: whole pages of the
// range.
void Adoption::survey(const Place& pages, const Place& touched, Survey& found) const {
    found.longest = {};
    found.adoptable.clear();
    found.areas = 0;
    bool stored = true;
    SharedPart part;
    VmAreas areas;
    VmArea area;
    while (areas.next(area)) {
        ++found.areas;
        const bool own = is_own(area);
        const Place& range = own ? touched : pages;
        const std::uintptr_t from = std::max(area.first, range.first);
        const std::uintptr_t to = std::min(area.end, range.end);
        if (from >= to) continue;
        if (!own) {
            if (is_adoptable(area)) stored = found.adoptable.push({from, to, area.inode == 0}) && stored;
            continue;
        }
        const std::uint64_t offset = area.offset + (from - area.first);
        if (part.end == from && part.offset + part.bytes() == offset)
            part.end = to;
        else
            part = {from, to, offset};
        if (part.bytes() > found.longest.bytes()) found.longest = part;
    }
    found.complete = areas.complete() && stored;
}

// Whether one area of the arena's file contains the range.
bool Adoption::is_whole(std::uintptr_t first, std::uintptr_t end, SharedPart& part) const {
    VmArea area;
    if (fd_ < 0 || !area_at(first, area) || !is_own(area) || area.end < end) return false;
    part = {first, end, area.offset + (first - area.first)};
    return true;
}

const char* Adoption::refusal(const Survey& found, const Place& pages, const Limits& limits, bool& huge) {
    if (!found.complete) return kUnreadable;
    if (pages.end - pages.first < limits.least) return kTooSmall;
    if (found.adoptable.empty()) return "it is not private memory that can be read and written";
    if (limits.forbids)
        if (const char* const reason = limits.forbids(); reason != nullptr) return reason;
    if (limits.alone && has_other_threads()) return "another thread of the program runs";
    if (base::number_of(kStatus, "VmLck:", 0) > 0) return "the process has locked memory";
    if (limits.alone && base::number_of(kStatus, "VmPin:", 0) > 0)
        return "the process has registered memory with a device";
    if (found.areas + kSpareAreas > base::number_of("/proc/sys/vm/max_map_count", "", kMostAreas))
        return "the process is near vm.max_map_count";
    if (limits.in_use && std::any_of(found.adoptable.begin(), found.adoptable.end(),
                                     [&](const Piece& piece) { return limits.in_use(piece.first, piece.end); }))
        return "another window exposes it already";
    // The pages of other files would take memory that the system cannot get back by forgetting them.
    if (limits.alone && std::any_of(found.adoptable.begin(), found.adoptable.end(),
                                    [](const Piece& piece) { return !piece.sparse && !is_static(piece.first); }))
        return "it is a mapping of a file";
    if (limits.pays && !limits.pays(pages.first, pages.end))
        return "auto copies large memory only for a further window over it";
    // Last: the kernel visits all pages of the process for it.
    for (const Piece& piece : found.adoptable)
        if (const char* const reason = special_treatment(piece.first, piece.end, huge); reason != nullptr)
            return reason;
    return nullptr;
}

SharedPart Adoption::adopt(const void* base, std::size_t bytes, const Limits& limits, std::string& why) {
    why.clear();
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const Place touched{base::page_down(begin), base::page_up(begin + bytes)};
    const Place pages = limits.edges ? touched : whole_pages(begin, bytes);
    if (touched.end > kAddresses) return {};
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
    bool too_small = false;
    {
        const Inside inside(*this);
        if (!is_whole(touched.first, touched.end, found.longest)) {
            if (pages.first >= pages.end) return {};
            // Part of the range may be shared already, which only the list of areas tells.
            too_small = pages.end - pages.first < limits.least && !limits.edges && !meets(base, bytes);
            if (!too_small) survey(pages, touched, found);
        }
    }
    if (too_small) {
        why = kTooSmall;  // allocates, so not under the mutex
        return {};
    }
    if (found.longest.first <= pages.first && found.longest.end >= pages.end) return clipped();
    // Without the mutex: the window registry's and the arena's are locked here, and other threads call free() while
    // they hold one of those.
    bool huge = false;
    if (const char* const reason = refusal(found, pages, limits, huge); reason != nullptr) {
        why = reason;
        return clipped();
    }
    const int fd = arena_.adoption_file(pages.end - pages.first);
    if (fd < 0) {
        why = errno == EFBIG ? "RLIMIT_FSIZE forbids it" : "memory is short";
        return clipped();
    }
    Exchanged done;
    {
        const Inside inside(*this);
        exchange(pages, fd, done);
    }
    for (const Place& place : done.places)
        announce(place, done.shift, huge);
    {
        const Inside inside(*this);
        survey(pages, touched, found);
    }
    if (done.rest) why = done.rest.reason;
    if (done.rest.error != 0) why += std::string(": ") + std::strerror(done.rest.error);
    return clipped();
}

// Sweeps first, so that no offset has pages that a mapping does not use.
void Adoption::exchange(const Place& pages, int fd, Exchanged& done) {
    done.rest = open_file(fd);
    if (done.rest) return;
    Survey found;
    survey(pages, pages, found);
    if (!sweep_locked() || !found.complete) {
        done.rest = {kUnreadable};
        return;
    }
    done.shift = choose_shift(found);
    if (done.shift == kNoOffset) {
        done.rest = {"all slots of the arena's file are in use"};
        return;
    }
    for (const Piece& piece : found.adoptable) {
        std::uintptr_t stop = piece.first;
        done.rest = copy_in(piece, done.shift, stop);
        if (stop > piece.first && !done.places.push({piece.first, stop}) && !done.rest) done.rest = {kRefused, ENOMEM};
        if (done.rest) break;
    }
    sweep_locked();
}

// As of the last sweep.
bool Adoption::is_free(std::uint64_t first, std::uint64_t end) const {
    const auto* const after = std::upper_bound(used_.begin(), used_.end(), first,
                                               [](std::uint64_t value, const Offsets& o) { return value < o.end; });
    return after == used_.end() || after->first >= end;
}

// The difference between offsets and addresses in a slot of which no part is in use; kNoOffset if there is none.
std::uint64_t Adoption::free_slot() {
    for (std::uint64_t tried = 0; tried < kSlots; ++tried) {
        const std::uint64_t shift = kAdoptedOffset + (next_slot_ + tried) % kSlots * kSlotBytes;
        if (shift == reserved_shift_ || !is_free(shift, shift + kSlotBytes)) continue;
        next_slot_ = (next_slot_ + tried + 1) % kSlots;
        return shift;
    }
    return kNoOffset;
}

// The slot of the memory's part that is shared already, so that the whole becomes one mapping, unless mremap() has
// moved that part or other memory has the offsets.
std::uint64_t Adoption::choose_shift(const Survey& found) {
    if (found.longest) {
        const std::uint64_t shift = found.longest.offset - found.longest.first;
        if ((shift - kAdoptedOffset) % kSlotBytes == 0 &&
            std::all_of(found.adoptable.begin(), found.adoptable.end(),
                        [&](const Piece& piece) { return is_free(shift + piece.first, shift + piece.end); }))
            return shift;
    }
    return free_slot();
}

// While the host's thread stands, nothing here may wait for what that thread may hold: no malloc, and system calls
// instead of the C library's mmap and madvise, which a registration cache may have patched. `done`: how far it came.
Adoption::Refusal Adoption::copy_in(const Piece& piece, std::uint64_t shift, std::uintptr_t& done) {
    const Handlers handlers;
    if (!handlers.wait())
        return {"a thread of the host MPI, which may run the program's signal handlers, did not stop"};
    for (done = piece.first; done < piece.end;) {
        const std::uintptr_t end = std::min(piece.end, (done / kChunk + 1) * kChunk);
        if (!swap_chunk({done, end, piece.sparse}, shift)) return {kRefused, errno};
        done = end;
    }
    return {};
}

// Copies the pages into the file, then puts the file's pages in their place. The old pages are free after that.
bool Adoption::swap_chunk(const Piece& chunk, std::uint64_t shift) {
    const std::size_t bytes = chunk.end - chunk.first;
    const std::uint64_t offset = shift + chunk.first;
    auto* const address = reinterpret_cast<std::byte*>(chunk.first);
    const Present present(chunk.first, chunk.end, chunk.sparse);
    bool good = drop_pages(offset, bytes);
    good = good && (!arena_.allocates_early() ||
                    ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0);
    good = good && present.each_run([&](std::size_t from, std::size_t to) {
        return write_all(fd_, address + from * base::page_bytes(), (to - from) * base::page_bytes(),
                         offset + from * base::page_bytes());
    });
    good = good && ::syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                             static_cast<off_t>(offset)) != -1;
    if (good) return true;
    const int error = errno;
    drop_pages(offset, bytes);
    errno = error;
    return false;
}

// Maps the same pages once more, by the C library's function: a library that caches registrations of memory learns by
// its patch of that function that the old pages have gone. Then enters the pages into the page table: as if they were
// read, which the system does for 16 pages at a time, and which lets stores through in a mapping of such a file.
// Memory that had huge pages gets them again, whatever shmem_enabled says (Linux 6.1).
void Adoption::announce(const Place& place, std::uint64_t shift, bool huge) const {
    auto* const address = reinterpret_cast<std::byte*>(place.first);
    const std::size_t bytes = place.end - place.first;
    static_cast<void>(::mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                             static_cast<off_t>(shift + place.first)));
    // Where shared memory may have huge pages only on demand. An error means that it may not.
    ::syscall(SYS_madvise, address, bytes, MADV_HUGEPAGE);
    auto at = static_cast<off_t>(shift + place.first);
    const auto stop = static_cast<off_t>(shift + place.end);
    while ((at = ::lseek(fd_, at, SEEK_DATA)) >= 0 && at < stop) {
        const off_t hole = std::min(std::max(::lseek(fd_, at, SEEK_HOLE), at + 1), stop);
        auto* const data = reinterpret_cast<std::byte*>(static_cast<std::uint64_t>(at) - shift);
        if (huge) ::syscall(SYS_madvise, data, hole - at, kCollapse);
        ::syscall(SYS_madvise, data, hole - at, kPopulateRead);
        at = hole;
    }
}

}  // namespace osc::shm
