// The view of a peer's arena: opened through /proc/PID/fd, verified by the token in its header.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "transport/shm/arena.h"

namespace osc::shm {
namespace {

// A piece of the arena's file is mapped from the page that holds its first byte.
std::uint64_t page_start(std::uint64_t offset) {
    static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return offset / kPage * kPage;
}

}  // namespace

int PeerArena::open_peer() const {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", address_.pid, address_.fd);
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return -1;
    // The number may belong to another process in this PID namespace, or to one that came after the peer: only the
    // token proves the arena, and it is read by pread because mapping a foreign file and touching it could raise
    // SIGBUS.
    ArenaHeader header{};
    if (::pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) && header.token == address_.token)
        return fd;
    ::close(fd);
    errno = ESRCH;
    return -1;
}

std::byte* PeerArena::map(std::uint64_t offset, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (pool_ == nullptr) {
        const int fd = open_peer();
        if (fd < 0) return nullptr;
        void* pool = ::mmap(nullptr, address_.pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        const int error = errno;
        ::close(fd);
        if (pool == MAP_FAILED) {
            errno = error;
            return nullptr;
        }
        pool_ = static_cast<std::byte*>(pool);
    }
    if (offset + bytes <= address_.pool_bytes) return pool_ + offset;
    const int fd = open_peer();
    if (fd < 0) return nullptr;
    const std::uint64_t start = page_start(offset);
    void* mapping =
        ::mmap(nullptr, bytes + (offset - start), PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(start));
    ::close(fd);
    return mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping) + (offset - start);
}

void PeerArena::unmap(std::uint64_t offset, std::byte* address, std::size_t bytes) {
    if (offset + bytes <= address_.pool_bytes) return;
    const std::uint64_t lead = offset - page_start(offset);
    ::munmap(address - lead, bytes + lead);
}

PeerArena::~PeerArena() {
    if (pool_ != nullptr) ::munmap(pool_, address_.pool_bytes);
}

}  // namespace osc::shm
