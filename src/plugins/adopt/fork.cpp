// fork() of a process with adopted memory. The child's pages would be the parent's, so it gets private copies.
//
// The copies are made before the fork, in memory that the child inherits: neither process waits for the other. Stores
// of other threads that nothing orders with the fork may be missing in them. The heap may be among the memory that is
// copied, and until the child has its copies, it would store into the parent's. So nothing here allocates from the
// heap while it has the mutex: the list of copies lies in pages of its own, and the Adoption object among the plugin's
// static data.
// Build: osc_adopt_core
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "plugins/adopt/adoption.h"
#include "shm/vm_areas.h"

namespace osc::shm {
// Holes of the file stay holes of the copy.
bool Adoption::copy_out(std::uint64_t offset, std::size_t bytes, void* to) const {
    auto at = static_cast<off_t>(offset);
    const auto end = static_cast<off_t>(offset + bytes);
    while ((at = ::lseek(fd_, at, SEEK_DATA)) >= 0 && at < end) {
        const off_t stop = std::min(std::max(::lseek(fd_, at, SEEK_HOLE), at + 1), end);
        while (at < stop) {
            const ssize_t got = ::pread(fd_, static_cast<std::byte*>(to) + (at - static_cast<off_t>(offset)),
                                        static_cast<std::size_t>(stop - at), at);
            if (got < 0 && errno == EINTR) continue;
            if (got == 0) errno = EIO;
            if (got <= 0) return false;
            at += got;
        }
    }
    return at >= 0 || errno == ENXIO;  // no data behind `at`
}

// The most that the copies can take: reserved memory counts only as far as it was touched.
std::size_t Adoption::file_bytes() const {
    struct stat file = {};
    return ::fstat(fd_, &file) == 0 ? static_cast<std::size_t>(file.st_blocks) * 512 : kAddresses;
}

// Lists the areas of adopted memory; false if some may be missing.
bool Adoption::list_own(MappedArray<Copy>& found) const {
    VmAreas areas;
    bool complete = true;
    for (VmArea area; areas.next(area);)
        if (is_own(area))
            complete =
                found.push({area.first, area.end - area.first, area.offset, protection_of(area), nullptr}) && complete;
    return complete && areas.complete();
}

// First lists, then copies: the copies are areas too.
void Adoption::copy_for_child(bool fits) {
    copies_complete_ = list_own(copies_);
    for (Copy& copy : copies_) {
        const long place = !fits ? -1
                                 : ::syscall(SYS_mmap, nullptr, copy.bytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
        if (place == -1) continue;
        if (copy_out(copy.offset, copy.bytes, reinterpret_cast<void*>(place)))
            copy.address = reinterpret_cast<void*>(place);
        else
            ::syscall(SYS_munmap, place, copy.bytes);
    }
}

void Adoption::before_fork() {
    Adoption& self = mine();
    const Undisturbed::State state = Undisturbed::begin();
    bool fits = true;
    self.lock();
    // Threads take the mutex while they have the arena's, so the arena is asked without it, and again if another thread
    // adopts memory meanwhile.
    for (std::size_t asked = 0;;) {
        std::size_t bytes = 0;
        for (const Place& place : self.places_)
            bytes += place.end - place.first;
        if (bytes <= asked) break;
        asked = bytes;
        const std::size_t most = std::min(bytes, self.file_bytes());
        self.unlock();
        fits = self.arena_.has_for_each(self.processes_.load(), most);
        self.lock();
    }
    s_forking = true;
    self.forking_ = state;
    self.copies_.clear();
    self.copies_complete_ = true;
    if (self.owned() && !self.places_.empty()) self.copy_for_child(fits);
}

// Unmaps what no area of this process uses of the copies, and unlocks the mutex.
void Adoption::end_fork() {
    for (const Copy& copy : copies_)
        if (copy.address != nullptr) ::syscall(SYS_munmap, copy.address, copy.bytes);
    copies_.clear();
    const Undisturbed::State state = forking_;
    s_forking = false;
    unlock();
    Undisturbed::end(state);
}

void Adoption::after_fork_in_parent() {
    if (!s_forking) return;
    Adoption& self = mine();
    const bool failed = !self.copies_complete_ || std::any_of(self.copies_.begin(), self.copies_.end(),
                                                              [](const Copy& copy) { return copy.address == nullptr; });
    self.end_fork();
    if (failed)
        base::say(
            "fork: no memory to copy adopted window memory for the child, which may see later stores of this "
            "process and its peers there");
}

// Puts the copies' pages in the place of the file's in [first, end), and pages that only stores make private where
// there is no copy. The C library's mremap is no good here: what UCX 1.13 puts in its place drops the last argument.
void Adoption::map_copies(std::uintptr_t first, std::uintptr_t end, int protection, std::uint64_t offset) const {
    const auto private_file = [&](std::uintptr_t from, std::uintptr_t to) {
        if (from < to)
            ::syscall(SYS_mmap, from, to - from, protection, MAP_PRIVATE | MAP_FIXED, fd_,
                      static_cast<off_t>(offset + (from - first)));
    };
    std::uintptr_t at = first;
    for (const Copy& copy : copies_) {
        const std::uintptr_t from = std::max(copy.first, at);
        const std::uintptr_t to = std::min(copy.first + copy.bytes, end);
        const std::uint64_t copied = copy.offset + (from - copy.first);
        if (from >= to || copy.address == nullptr || copied != offset + (from - first)) continue;
        private_file(at, from);
        const std::uintptr_t source = reinterpret_cast<std::uintptr_t>(copy.address) + (from - copy.first);
        if (protection != (PROT_READ | PROT_WRITE)) ::syscall(SYS_mprotect, source, to - from, protection);
        ::syscall(SYS_mremap, source, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, from);
        at = to;
    }
    private_file(at, end);
}

// Other threads may have unmapped memory, or made it private again, between the copies and the fork: the child's own
// list of areas says what needs a copy.
void Adoption::after_fork_in_child() {
    if (!s_forking) return;
    Adoption& self = mine();
    if (self.fd_ >= 0) {
        MappedArray<Copy> found;
        const bool listed = self.list_own(found);
        for (const Copy& area : listed ? found : self.copies_)
            self.map_copies(area.first, area.first + area.bytes, area.protection, area.offset);
    }
    // From here on the child has no adopted memory, and its owner_ is clear.
    self.places_.clear();
    self.update_hull();
    self.end_fork();
}

}  // namespace osc::shm
