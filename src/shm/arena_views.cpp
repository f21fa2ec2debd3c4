// Addresses of the arena's pieces, and further mappings of them.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "base/pages.h"
#include "base/process_state.h"
#include "shm/arena.h"
#include "shm/control.h"

namespace osc::shm {

std::uint64_t Arena::offset_of(const void* address, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    const auto find = [&](const auto& pieces) {
        const auto after = pieces.upper_bound(wanted);
        if (after == pieces.begin()) return kNoOffset;
        const auto& [start, piece] = *std::prev(after);
        if (wanted - start > piece.bytes || bytes > piece.bytes - (wanted - start)) return kNoOffset;
        return piece.offset + (wanted - start);
    };
    const std::uint64_t offset = find(live_);
    return offset != kNoOffset || views_.empty() ? offset : find(views_);
}

std::byte* Arena::at(std::uint64_t offset) const {
    const std::lock_guard lock(mutex_);
    if (offset < pool_bytes_) return pool_ + offset;
    for (const auto& [start, piece] : live_)
        if (offset >= piece.offset && offset - piece.offset < piece.bytes)
            return reinterpret_cast<std::byte*>(start) + (offset - piece.offset);
    return nullptr;
}

ArenaAddress Arena::address() const {
    const std::lock_guard lock(mutex_);
    const pid_t me = ::getpid();
    return {.token = token_,
            .start_time = base::process_start_time(me),
            .pool_bytes = pool_bytes_,
            .probe = reinterpret_cast<std::uint64_t>(&token_),
            .pid = me,
            .fd = fd_};
}

bool Arena::can_provide(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return !system_.refuses(bytes) && !system_.is_short();
}

bool Arena::has_for_each(std::uint64_t processes, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return system_.has_for_each(processes, bytes);
}

// RLIMIT_FSIZE counts for every write, so also if the file is long enough already.
int Arena::adoption_file(std::size_t bytes) {
    if (!open()) return -1;
    if (!can_provide(bytes)) {
        errno = ENOMEM;
        return -1;
    }
    const std::lock_guard lock(mutex_);
    return allows_file(kAdoptedEnd) && extend_file(kAdoptedEnd) ? fd_ : -1;
}

std::byte* Arena::map_view(std::uint64_t offset, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t start = base::page_down(offset);
    void* const mapping =
        ::mmap(nullptr, bytes + (offset - start), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(start));
    if (mapping == MAP_FAILED) return nullptr;
    std::byte* const view = static_cast<std::byte*>(mapping) + (offset - start);
    views_.emplace(reinterpret_cast<std::uintptr_t>(view), View{offset, bytes});
    return view;
}

void Arena::unmap_view(std::byte* view) {
    const std::lock_guard lock(mutex_);
    const auto found = views_.find(reinterpret_cast<std::uintptr_t>(view));
    if (found == views_.end()) return;
    const std::size_t lead = found->second.offset % base::page_bytes();
    ::munmap(view - lead, found->second.bytes + lead);
    views_.erase(found);
}

}  // namespace osc::shm
