// The view of a peer's arena. It is opened through /proc/PID/fd or passed by the peer, and verified by the token in its
// header, because the peer's PID may belong to another process in this PID namespace, or to a later one.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/pages.h"
#include "base/process_state.h"
#include "shm/arena.h"
#include "shm/control.h"
#include "shm/fd_exchange.h"

namespace osc::shm {
namespace {

// Only the token proves the arena. It is read by pread, because mapping a foreign file and touching it could raise
// SIGBUS, and only from memory files, because reading anything else may wait.
bool is_arena(int fd, std::uint64_t token) {
    std::uint64_t found = 0;  // ArenaHeader::Constant::token
    return ::fcntl(fd, F_GET_SEALS) >= 0 &&
           ::pread(fd, &found, sizeof found, 0) == static_cast<ssize_t>(sizeof found) && found == token;
}

}  // namespace

int PeerArena::open_peer() const {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", address_.pid, address_.fd);
    // A peer of another PID namespace may have this process's own PID. Closing a descriptor of this process's own arena
    // would drop the lock of Arena::show_life().
    if (address_.token != Arena::mine().token() && Arena::mine().is_file(path)) {
        errno = ESRCH;
        return -1;
    }
    int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (const pid_t thread = fd < 0 ? base::other_thread(address_.pid) : 0; thread != 0) {
        std::snprintf(path, sizeof path, "/proc/%d/fd/%d", thread, address_.fd);
        fd = ::open(path, O_RDWR | O_CLOEXEC);
    }
    if (fd < 0) return -1;
    if (is_arena(fd, address_.token)) return fd;
    ::close(fd);
    errno = ESRCH;
    return -1;
}

int PeerArena::descriptor() const {
    const int passed = passed_.load(std::memory_order_relaxed);
    return passed >= 0 ? passed : open_peer();
}

// Keeps errno.
void PeerArena::close_unless_passed(int descriptor) const {
    if (descriptor == passed_.load(std::memory_order_relaxed)) return;
    const int error = errno;
    ::close(descriptor);
    errno = error;
}

bool PeerArena::reachable() {
    const std::lock_guard lock(mutex_);
    if (verified_) return true;
    const int fd = open_peer();
    if (fd < 0) return false;
    ::close(fd);
    verified_ = true;
    return true;
}

bool PeerArena::adopt(int descriptor, pid_t pid) {
    const std::lock_guard lock(mutex_);
    const bool right = is_arena(descriptor, address_.token);
    if (!right || verified_) {  // another thread may have adopted it already
        ::close(descriptor);
        return right;
    }
    address_.pid = pid;
    verified_ = true;
    passed_.store(descriptor, std::memory_order_release);
    return true;
}

base::CoreAllowance PeerArena::cores() const {
    ArenaHeader::Constant found{};
    const int fd = descriptor();
    if (fd < 0) return {};
    const ssize_t got = ::pread(fd, &found, sizeof found, 0);
    close_unless_passed(fd);
    return got == static_cast<ssize_t>(sizeof found) ? found.cores : base::CoreAllowance{};
}

bool PeerArena::owner_lives() const {
    if (adopted()) return arena_owner_lives(passed_.load(std::memory_order_relaxed));
    const std::uint64_t now = base::process_start_time(address_.pid);
    return now == base::kUnknownStart || address_.start_time == base::kUnknownStart ? now != 0
                                                                                    : now == address_.start_time;
}

// Makes the pool accessible up to `end`. What its owner may not have allocated yet stays reserved, or a tool that reads
// all accessible memory would read a gigabyte of each process.
bool PeerArena::open_pool(std::uint64_t end) {
    if (end <= accessible_) return true;
    const std::uint64_t stop = base::page_up(end);
    if (::mprotect(pool_ + accessible_, stop - accessible_, PROT_READ | PROT_WRITE) != 0) return false;
    accessible_ = stop;
    return true;
}

// The header of the arena, whose pool is mapped then; null with errno if that fails.
const ArenaHeader* PeerArena::header() {
    if (pool_ == nullptr) {
        const int fd = descriptor();
        if (fd < 0) return nullptr;
        pool_ = reserve_pool(fd, address_.pool_bytes);
        close_unless_passed(fd);
    }
    return pool_ != nullptr && open_pool(sizeof(ArenaHeader)) ? reinterpret_cast<const ArenaHeader*>(pool_) : nullptr;
}

bool PeerArena::attaches() {
    const std::lock_guard lock(mutex_);
    const ArenaHeader* const owner = header();
    return owner != nullptr && permit_.obtain(*owner);
}

std::byte* PeerArena::map(std::uint64_t offset, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const ArenaHeader* const owner = header();
    if (owner == nullptr) return nullptr;
    if (offset >= kAttachedOffset)
        return permit_.obtain(*owner) ? permit_.attach(offset - kAttachedOffset, bytes) : nullptr;
    if (offset + bytes <= address_.pool_bytes) return open_pool(offset + bytes) ? pool_ + offset : nullptr;
    const int fd = descriptor();
    if (fd < 0) return nullptr;
    const std::uint64_t start = base::page_down(offset);
    void* mapping =
        ::mmap(nullptr, bytes + (offset - start), PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(start));
    close_unless_passed(fd);
    if (mapping == MAP_FAILED) return nullptr;
    ::madvise(mapping, bytes + (offset - start), MADV_DONTDUMP);
    return static_cast<std::byte*>(mapping) + (offset - start);
}

void PeerArena::unmap(std::uint64_t offset, std::byte* address, std::size_t bytes) {
    if (offset >= kAttachedOffset) return Permit::detach(address);
    if (offset + bytes <= address_.pool_bytes) return;
    const std::uint64_t lead = offset - base::page_down(offset);
    ::munmap(address - lead, bytes + lead);
}

PeerArena::~PeerArena() {
    if (pool_ != nullptr) ::munmap(pool_, address_.pool_bytes);
    if (adopted()) ::close(passed_.load(std::memory_order_relaxed));
}

}  // namespace osc::shm
