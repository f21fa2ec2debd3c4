// process_vm_* within its limits.
#include "local/cma.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/copy_bytes.h"
#include "base/process_state.h"
#include "local/detour.h"

namespace osc::cma {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // below the system's limit for one call
constexpr std::size_t kMostInPiece = kMostBytes / PieceList::kPieces;

ssize_t call(Direction direction, pid_t pid, const iovec* local, const iovec* remote, std::size_t count) {
    const auto access = direction == Direction::Read ? ::process_vm_readv : ::process_vm_writev;
    const ssize_t moved = access(pid, local, count, remote, count, 0);
    if (moved >= 0 || errno != ESRCH) return moved;
    const pid_t thread = base::other_thread(pid);
    errno = ESRCH;
    return thread != 0 ? access(thread, local, count, remote, count, 0) : moved;
}

constexpr std::size_t kPage = 4096;

// Whether the system's copy takes up to five times as long as others: base/copy_bytes.cpp says why.
bool is_slow([[maybe_unused]] std::uint64_t distance, [[maybe_unused]] std::size_t bytes) {
#ifdef __x86_64__
    constexpr std::uint64_t kNear = 15;
    return bytes >= base::kLongCopy && distance % kPage - 1 < kNear && __builtin_cpu_is("amdfam19h");
#else
    return false;
#endif
}

// Moves some of the bytes, by way of an array that lies in its pages as the other process's memory does.
[[gnu::noinline]] ssize_t move_by_array(Direction direction, pid_t pid, std::byte* here, const iovec& theirs) {
    constexpr std::size_t kPages = 4;
    alignas(kPage) std::byte pages[(kPages + 1) * kPage];
    const iovec mine{pages + reinterpret_cast<std::uint64_t>(theirs.iov_base) % kPage,
                     std::min(theirs.iov_len, kPages * kPage)};
    const iovec part{theirs.iov_base, mine.iov_len};
    if (direction == Direction::Write) base::copy_bytes(mine.iov_base, here, mine.iov_len);
    const ssize_t moved = call(direction, pid, &mine, &part, 1);
    if (direction == Direction::Read && moved > 0)
        base::copy_bytes(here, mine.iov_base, static_cast<std::size_t>(moved));
    return moved;
}

ssize_t move_some(Direction direction, pid_t pid, std::byte* here, const iovec& theirs) {
    const std::uint64_t behind =
        reinterpret_cast<std::uint64_t>(here) - reinterpret_cast<std::uint64_t>(theirs.iov_base);
    if (is_slow(direction == Direction::Read ? behind : -behind, theirs.iov_len))
        return move_by_array(direction, pid, here, theirs);
    const iovec mine{here, theirs.iov_len};
    return call(direction, pid, &mine, &theirs, 1);
}

}  // namespace

int transfer(Direction direction, pid_t pid, std::uint64_t remote, void* local, std::size_t bytes) {
    auto* here = static_cast<std::byte*>(local);
    while (bytes > 0) {
        const ssize_t moved =
            move_some(direction, pid, here, {reinterpret_cast<void*>(remote), std::min(bytes, kMostBytes)});
        if (moved < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        if (moved == 0) return EFAULT;
        here += moved;
        remote += static_cast<std::uint64_t>(moved);
        bytes -= static_cast<std::size_t>(moved);
    }
    return 0;
}

Fault fault_of(int error, pid_t pid) {
    if (error == 0) return Fault::None;
    if (error == ESRCH) return base::fail(Fault::Dead, "the target process %d is gone", static_cast<int>(pid));
    if (error == EFAULT)
        return base::fail(Fault::Range, "memory of the operation is not accessible at the origin or the target");
    if (error == ENOMEM)
        return base::fail(Fault::NoMem, "no memory for the access to process %d", static_cast<int>(pid));
    return base::fail(Fault::Other, "access to process %d failed: %s", static_cast<int>(pid), std::strerror(error));
}

// Makes the last piece longer; false if the bytes do not follow it.
bool PieceList::extend(const std::byte* remote, const std::byte* local, std::size_t bytes) {
    if (count_ == 0) return false;
    iovec& here = local_[count_ - 1];
    iovec& there = remote_[count_ - 1];
    const std::size_t length = here.iov_len;
    if (static_cast<const std::byte*>(there.iov_base) + length != remote ||
        static_cast<const std::byte*>(here.iov_base) + length != local || length + bytes > kMostInPiece)
        return false;
    here.iov_len = there.iov_len = length + bytes;
    return true;
}

void PieceList::add(std::uint64_t remote, void* local, std::size_t bytes) {
    if (bytes == 0 || error_ != 0) return;
    if (bytes > kMostInPiece) {  // goes alone
        error_ = finish();
        if (error_ != 0) return;
        error_ = transfer(direction_, pid_, remote, local, bytes);
        if (error_ == 0) {
            moved_ = true;
        } else if (detour_ != nullptr && detour_->takes(error_)) {
            detour_->move(direction_ == Direction::Write, remote, local, bytes);
            error_ = 0;
        }
        return;
    }
    auto* const there = reinterpret_cast<std::byte*>(remote);
    if (extend(there, static_cast<const std::byte*>(local), bytes)) return;
    local_[count_] = {local, bytes};
    remote_[count_] = {there, bytes};
    if (++count_ == kPieces) error_ = finish();
}

int PieceList::finish() {
    std::size_t first = 0;
    while (error_ == 0 && first < count_) {
        const ssize_t moved = call(direction_, pid_, local_ + first, remote_ + first, count_ - first);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) {
            error_ = moved < 0 ? errno : EFAULT;
            break;
        }
        moved_ = true;
        auto rest = static_cast<std::size_t>(moved);
        while (first < count_ && rest >= local_[first].iov_len)
            rest -= local_[first++].iov_len;
        if (rest > 0) {  // stopped inside a piece: the next call starts there
            local_[first].iov_base = static_cast<std::byte*>(local_[first].iov_base) + rest;
            local_[first].iov_len -= rest;
            remote_[first].iov_base = static_cast<std::byte*>(remote_[first].iov_base) + rest;
            remote_[first].iov_len -= rest;
        }
    }
    if (error_ != 0 && detour_ != nullptr && detour_->takes(error_)) {
        for (; first < count_; ++first)
            detour_->move(direction_ == Direction::Write, reinterpret_cast<std::uint64_t>(remote_[first].iov_base),
                          local_[first].iov_base, local_[first].iov_len);
        error_ = 0;
    }
    count_ = 0;
    return error_;
}

bool reachable(pid_t pid, std::uint64_t probe, std::uint64_t token) {
    std::uint64_t seen = 0;
    return transfer(Direction::Read, pid, probe, &seen, sizeof seen) == 0 && seen == token;
}

void allow_peers() {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

}  // namespace osc::cma
