// Shared memory at addresses that the kernel chooses, for a heap whose pieces need no exchange.
// Build: osc_adopt_core
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/pages.h"
#include "plugins/adopt/adoption.h"

namespace osc::shm {
namespace {

void* null_with(int error) {
    errno = error;
    return nullptr;
}

}  // namespace

// All reserved memory has one slot, in which no two mappings meet, unless the program has moved one with mremap(). No
// step waits for the arena's mutex once the file is open: the arena may call malloc, and malloc this function, while it
// has its mutex.
void* Adoption::reserve(std::size_t bytes) {
    if (bytes == 0 || bytes > kAddresses) return null_with(bytes == 0 ? EINVAL : ENOMEM);
    if (arena_.allocates_early()) return null_with(ENOTSUP);
    if (s_inside) return null_with(EAGAIN);
    int fd = -1;
    {
        const Inside inside(*this);
        fd = fd_;
    }
    if (fd < 0) fd = arena_.adoption_file(bytes);
    if (fd < 0) return nullptr;
    const Inside inside(*this);
    if (const Refusal refusal = open_file(fd)) return null_with(refusal.error != 0 ? refusal.error : ENOTSUP);
    if (!sweep_locked()) return null_with(ENOMEM);
    const std::size_t length = base::page_up(bytes);
    const long place =
        ::syscall(SYS_mmap, nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    if (place == -1) return nullptr;
    const auto first = static_cast<std::uint64_t>(place);
    if (reserved_shift_ == kNoOffset || !is_free(reserved_shift_ + first, reserved_shift_ + first + length))
        reserved_shift_ = free_slot();
    if (first + length > kAddresses || reserved_shift_ == kNoOffset) {
        ::syscall(SYS_munmap, place, length);
        return null_with(ENOMEM);
    }
    if (::syscall(SYS_mmap, place, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                  static_cast<off_t>(reserved_shift_ + first)) == -1) {
        const int error = errno;
        ::syscall(SYS_munmap, place, length);
        return null_with(error);
    }
    ::syscall(SYS_madvise, place, length, MADV_DONTDUMP);  // the heap shows what it uses
    sweep_locked();
    return reinterpret_cast<void*>(place);
}

// A forked child has copies, some perhaps of the parent's file, if memory was short.
bool Adoption::discard_reserved(void* address, std::size_t bytes) {
    if (s_inside) {
        errno = EAGAIN;
        return false;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = first + bytes;
    const Undisturbed undisturbed;
    if (!owned())
        return ::syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L) != -1;
    bool good = true;
    if (SharedPart part; is_whole(first, end, part)) return drop_pages(part.offset, part.bytes());
    for (SharedPart part = first_own(first, end); part; part = first_own(part.end, end))
        good = drop_pages(part.offset, part.bytes()) && good;
    return good;
}

}  // namespace osc::shm
