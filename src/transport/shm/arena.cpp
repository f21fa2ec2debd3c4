// This process's arena: allocation from the memfd.
#include "transport/shm/arena.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "config/options.h"
#include "transport/shm/control.h"

namespace osc::shm {
namespace {

constexpr std::size_t kLarge = std::size_t{2} << 20;  // from here on a piece has its own mapping
constexpr std::size_t kGrain = 64;                    // pool pieces never share a cache line

std::size_t page() {
    static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return kPage;
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// The first number behind `key` in a file of the system, in bytes; ~0 if there is none.
std::uint64_t number_in(const char* path, const char* key, std::uint64_t unit) {
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return ~std::uint64_t{0};
    char line[256];
    unsigned long long value = 0;
    bool found = false;
    const std::size_t length = std::strlen(key);
    while (!found && std::fgets(line, sizeof line, file) != nullptr)
        found = std::strncmp(line, key, length) == 0 && std::sscanf(line + length, "%llu", &value) == 1;
    std::fclose(file);
    return found ? value * unit : ~std::uint64_t{0};
}

// Bytes that the machine and this control group can still give.
std::uint64_t memory_left() {
    const std::uint64_t machine = number_in("/proc/meminfo", "MemAvailable:", 1024);
    const std::uint64_t most = number_in("/sys/fs/cgroup/memory.max", "", 1);
    const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current", "", 1);
    return most == ~std::uint64_t{0} || used > most ? machine : std::min(machine, most - used);
}

}  // namespace

std::uint64_t random64() {
    std::uint64_t value = 0;
    while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    }
    return value;
}

std::uint64_t process_start_time(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT && ::kill(pid, 0) != 0 && errno == ESRCH ? 0 : kUnknownStart;
    char text[1024];
    const ssize_t got = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (got <= 0) return got < 0 && errno == ESRCH ? 0 : kUnknownStart;
    text[got] = '\0';
    // The command name in parentheses may hold anything, so fields count from its last ')': state is field 3.
    const char* rest = std::strrchr(text, ')');
    char state = 0;
    unsigned long long start = 0;
    if (rest == nullptr || std::sscanf(rest + 1,
                                       " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                       "%llu",
                                       &state, &start) != 2)
        return kUnknownStart;
    return state == 'Z' || state == 'X' ? 0 : start;
}

Arena& Arena::mine() {
    static Arena* arena = new Arena;  // never destroyed: peers and late exit handlers may still use its memory
    return *arena;
}

bool Arena::open() {
    const std::lock_guard lock(mutex_);
    if (pool_ != nullptr) return true;
    const int fd = ::memfd_create("osc", MFD_CLOEXEC);
    if (fd < 0) return false;
    std::size_t bytes = static_cast<std::size_t>(std::max(config::values().pool_mib, 4L)) << 20;
    void* pool = MAP_FAILED;
    // An address-space limit (ulimit -v) may refuse the whole reservation: take what it allows.
    for (; bytes >= (std::size_t{4} << 20); bytes /= 2) {
        pool = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (pool != MAP_FAILED) break;
    }
    if (pool == MAP_FAILED) {
        ::close(fd);
        return false;
    }
    fd_ = fd;
    pool_ = static_cast<std::byte*>(pool);
    pool_bytes_ = bytes;
    large_next_ = bytes;
    token_ = random64();
    if (!grow_pool(std::size_t{64} << 10)) {
        ::munmap(pool, bytes);
        ::close(fd);
        pool_ = nullptr;
        fd_ = -1;
        return false;
    }
    // The header takes the first grain for good.
    free_.clear();
    free_.emplace(kGrain, committed_ - kGrain);
    reinterpret_cast<ArenaHeader*>(pool_)->token = token_;
    return true;
}

bool Arena::extend_file(std::uint64_t end) {
    if (end <= file_end_) return true;
    rlimit limit{};
    // Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ, which would kill the user's program.
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    if (::ftruncate(fd_, static_cast<off_t>(end)) != 0) return false;
    file_end_ = end;
    return true;
}

bool Arena::grow_pool(std::size_t bytes) {
    const std::size_t step = round_up(std::max(bytes, std::size_t{256} << 10), page());
    std::size_t more = std::min(step, pool_bytes_ - committed_);
    if (more < bytes || !extend_file(committed_ + more)) {
        if (more < bytes) errno = ENOMEM;
        return false;
    }
    if (::fallocate(fd_, 0, static_cast<off_t>(committed_), static_cast<off_t>(more)) != 0) return false;
    // Joined with a free piece that ends where the new one starts.
    std::uint64_t start = committed_;
    std::size_t length = more;
    if (!free_.empty()) {
        auto last = std::prev(free_.end());
        if (last->first + last->second == start) {
            start = last->first;
            length += last->second;
            free_.erase(last);
        }
    }
    free_.emplace(start, length);
    committed_ += more;
    return true;
}

Piece Arena::from_pool(std::size_t bytes, std::size_t alignment, bool clear) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        for (auto it = free_.begin(); it != free_.end(); ++it) {
            const std::uint64_t start = round_up(it->first, alignment);
            const std::uint64_t end = it->first + it->second;
            if (start + bytes > end) continue;
            const std::uint64_t before = it->first;
            free_.erase(it);
            if (start > before) free_.emplace(before, start - before);
            if (end > start + bytes) free_.emplace(start + bytes, end - start - bytes);
            std::byte* address = pool_ + start;
            live_.emplace(reinterpret_cast<std::uintptr_t>(address), Live{start, bytes, nullptr, 0});
            in_use_ += bytes;
            if (clear) std::memset(address, 0, bytes);
            return {address, start, bytes};
        }
        if (!grow_pool(bytes + alignment)) break;
    }
    return {};
}

Piece Arena::large(std::size_t bytes, std::size_t alignment) {
    const std::size_t length = round_up(bytes, page());
    // The file has no size limit of its own: the system would take pages until it must kill somebody.
    if (length > memory_left()) {
        errno = ENOMEM;
        return {};
    }
    const std::uint64_t offset = large_next_;
    if (!extend_file(offset + length)) return {};
    if (::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) return {};
    // Room to align the address is reserved first; huge pages like 2 MiB.
    const std::size_t align = std::max({alignment, page(), length >= kLarge ? kLarge : page()});
    const std::size_t reserve = length + align;
    void* room = ::mmap(nullptr, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* mapping = MAP_FAILED;
    if (room != MAP_FAILED) {
        const std::uintptr_t aligned = round_up(reinterpret_cast<std::uintptr_t>(room), align);
        mapping = ::mmap(reinterpret_cast<void*>(aligned), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                         static_cast<off_t>(offset));
        if (mapping == MAP_FAILED) ::munmap(room, reserve);
    }
    if (mapping == MAP_FAILED) {
        ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(length));
        errno = ENOMEM;
        return {};
    }
    const auto address = reinterpret_cast<std::uintptr_t>(mapping);
    const auto start = reinterpret_cast<std::uintptr_t>(room);
    if (address > start) ::munmap(room, address - start);
    if (start + reserve > address + length)
        ::munmap(reinterpret_cast<void*>(address + length), start + reserve - address - length);
    large_next_ += length;
    live_.emplace(address, Live{offset, bytes, mapping, length});
    in_use_ += bytes;
    return {static_cast<std::byte*>(mapping), offset, bytes};
}

Piece Arena::allocate(std::size_t bytes, std::size_t alignment, bool clear) {
    if (bytes > (std::size_t{1} << 46) || alignment > (std::size_t{1} << 40)) {
        errno = ENOMEM;
        return {};
    }
    if (!open()) return {};
    const std::lock_guard lock(mutex_);
    const std::size_t wanted = round_up(std::max(bytes, std::size_t{1}), kGrain);
    const std::size_t align = std::max(alignment, kGrain);
    // The pool is mapped at a page boundary only, so a larger alignment cannot be had by choosing an offset.
    if (wanted < kLarge && align <= page()) {
        const Piece piece = from_pool(wanted, align, clear);
        if (piece) return piece;
    }
    return large(wanted, align);
}

bool Arena::release(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == live_.end()) return false;
    const Live piece = found->second;
    live_.erase(found);
    in_use_ -= piece.bytes;
    if (piece.mapping != nullptr) {
        ::munmap(piece.mapping, piece.mapped);
        ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(piece.offset),
                    static_cast<off_t>(piece.mapped));
        return true;
    }
    std::uint64_t start = piece.offset;
    std::size_t length = piece.bytes;
    auto next = free_.lower_bound(start);
    if (next != free_.end() && start + length == next->first) {
        length += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        auto previous = std::prev(next);
        if (previous->first + previous->second == start) {
            start = previous->first;
            length += previous->second;
            free_.erase(previous);
        }
    }
    free_.emplace(start, length);
    return true;
}

std::uint64_t Arena::offset_of(const void* address, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    auto after = live_.upper_bound(wanted);
    if (after == live_.begin()) return kNoOffset;
    const auto& [start, piece] = *std::prev(after);
    if (wanted - start > piece.bytes || bytes > piece.bytes - (wanted - start)) return kNoOffset;
    return piece.offset + (wanted - start);
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
    ArenaAddress result;
    result.token = token_;
    result.pid = ::getpid();
    result.start_time = process_start_time(result.pid);
    result.pool_bytes = pool_bytes_;
    result.probe = reinterpret_cast<std::uint64_t>(&token_);
    result.fd = fd_;
    return result;
}

// A lock of the whole process on the file's first byte, which the system drops with the process and which others can
// look at through any descriptor of the file, whatever namespaces they live in. It would also go if this process closed
// another descriptor of the file: it opens none.
bool Arena::show_life() {
    const std::lock_guard lock(mutex_);
    struct flock life = {};
    life.l_type = F_WRLCK;
    life.l_whence = SEEK_SET;
    life.l_len = 1;
    return fd_ >= 0 && ::fcntl(fd_, F_SETLK, &life) == 0;
}

bool Arena::is_file(const char* path) const {
    struct stat mine = {};
    struct stat other = {};
    return fd_ >= 0 && ::fstat(fd_, &mine) == 0 && ::stat(path, &other) == 0 && mine.st_dev == other.st_dev &&
           mine.st_ino == other.st_ino;
}

std::uint64_t Arena::in_use() const {
    const std::lock_guard lock(mutex_);
    return in_use_;
}

}  // namespace osc::shm
