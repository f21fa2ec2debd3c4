// The notification counters of a window's processes, as one process sees them: its own board, and the boards of its
// targets. include/osc/notify.h has the interface's rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fault.h"
#include "sync/notify.h"

namespace osc {

class Window;

/// The counter that an operation increments.
struct Notification {
    sync::NotifyBoard* board;  // null: the target is on another node
    std::uint32_t index;
};

class Notifications {
  public:
    /// Gives this process `count` counters, all 0, after its window's processes have completed their operations.
    /// Collective. A process without memory for its counters has none, and its call alone fails.
    Fault set(Window& window, std::uint32_t count);

    /// The number of counters of a process.
    Fault count(Window& window, std::uint32_t rank, std::uint32_t& count);
    /// The counter `index` of a process; Fault::Arg if it has no such counter.
    Fault find(Window& window, std::uint32_t rank, int index, Notification& found);

    /// The board of a process of this node whose counter `index` exists and which find() has found before; null for
    /// any other, and for all with a timeline.
    sync::NotifyBoard* known(std::uint32_t rank, int index) const {
        const Target* const all = targets_.get();
        if (all == nullptr) return nullptr;
        sync::NotifyBoard* const board = all[rank].board.load(std::memory_order_acquire);
        const auto number = static_cast<std::uint32_t>(index);
        return board != nullptr && number < board->fast_count.load(std::memory_order_relaxed) ? board : nullptr;
    }

    /// This process's own board; null before the first set() with a count. The target service reads it too.
    sync::NotifyBoard* own() const { return own_.load(std::memory_order_acquire); }
    const std::atomic<sync::NotifyBoard*>& own_board() const { return own_; }

    /// Frees this process's boards. No process uses them any more.
    static void release(std::vector<sync::NotifyBoard*>& boards);
    /// This process's boards, which the caller releases when the window is gone.
    std::vector<sync::NotifyBoard*> take_boards() { return std::move(boards_); }

    std::atomic<std::uint32_t> tests{0};  // unsuccessful tests and reads of this process

  private:
    struct Target {
        std::atomic<sync::NotifyBoard*> board;
        std::atomic<std::uint32_t> count;  // of a target on another node, plus 1; 0: not asked for yet
    };
    sync::NotifyBoard* map(Window& window, std::uint32_t rank);

    struct Free {
        void operator()(Target* targets) const;
    };
    std::unique_ptr<Target[], Free> targets_;  // by rank; untouched pages take no memory
    std::atomic<sync::NotifyBoard*> own_{nullptr};
    std::vector<sync::NotifyBoard*> boards_;  // the last one is own_; earlier ones were too small
};

}  // namespace osc
