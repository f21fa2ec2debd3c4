// Adopting memory: which pages may become shared, and which slot of offsets they get. exchange.cpp has the
// exchange.
// Build: osc_adopt_core
#include "plugins/adopt/adoption.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/pages.h"
#include "plugins/adopt/vm_flags.h"
#include "shm/other_threads.h"
#include "shm/vm_areas.h"

namespace osc::shm {
namespace {

// Areas that an exchange may add, and that the rest of the process may need soon.
constexpr long kSpareAreas = 1024;
constexpr long kMostAreas = 65530;  // the system's default
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

// The last number behind `key` at the start of a line of the file; `otherwise` if there is none.
long number_in(const char* path, const char* key, long otherwise) {
    std::FILE* const file = std::fopen(path, "re");
    if (file == nullptr) return otherwise;
    char line[256];
    long found = otherwise;
    const std::size_t length = std::strlen(key);
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::strncmp(line, key, length) == 0) std::sscanf(line + length, "%ld", &found);
    std::fclose(file);
    return found;
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

const char* Adoption::refusal(const Survey& found, const Place& pages, const Limits& limits) {
    if (!found.complete) return kUnreadable;
    if (pages.end - pages.first < limits.least) return kTooSmall;
    if (found.adoptable.empty()) return "it is not private memory that can be read and written";
    if (limits.forbids)
        if (const char* const reason = limits.forbids(); reason != nullptr) return reason;
    if (limits.alone && has_other_threads()) return "another thread of the program runs";
    if (number_in(kStatus, "VmLck:", 0) > 0) return "the process has locked memory";
    if (limits.alone && number_in(kStatus, "VmPin:", 0) > 0) return "the process has registered memory with a device";
    if (found.areas + kSpareAreas > number_in("/proc/sys/vm/max_map_count", "", kMostAreas))
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
        if (const char* const reason = special_treatment(piece.first, piece.end); reason != nullptr) return reason;
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
    if (const char* const reason = refusal(found, pages, limits); reason != nullptr) {
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
        announce(place, done.shift);
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

}  // namespace osc::shm
