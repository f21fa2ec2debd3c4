// Making and finding the boards.
#include "window/notify.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "window/window.h"

namespace osc {

using base::fail;
using sync::NotifyBoard;

namespace {

constexpr std::uint32_t kTraced = 1u << 31;  // in ControlBlock::notify_room: NotifyBoard::traced
static_assert(NotifyBoard::kMost < kTraced);

}  // namespace

void Notifications::Free::operator()(Target* targets) const {
    std::free(targets);
}

// The first barrier ends all notified operations of before, the second one publishes the new counters. A board that has
// room enough is used again. A smaller one stays until the window is freed, because other processes map it.
Fault Notifications::set(Window& window, std::uint32_t count) {
    base::FirstFault first;
    first.note(window.core.complete_ops());
    const auto died = [] {
        return fail(Fault::Dead, "a process of the window died, or its connection is lost; the counters cannot be set");
    };
    if (!window.core.barrier()) return died();
    NotifyBoard* board = own();
    if (count > 0 && (board == nullptr || board->room < count)) {
        const bool traced = trace::enabled();
        shm::ArenaBlock piece;
        static_cast<void>(base::attempt([&] {
            boards_.reserve(boards_.size() + 1);
            piece = shm::Arena::mine().allocate(NotifyBoard::bytes_for(count, traced), 64, true);
            return Fault::None;
        }));
        board = piece ? new (piece.address) NotifyBoard(count, traced) : nullptr;
        if (board == nullptr) {
            first.note(fail(Fault::NoMem, "no shared memory for %u counters: %s", count, std::strerror(errno)));
            board = own();
            count = 0;
        } else {
            boards_.push_back(board);
            window.core.mine().notify_offset.store(piece.offset, std::memory_order_relaxed);
            window.core.mine().notify_room.store(traced ? count | kTraced : count, std::memory_order_relaxed);
            own_.store(board, std::memory_order_release);
        }
    }
    if (board != nullptr) board->reset_all(count);
    // calloc takes large arrays from untouched pages.
    if (targets_ == nullptr) targets_.reset(static_cast<Target*>(std::calloc(window.core.size, sizeof(Target))));
    if (targets_ == nullptr)
        first.note(fail(Fault::NoMem, "no memory for a table of %u targets", window.core.size));
    else
        for (std::uint32_t rank = 0; rank < window.core.size; ++rank) {
            Target& target = targets_[rank];
            if (target.board.load(std::memory_order_relaxed) != nullptr)
                target.board.store(nullptr, std::memory_order_relaxed);
            if (target.count.load(std::memory_order_relaxed) != 0) target.count.store(0, std::memory_order_relaxed);
        }
    if (!window.core.barrier()) return died();
    return first.take();
}

NotifyBoard* Notifications::map(Window& window, std::uint32_t rank) {
    if (rank == window.core.me) return own();
    const shm::ControlBlock& block = window.core.controls.block(rank);
    const std::uint64_t offset = block.notify_offset.load(std::memory_order_relaxed);
    const std::uint32_t room = block.notify_room.load(std::memory_order_relaxed);
    if (room == 0) return nullptr;
    const std::size_t bytes = NotifyBoard::bytes_for(room & ~kTraced, (room & kTraced) != 0);
    return reinterpret_cast<NotifyBoard*>(window.map(rank, offset, bytes));
}

Fault Notifications::count(Window& window, std::uint32_t rank, std::uint32_t& count) {
    count = 0;
    if (targets_ == nullptr) return Fault::None;
    Target& target = targets_[rank];
    if (!window.core.is_local(rank)) {
        if (const std::uint32_t known = target.count.load(std::memory_order_acquire); known != 0) {
            count = known - 1;
            return Fault::None;
        }
        if (const Fault fault = window.ask_counters(rank, count); fault != Fault::None) return fault;
        target.count.store(count + 1, std::memory_order_release);
        return Fault::None;
    }
    NotifyBoard* board = target.board.load(std::memory_order_acquire);
    if (board == nullptr) {
        if (rank != window.core.me && window.core.controls.block(rank).notify_room.load(std::memory_order_relaxed) == 0)
            return Fault::None;
        board = map(window, rank);
        if (board == nullptr && rank == window.core.me) return Fault::None;
        if (board == nullptr) {
            const Fault fault =
                fail(Fault::NoMem, "cannot map the notification counters of rank %u: %s", rank, std::strerror(errno));
            return reach::not_mapped(window.core.members, rank, fault);
        }
        target.board.store(board, std::memory_order_release);
    }
    count = board->count.load(std::memory_order_acquire);
    return Fault::None;
}

Fault Notifications::find(Window& window, std::uint32_t rank, int index, Notification& found) {
    std::uint32_t counters = 0;
    if (const Fault fault = count(window, rank, counters); fault != Fault::None) return fault;
    if (index < 0 || static_cast<std::uint32_t>(index) >= counters)
        return fail(Fault::Arg, "notification index %d is not in [0, %u), the counters of rank %u", index, counters,
                    rank);
    found = {window.core.is_local(rank) ? targets_[rank].board.load(std::memory_order_acquire) : nullptr,
             static_cast<std::uint32_t>(index)};
    return Fault::None;
}

void Notifications::release(std::vector<NotifyBoard*>& boards) {
    for (NotifyBoard* const board : boards)
        shm::Arena::mine().release(board);
    boards.clear();
}

}  // namespace osc
