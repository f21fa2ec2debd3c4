// The counters of one window in one process (OSC_STATS): a flat array, so that the report can encode, add up and look
// up all of them alike. Counting needs no lock; src/api/observed.cpp calls it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/wait_time.h"

namespace osc::stats {

enum class Kind : std::uint8_t {
#define OSC_STATS_KIND(id, name) id,
#include "stats/names.def"
    Count
};

/// How the bytes of an operation travel.
enum class DataPath : std::uint8_t {
#define OSC_STATS_PATH(id, name) id,
#include "stats/names.def"
    Count
};

/// The synchronisation calls, by the names of their entry points.
enum class Sync : std::uint8_t {
#define OSC_STATS_SYNC(id, name) id,
#include "stats/names.def"
    Count
};

/// What a thread waits for inside a call: the lock, the post or the fence of one process; all processes, in a fence or
/// in the window's free; the completes of origins; operations; a counter of notifications.
enum class Wait : std::uint8_t {
#define OSC_STATS_WAIT(id, name) id,
#include "stats/names.def"
    Count
};

template <class Enum>
constexpr auto make_all() {
    std::array<Enum, static_cast<std::size_t>(Enum::Count)> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<Enum>(i);
    return all;
}

/// All values of one of these.
template <class Enum>
inline constexpr auto kAll = make_all<Enum>();

/// Classes of size: up to 8 bytes, then up to 8 times as many each; the last class has no limit.
inline constexpr std::size_t kSizes = 8;
constexpr std::uint64_t largest_of(std::size_t size_class) {
    return std::uint64_t{8} << (3 * size_class);
}
constexpr std::size_t size_class(std::uint64_t bytes) {
    if (bytes <= 8) return 0;
    const auto last = (static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1) / 3;
    return last < kSizes ? last : kSizes - 1;
}

inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::Count);
inline constexpr std::size_t kPaths = static_cast<std::size_t>(DataPath::Count);
inline constexpr std::size_t kSyncs = static_cast<std::size_t>(Sync::Count);

/// Of the operations of one kind, path and size.
enum OperationField : std::size_t { kOperations, kBytes, kOperationFields };
/// Of those of one kind and path. Short puts and gets by load and store are counted and not timed.
enum TimeField : std::size_t { kTimedOperations, kOperationNs, kOperationWaiting, kTimeFields };
/// Of a synchronisation call; the times in the order of TimeField. Calls that cannot wait are counted and not timed.
enum SyncField : std::size_t { kCallsMade, kTimedCalls, kNanoseconds, kWaiting, kSyncFields };
/// The others.
enum class Other : std::uint8_t {
    LockContended,  // acquisitions that found the lock taken, on this node; requests of other nodes at their target
    LockHandOvers,  // releases that found a waiter, on this node
    FenceLast,      // fences that this process entered last; only in windows on one node
    Lifetime,       // ns between creation and free, or the report
    OwnBytes,       // bytes of libosc's own memory for the window
    Count
};

inline constexpr std::size_t kFirstTime = kKinds * kPaths * kSizes * kOperationFields;
inline constexpr std::size_t kFirstSync = kFirstTime + kKinds * kPaths * kTimeFields;
inline constexpr std::size_t kFirstOther = kFirstSync + kSyncs * kSyncFields;
inline constexpr std::size_t kValues = kFirstOther + static_cast<std::size_t>(Other::Count);

constexpr std::size_t index_of(Kind kind, DataPath path, std::size_t size, OperationField field = kOperations) {
    return ((static_cast<std::size_t>(kind) * kPaths + static_cast<std::size_t>(path)) * kSizes + size) *
               kOperationFields +
           field;
}
constexpr std::size_t index_of(Kind kind, DataPath path, TimeField field) {
    return kFirstTime + (static_cast<std::size_t>(kind) * kPaths + static_cast<std::size_t>(path)) * kTimeFields +
           field;
}
constexpr std::size_t index_of(Sync sync, SyncField field) {
    return kFirstSync + static_cast<std::size_t>(sync) * kSyncFields + field;
}
constexpr std::size_t index_of(Other other) {
    return kFirstOther + static_cast<std::size_t>(other);
}

/// Thread-safe if constructed so; otherwise only one thread at a time may count, which costs no locked instruction.
class Counters {
  public:
    explicit Counters(bool threaded) : threaded_(threaded) {}

    void operation(Kind kind, DataPath path, std::uint64_t bytes) {
        const std::size_t at = index_of(kind, path, size_class(bytes));
        add(at + kOperations, 1);
        add(at + kBytes, bytes);
    }
    /// How long a call took, and how much of it the thread spent in libosc's wait loops, in ns. `first`: index of
    /// kTimedOperations or kTimedCalls.
    void took(std::size_t first, std::int64_t ns, std::int64_t waiting) {
        add(first, 1);
        add(first + 1, static_cast<std::uint64_t>(ns));
        add(first + 2, static_cast<std::uint64_t>(waiting));
    }
    /// Corrects the path of an operation that was counted when it was queued. Its time is taken for the mean of the old
    /// path's.
    void reroute(Kind kind, DataPath from, DataPath to, std::uint64_t bytes) {
        const std::size_t size = size_class(bytes);
        operation(kind, to, bytes);
        add(index_of(kind, from, size), ~std::uint64_t{0});
        add(index_of(kind, from, size, kBytes), ~bytes + 1);
        const std::size_t old = index_of(kind, from, kTimedOperations);
        const std::uint64_t timed = value(old);
        for (std::size_t field = 0; timed != 0 && field < kTimeFields; ++field) {
            const std::uint64_t mean = value(old + field) / timed;
            add(index_of(kind, to, kTimedOperations) + field, mean);
            add(old + field, ~mean + 1);
        }
    }
    void synchronisation(Sync sync, SyncField field, std::uint64_t count = 1) { add(index_of(sync, field), count); }
    /// Also from libosc's own threads, at every thread level.
    void other(Other what, std::uint64_t count = 1) {
        values_[index_of(what)].fetch_add(count, std::memory_order_relaxed);
    }
    void set(Other what, std::uint64_t value) { values_[index_of(what)].store(value, std::memory_order_relaxed); }

    std::uint64_t value(std::size_t index) const { return values_[index].load(std::memory_order_relaxed); }

  private:
    void add(std::size_t index, std::uint64_t count) {
        std::atomic<std::uint64_t>& value = values_[index];
        if (__builtin_expect(threaded_, 0))
            value.fetch_add(count, std::memory_order_relaxed);
        else
            value.store(value.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    }
    std::array<std::atomic<std::uint64_t>, kValues> values_{};
    const bool threaded_;
};

/// The path that this thread's last operation took, where the target's way does not say it: to all targets but those
/// whose memory is mapped here.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local DataPath t_path = DataPath::LoadStore;

}  // namespace osc::stats
