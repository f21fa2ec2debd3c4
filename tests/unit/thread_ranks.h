// Ranks as threads of one process over the library's own code: a window's control table in ordinary memory, a Core per
// thread whose targets are arrays of this process, and a liveness that the test controls. ThreadSanitizer does not work
// between processes; here it sees every access of the protocols.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/epoch.h"
#include "op/kernels.h"
#include "reach/mapped.h"
#include "shm/control.h"
#include "shm/wait.h"

namespace osc::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#ifdef OSC_EMULATED
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

/// How often a loop runs: sanitizers and emulators slow every access down many times.
constexpr int times(int plain, int slow) {
    return kSanitized || kEmulated ? slow : plain;
}

/// Ends the program if a test hangs: a lost wake-up must be a failure, not a job that runs until its limit.
class Deadline {
  public:
    explicit Deadline(unsigned seconds) { ::alarm(kEmulated ? 4 * seconds : seconds); }
    ~Deadline() { ::alarm(0); }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
};

/// Sets how this process waits, for one test.
class Waiting {
  public:
    Waiting(int spin, int yields, long sleep_ms) : before_(shm::wait_policy()) {
        shm::set_wait_policy({spin, yields, sleep_ms, nullptr});
    }
    ~Waiting() { shm::set_wait_policy(before_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

  private:
    shm::WaitPolicy before_;
};

/// Whether condition() becomes true, in so many milliseconds or a little more.
template <class F>
bool soon(F&& condition, int ms = 10000) {
    for (int i = 0; i < ms; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        if (condition()) return true;
    return false;
}

inline Update update_of(Op op, Basic basic) {
    return {basic, op, op::kernel(op, basic), op::kernel(Op::Replace, basic), op::element_size(basic)};
}

/// Which ranks live, by the test's word.
class Lives final : public sync::Liveness {
  public:
    bool alive(std::uint32_t rank) override {
        checks_[rank].fetch_add(1, std::memory_order_relaxed);
        return !dead_[rank].load();
    }
    int dead_in_collective() override {
        const auto* const dead = std::find(dead_.begin(), dead_.end(), true);
        return dead == dead_.end() ? -1 : static_cast<int>(dead - dead_.begin());
    }
    void kill(std::uint32_t rank) { dead_[rank].store(true); }
    /// Returns when processes have looked a few times more whether `rank` lives.
    void await_checks(std::uint32_t rank) const {
        for (const int before = checks_[rank]; checks_[rank] < before + 3;)
            std::this_thread::yield();
    }

  private:
    std::array<std::atomic<int>, 256> checks_{};  // relaxed: they order nothing between the ranks
    std::array<std::atomic<bool>, 256> dead_{};
};

class Ranks;

/// One rank's window.
class RankCore final : public Members, public Core {
  public:
    RankCore(Ranks& ranks, std::uint32_t rank);
    bool alive(std::uint32_t rank) override;
    int dead_in_collective() override { return any_dead(); }
    void describe(Target& target, const shm::ControlBlock& block) override;

    std::vector<std::uint32_t> settled;  // targets that were waited for
    Fault late = Fault::None;            // the fault of the operations in flight

  private:
    // A way whose operations are complete as soon as a call waits for them.
    struct InFlight final : reach::Reach {
        explicit InFlight(RankCore& owner) : core(owner) {}
        reach::Outcome perform(Target&, const op::Call&, const Update&, const reach::Extras&) override { return {}; }
        reach::Outcome admit(Target&, const op::Call&, const Update&) override { return {}; }
        Fault complete(std::uint32_t target, reach::Completion until) override {
            if (until == reach::Completion::AtOrigin) return Fault::None;
            core.settled.push_back(target);
            core.incomplete.store(0, std::memory_order_release);
            return std::exchange(core.late, Fault::None);
        }
        RankCore& core;
    };
    InFlight in_flight_{*this};
    reach::Mapped mapped_{origin};
    Ranks& ranks_;
};

/// A window of `size` ranks with `longs` 64-bit words of memory each.
class Ranks {
  public:
    explicit Ranks(std::uint32_t size, std::size_t longs = 8) : size_(size), memory_(size) {
        const std::size_t bytes = (shm::ControlTable::bytes_for(size, size) + 63) / 64 * 64;
        // Shared mappings, so that a test can also fork a rank and kill it.
        room_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (room_ == MAP_FAILED) throw std::bad_alloc();
        room_bytes_ = bytes;
        controls_ = {static_cast<std::byte*>(room_), shm::ControlTable::stride_for(size)};
        shm::construct(controls_, size);
        for (auto& words : memory_)
            words.assign(longs, 0);
        for (std::uint32_t rank = 0; rank < size; ++rank)
            controls_.block(rank).size = longs * sizeof(std::uint64_t);
        for (std::uint32_t rank = 0; rank < size; ++rank)
            cores_.push_back(std::make_unique<RankCore>(*this, rank));
    }

    ~Ranks() { ::munmap(room_, room_bytes_); }
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    std::uint32_t size() const { return size_; }
    const shm::ControlTable& controls() const { return controls_; }
    RankCore& core(std::uint32_t rank) { return *cores_[rank]; }
    std::vector<std::uint64_t>& memory(std::uint32_t rank) { return memory_[rank]; }
    Lives& lives() { return lives_; }
    shm::LockCell& lock_cell(std::uint32_t rank) const { return controls_.block(rank).lock; }
    sync::LockContext context(std::uint32_t me) { return {controls_, me, size_, lives_}; }

    /// Runs f(core) in a thread per rank.
    template <class F>
    void run(F&& f) {
        std::vector<std::jthread> threads;
        for (std::uint32_t rank = 0; rank < size_; ++rank)
            threads.emplace_back([&, rank] { f(core(rank)); });
    }

    /// Returns when `rank` is the last waiter in the queue of the lock of `target`.
    void await_queued(std::uint32_t target, std::uint32_t rank) const {
        await_place(target, &shm::LockCell::tail, rank);
    }

    /// Returns when `rank` is the first waiter in that queue.
    void await_first(std::uint32_t target, std::uint32_t rank) const {
        await_place(target, &shm::LockCell::head, rank);
    }

  private:
    void await_place(std::uint32_t target, std::uint32_t shm::LockCell::*place, std::uint32_t rank) const {
        shm::LockCell& cell = lock_cell(target);
        for (std::uint32_t who = 0; who != rank + 1; std::this_thread::yield()) {
            std::uint32_t free = 0;
            if (!cell.guard.compare_exchange_strong(free, size_ + 1, std::memory_order_acquire)) continue;
            who = cell.*place;
            cell.guard.store(0, std::memory_order_release);
        }
    }

    std::uint32_t size_;
    void* room_ = nullptr;
    std::size_t room_bytes_ = 0;
    shm::ControlTable controls_;
    std::vector<std::vector<std::uint64_t>> memory_;
    Lives lives_;
    std::vector<std::unique_ptr<RankCore>> cores_;
};

inline RankCore::RankCore(Ranks& ranks, std::uint32_t rank) : Core(rank, ranks.size(), *this), ranks_(ranks) {
    controls = ranks.controls();
    reaches[static_cast<std::size_t>(Way::Private)] = &in_flight_;
    reaches[static_cast<std::size_t>(Way::Mapped)] = &mapped_;
}

inline bool RankCore::alive(std::uint32_t rank) {
    return ranks_.lives().alive(rank);
}

inline void RankCore::describe(Target& target, const shm::ControlBlock& /*block*/) {
    std::vector<std::uint64_t>& words = ranks_.memory(target.rank);
    target.base = reinterpret_cast<std::byte*>(words.data());
    target.way = Way::Mapped;
}

/// The liveness test of a world without deaths.
inline constexpr auto kNoneDead = [] { return false; };

}  // namespace osc::test
