// This process's arena: allocation from the memfd, addresses of its pieces, and further mappings of them. Large pieces
// are mapped one by one and get pages at first touch. One file, because all of it is under one mutex.
#include "shm/arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/options.h"
#include "base/pages.h"
#include "base/process_state.h"
#include "base/random.h"
#include "shm/control.h"
#include "shm/wait.h"

namespace osc::shm {
namespace {

constexpr std::size_t kLarge = std::size_t{2} << 20;  // from here on a piece has its own mapping
constexpr std::size_t kGrain = 64;                    // pool pieces never share a cache line
constexpr std::uint64_t kPiecesEnd = kAdoptedOffset;
// Bounds of the mappings without pages. Their page tables stay: 8 MiB for 4 GiB that were touched.
constexpr std::size_t kEmptyBytes = std::size_t{4} << 30;
constexpr std::size_t kEmptyPieces = 64;
constexpr std::size_t kLeastPool = std::size_t{4} << 20;
constexpr std::size_t kLargestPool = std::size_t{64} << 30;
// Under a limit of its address space a process maps its own pool and those of its node's processes all the same. What
// finds no room in a small pool becomes a large piece.
constexpr std::size_t kPoolsInLimit = 128;

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

std::size_t wanted_pool() {
    const std::size_t wanted = static_cast<std::size_t>(base::values().pool_mib) << 20;
    rlimit limit{};
    const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    const std::size_t most = limited ? limit.rlim_cur / kPoolsInLimit : kLargestPool;
    return base::page_up(std::clamp(wanted, kLeastPool, std::max(most, kLeastPool)));
}

}  // namespace

// Best fit over a list: with pieces of 2 MiB and more and a bound of some MiB the list is short.
std::optional<Mapping> KeptPieces::take(std::size_t bytes, std::size_t alignment, std::size_t least, std::size_t most) {
    auto best = pieces_.end();
    for (auto it = pieces_.begin(); it != pieces_.end(); ++it) {
        const bool fits = it->bytes >= bytes && reinterpret_cast<std::uintptr_t>(it->address) % alignment == 0;
        if (fits && (best == pieces_.end() || it->bytes < best->bytes)) best = it;
    }
    if (best == pieces_.end() || best->bytes > most) return std::nullopt;
    Mapping taken = *best;
    if (taken.bytes - bytes >= least) {
        taken.bytes = bytes;
        best->address += bytes;
        best->offset += bytes;
        best->bytes -= bytes;
    } else {
        pieces_.erase(best);
    }
    bytes_ -= taken.bytes;
    return taken;
}

void KeptPieces::keep(const Mapping& piece) {
    pieces_.push_back(piece);
    bytes_ += piece.bytes;
}

std::optional<Mapping> KeptPieces::oldest() {
    if (pieces_.empty()) return std::nullopt;
    const Mapping piece = pieces_.front();
    pieces_.pop_front();
    bytes_ -= piece.bytes;
    return piece;
}

std::byte* reserve_pool(int fd, std::size_t bytes) {
    void* const pool = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (pool == MAP_FAILED) return nullptr;
    ::madvise(pool, bytes, MADV_DONTDUMP);
    return static_cast<std::byte*>(pool);
}

Arena::Arena() : Arena(SystemMemory(), static_cast<std::size_t>(base::values().reuse_mib) << 20) {}

Arena::Arena(SystemMemory system, std::size_t keep) : system_(std::move(system)), keep_(keep) {}

Arena::~Arena() {
    give_back_all();
    for (const auto& [address, piece] : live_)
        if (piece.mapped > 0) ::munmap(reinterpret_cast<void*>(address), piece.mapped);
    if (pool_ != nullptr) ::munmap(pool_, pool_bytes_);
    if (fd_ >= 0) ::close(fd_);
}

Arena& Arena::mine() {
    // Never destroyed: peers and late exit handlers may still use its memory.
    static Arena* arena = [] {
        ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
        return new Arena;
    }();
    return *arena;
}

// No other thread lives here. No handler holds the mutex over the fork: the handlers of adopted memory take it.
void Arena::after_fork_in_child() {
    set_wait_service({});  // the messages are the parent's
    Arena& arena = mine();
    if (!arena.mutex_.try_lock()) {
        new (&arena.mutex_) std::mutex;
        arena.owner_ = Owner::Torn;
        return;
    }
    if (arena.pool_ != nullptr && arena.owner_ == Owner::Me) arena.owner_ = Owner::Parent;
    arena.mutex_.unlock();
}

bool Arena::open() {
    const std::lock_guard lock(mutex_);
    if (pool_ != nullptr) return true;
    const int fd = base::above_stdio(::memfd_create("osc", MFD_CLOEXEC));
    if (fd < 0) return false;
    std::size_t bytes = wanted_pool();
    std::byte* pool = nullptr;
    // Where addresses are short all the same: take what there is.
    while ((pool = reserve_pool(fd, bytes)) == nullptr && bytes > kLeastPool)
        bytes = base::page_up(std::max(bytes / 2, kLeastPool));
    if (pool == nullptr) {
        const int error = errno;
        ::close(fd);
        errno = error;
        return false;
    }
    fd_ = fd;
    pool_ = pool;
    pool_bytes_ = bytes;
    token_ = base::random64();
    if (!grow_pool(std::size_t{64} << 10)) {
        const int error = errno;
        ::munmap(pool, bytes);
        ::close(fd);
        pool_ = nullptr;
        fd_ = -1;
        errno = error;
        return false;
    }
    free_.take(round_up(sizeof(ArenaHeader), kGrain), kGrain);  // for good
    large_free_.give(bytes, kPiecesEnd - bytes);
    auto* const header = new (pool_) ArenaHeader{};
    header->activity.identity.store(base::random64(), std::memory_order_relaxed);
    header->constant = {token_, base::read_core_allowance(), reinterpret_cast<std::uint64_t>(pool_)};
    return true;
}

// Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ, which would kill the user's program.
bool Arena::allows_file(std::uint64_t end) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur) return true;
    errno = EFBIG;
    return false;
}

bool Arena::extend_file(std::uint64_t end) {
    if (end <= file_end_) return true;
    if (!allows_file(end) || ::ftruncate(fd_, static_cast<off_t>(end)) != 0) return false;
    file_end_ = end;
    return true;
}

bool Arena::grow_pool(std::size_t bytes) {
    const std::size_t step = base::page_up(std::max(bytes, std::size_t{256} << 10));
    std::size_t more = std::min(step, pool_bytes_ - committed_);
    if (more < bytes || !extend_file(committed_ + more)) {
        if (more < bytes) errno = ENOMEM;
        return false;
    }
    if (::fallocate(fd_, 0, static_cast<off_t>(committed_), static_cast<off_t>(more)) != 0) return false;
    if (::mprotect(pool_ + committed_, more, PROT_READ | PROT_WRITE) != 0) return false;
    ::madvise(pool_ + committed_, more, MADV_DODUMP);
    free_.give(committed_, more);
    committed_ += more;
    return true;
}

ArenaBlock Arena::from_pool(std::size_t bytes, std::size_t alignment, bool clear) {
    std::optional<std::uint64_t> start = free_.take(bytes, alignment);
    if (!start && grow_pool(bytes + alignment)) start = free_.take(bytes, alignment);
    if (!start) return {};
    std::byte* address = pool_ + *start;
    live_.emplace(reinterpret_cast<std::uintptr_t>(address), Live{*start, bytes, 0, false});
    in_use_ += bytes;
    if (clear) std::memset(address, 0, bytes);
    return {address, *start, bytes};
}

// Maps `length` bytes at `offset` of the file at a multiple of `alignment`; null with errno set on failure. The
// kernel's own choice usually has the alignment and costs one call; otherwise a larger reservation is trimmed to it.
std::byte* Arena::map_aligned(std::uint64_t offset, std::size_t length, std::size_t alignment) {
    void* chosen = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
    if (chosen == MAP_FAILED) return nullptr;
    if (reinterpret_cast<std::uintptr_t>(chosen) % alignment == 0) return static_cast<std::byte*>(chosen);
    ::munmap(chosen, length);
    const std::size_t reserve = length + alignment;
    void* room = ::mmap(nullptr, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(room);
    const std::uintptr_t address = round_up(start, alignment);
    void* mapping = ::mmap(reinterpret_cast<void*>(address), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                           fd_, static_cast<off_t>(offset));
    if (mapping == MAP_FAILED) {
        const int error = errno;
        ::munmap(room, reserve);
        errno = error;
        return nullptr;
    }
    if (address > start) ::munmap(room, address - start);
    if (start + reserve > address + length)
        ::munmap(reinterpret_cast<void*>(address + length), start + reserve - address - length);
    return static_cast<std::byte*>(mapping);
}

// Maps offsets that have no pages; no address, with errno set, if the system refuses. Offsets are multiples of 2 MiB;
// if the kernel uses huge pages for shared memory, it chooses such an address too.
Mapping Arena::map_fresh(std::size_t length, std::size_t alignment) {
    const std::optional<std::uint64_t> offset = large_free_.take(length, kLarge);
    if (!offset) {
        errno = ENOMEM;
        return {};
    }
    const auto at = static_cast<off_t>(*offset);
    const auto bytes = static_cast<off_t>(length);
    Mapping fresh{nullptr, *offset, length};
    const bool backed =
        extend_file(*offset + length) && (!system_.allocates_early() || ::fallocate(fd_, 0, at, bytes) == 0);
    if (backed) fresh.address = map_aligned(*offset, length, std::max(alignment, base::page_bytes()));
    if (fresh.address == nullptr) {
        const int error = errno;
        free_offsets(*offset, length);
        errno = error;
    }
    return fresh;
}

bool Arena::punch(std::uint64_t offset, std::size_t length) {
    return ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(length)) == 0;
}

// Offsets are reused only after their pages were freed, because a fresh piece must read as zero.
void Arena::free_offsets(std::uint64_t offset, std::size_t length) {
    if (offset >= file_end_ || punch(offset, length)) large_free_.give(offset, length);
}

void Arena::give_back(const Mapping& piece) {
    ::munmap(piece.address, piece.bytes);
    free_offsets(piece.offset, piece.bytes);
}

void Arena::give_back_all() {
    for (KeptPieces* pieces : {&kept_, &empty_})
        while (const std::optional<Mapping> piece = pieces->oldest())
            give_back(*piece);
}

// Gives the piece's pages back, and its addresses where they are scarce. Mapping and unmapping 100 MiB costs as much as
// the pages of a piece of which little was touched.
void Arena::drop_pages(const Mapping& piece) {
    if (!system_.spares_addresses() || !punch(piece.offset, piece.bytes)) {
        give_back(piece);
        return;
    }
    ::madvise(piece.address, piece.bytes, MADV_DONTDUMP);  // the dump would give it pages
    empty_.keep(piece);
    while (empty_.bytes() > kEmptyBytes || empty_.count() > kEmptyPieces)
        give_back(*empty_.oldest());
}

// A freed piece: with pages, or without them and at most twice as large as asked for, so that it serves its own size.
std::optional<Mapping> Arena::reuse(std::size_t length, std::size_t alignment) {
    constexpr auto kUncut = ~std::size_t{0};
    std::optional<Mapping> piece = kept_.take(length, alignment, kLarge);
    if (piece) return piece;
    piece = empty_.take(length, alignment, kUncut, 2 * length);
    if (piece) ::madvise(piece->address, piece->bytes, MADV_DODUMP);
    return piece;
}

ArenaBlock Arena::large(std::size_t bytes, std::size_t alignment, bool clear) {
    const std::size_t length = base::page_up(bytes);
    std::optional<Mapping> piece;
    if (!clear) piece = reuse(length, alignment);
    if (!piece) {
        if (kept_.count() > 0 && (system_.is_short() || system_.refuses(length))) give_back_all();
        if (system_.refuses(length)) {
            errno = ENOMEM;
            return {};
        }
        piece = map_fresh(length, alignment);
        if (piece->address == nullptr && kept_.count() + empty_.count() > 0) {
            give_back_all();
            piece = map_fresh(length, alignment);
        }
        if (piece->address == nullptr) return {};
    }
    live_.emplace(reinterpret_cast<std::uintptr_t>(piece->address),
                  Live{piece->offset, bytes, piece->bytes, !clear && length >= kLarge});
    in_use_ += bytes;
    return {piece->address, piece->offset, bytes};
}

// Memory for the lists may fail as the system's does.
ArenaBlock Arena::allocate(std::size_t bytes, std::size_t alignment, bool clear) try {
    if (bytes > (std::size_t{1} << 46) || alignment > (std::size_t{1} << 40)) {
        errno = ENOMEM;
        return {};
    }
    if (!open()) return {};
    const std::lock_guard lock(mutex_);
    if (owner_ != Owner::Me) {
        errno = EPERM;
        return {};
    }
    const std::size_t wanted = round_up(std::max(bytes, std::size_t{1}), kGrain);
    const std::size_t align = std::max(alignment, kGrain);
    // The pool starts at a page boundary, so no offset in it gives a larger alignment for certain.
    if (wanted < kLarge && align <= base::page_bytes()) {
        const ArenaBlock piece = from_pool(wanted, align, clear);
        if (piece) return piece;
    }
    return large(wanted, align, clear);
} catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return {};
}

// Offsets that the lists have no memory for are lost.
bool Arena::release(void* address) try {
    const std::lock_guard lock(mutex_);
    if (owner_ == Owner::Torn) return true;
    const auto found = live_.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == live_.end()) return false;
    if (owner_ != Owner::Me) return true;
    const Live piece = found->second;
    live_.erase(found);
    in_use_ -= piece.bytes;
    if (piece.mapped == 0) {
        free_.give(piece.offset, piece.bytes);
        return true;
    }
    const Mapping mapping{static_cast<std::byte*>(address), piece.offset, piece.mapped};
    if (!piece.may_be_kept) {
        give_back(mapping);
    } else if (system_.is_short()) {
        give_back(mapping);
        give_back_all();
    } else if (piece.mapped > keep_) {
        drop_pages(mapping);
    } else {
        kept_.keep(mapping);
        while (kept_.bytes() > keep_)
            drop_pages(*kept_.oldest());
    }
    return true;
} catch (const std::bad_alloc&) {
    return true;
}

// Takes a POSIX lock on the file's first byte. The system drops it when the process ends, and other processes can test
// it through any descriptor of the file, whatever their namespaces. It would also drop it if this process closed
// another descriptor of the file, so this process opens none.
bool Arena::show_life() {
    const std::lock_guard lock(mutex_);
    struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
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

std::uint64_t Arena::kept() const {
    const std::lock_guard lock(mutex_);
    return kept_.bytes();
}

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
