// The tables, updates and kinds of updates of random_bound.cpp.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace random_bound {

inline constexpr std::size_t kBundle = 1024;     // updates under way per rank
inline constexpr std::size_t kChunkWords = 512;  // that share a lock word
inline constexpr std::size_t kMostStripes = 256;

struct Update {
    std::uint64_t value;
    std::int32_t owner;
    std::int32_t index;
};
struct Item {
    std::int64_t index;
    std::uint64_t value;
};

// Steele, Lea and Flood's mixer (SplitMix64).
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// A table of `words` words per rank, twice: in a window for MPI's operations, and in plain shared memory with lock
/// words, boxes for bundles and a barrier. Collective.
class Table {
  public:
    int rank = 0;
    int ranks = 0;
    MPI_Win win = MPI_WIN_NULL;

    Table(std::size_t words, std::size_t items) : words_(words), items_(items) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        MPI_Win_allocate(static_cast<MPI_Aint>(words * 8), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &in_window_, &win);
        void* own = nullptr;
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes()), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &plain_);
        for (int r = 0; r < ranks; ++r) {
            MPI_Aint size = 0;
            int unit = 0;
            std::byte* at = nullptr;
            MPI_Win_shared_query(plain_, r, &size, &unit, &at);
            parts_.push_back(at);
        }
        std::memset(own, 0, bytes());
        MPI_Barrier(MPI_COMM_WORLD);
    }
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table() {
        MPI_Win_free(&plain_);
        MPI_Win_free(&win);
    }

    std::uint64_t* words(int owner) const { return reinterpret_cast<std::uint64_t*>(parts_[at(owner)] + kHead); }
    std::uint64_t* word(const Update& u) const { return words(u.owner) + u.index; }
    /// The lock word of an update, if each rank has `stripes` of them.
    std::atomic<std::uint32_t>& stripe(const Update& u, std::size_t stripes) const {
        // A cache line for each.
        auto* const locks = reinterpret_cast<std::atomic<std::uint32_t>*>(words(u.owner) + words_);
        return locks[static_cast<std::size_t>(u.index) / kChunkWords % stripes * 16];
    }
    /// What `from` sends to `to`: how many items, and the items.
    std::size_t* sent(int from, int to) const { return reinterpret_cast<std::size_t*>(parts_[at(from)] + 64) + to; }
    Item* box(int from, int to) const {
        return reinterpret_cast<Item*>(parts_[at(from)] + kHead + words_ * 8 + stripe_bytes()) + at(to) * items_;
    }
    const std::uint64_t* own(bool in_window) const { return in_window ? in_window_ : words(rank); }
    std::size_t size() const { return words_; }

    void clear(bool in_window) {
        if (in_window) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
        std::memset(in_window ? in_window_ : words(rank), 0, words_ * 8);
        if (in_window) MPI_Win_unlock(rank, win);
    }

    /// A barrier in shared memory.
    void meet() const {
        auto* const count = reinterpret_cast<std::atomic<std::uint32_t>*>(parts_[0]);
        const auto all = static_cast<std::uint32_t>(ranks);
        const std::uint32_t end = (count->fetch_add(1, std::memory_order_acq_rel) / all + 1) * all;
        for (int spins = 0; static_cast<std::int32_t>(count->load(std::memory_order_acquire) - end) < 0;)
            if (++spins > 10000) ::sched_yield();
    }

  private:
    static constexpr std::size_t kHead = 4096;
    static std::size_t at(int r) { return static_cast<std::size_t>(r); }
    std::size_t stripe_bytes() const { return kMostStripes * 64; }
    std::size_t bytes() const { return kHead + words_ * 8 + stripe_bytes() + at(ranks) * items_ * sizeof(Item); }

    std::size_t words_;
    std::size_t items_;
    std::uint64_t* in_window_ = nullptr;
    MPI_Win plain_ = MPI_WIN_NULL;
    std::vector<std::byte*> parts_;
};

template <class Kind>
std::vector<Update> make_updates(const Table& table, std::size_t count) {
    std::vector<Update> updates(count);
    std::uint64_t random = mix(static_cast<std::uint64_t>(table.rank) + 1);
    for (Update& u : updates) {
        random = mix(random);
        u.owner = static_cast<std::int32_t>((random >> 40) % static_cast<std::uint64_t>(table.ranks));
        u.index = static_cast<std::int32_t>(random & (table.size() - 1));
        u.value = Kind::value(random);
    }
    return updates;
}

template <class T>
T over_all(T value, MPI_Datatype type, MPI_Op op) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, type, op, MPI_COMM_WORLD);
    return value;
}

struct Xor {
    static constexpr const char* kName = "xor";
    static constexpr std::size_t kBits = 20;
    static constexpr std::size_t kPerWord = 4;
    static constexpr bool kFenced = false;
    static constexpr bool kSwaps = false;
    static MPI_Datatype type() { return MPI_UINT64_T; }
    static MPI_Op op() { return MPI_BXOR; }
    static std::uint64_t value(std::uint64_t random) { return random; }
    static void apply(std::uint64_t& word, std::uint64_t value) { word ^= value; }
    static void atomically(std::uint64_t* word, std::uint64_t value) {
        std::atomic_ref(*word).fetch_xor(value, std::memory_order_relaxed);
    }
    static bool is_right(const Table& table, bool in_window, const std::vector<Update>& updates) {
        std::uint64_t all = 0;
        for (const Update& u : updates)
            all ^= u.value;
        for (std::size_t i = 0; i < table.size(); ++i)
            all ^= table.own(in_window)[i];
        return over_all(all, MPI_UINT64_T, MPI_BXOR) == 0;
    }
};

// Sums of ones, which are exact in any order.
struct Sum {
    static constexpr const char* kName = "sum of doubles";
    static constexpr std::size_t kBits = 17;
    static constexpr std::size_t kPerWord = 8;
    static constexpr bool kFenced = true;
    static constexpr bool kSwaps = false;
    static MPI_Datatype type() { return MPI_DOUBLE; }
    static MPI_Op op() { return MPI_SUM; }
    static std::uint64_t value(std::uint64_t) { return std::bit_cast<std::uint64_t>(1.0); }
    static std::uint64_t add(std::uint64_t word, std::uint64_t value) {
        return std::bit_cast<std::uint64_t>(std::bit_cast<double>(word) + std::bit_cast<double>(value));
    }
    static void apply(std::uint64_t& word, std::uint64_t value) { word = add(word, value); }
    static void atomically(std::uint64_t* word, std::uint64_t value) {
        const std::atomic_ref shared(*word);
        std::uint64_t before = shared.load(std::memory_order_relaxed);
        while (!shared.compare_exchange_weak(before, add(before, value), std::memory_order_relaxed))
            continue;
    }
    static bool is_right(const Table& table, bool in_window, const std::vector<Update>& updates) {
        double all = -static_cast<double>(updates.size());
        for (std::size_t i = 0; i < table.size(); ++i)
            all += std::bit_cast<double>(table.own(in_window)[i]);
        return over_all(all, MPI_DOUBLE, MPI_SUM) == 0;
    }
};

// The first update of a word stays.
struct Swap {
    static constexpr const char* kName = "swap";
    static constexpr std::size_t kBits = 17;
    static constexpr std::size_t kPerWord = 8;
    static constexpr bool kFenced = false;
    static constexpr bool kSwaps = true;
    static MPI_Datatype type() { return MPI_UINT64_T; }
    static MPI_Op op() { return MPI_OP_NULL; }
    static std::uint64_t value(std::uint64_t random) { return random | 1; }
    static void apply(std::uint64_t& word, std::uint64_t value) {
        if (word == 0) word = value;
    }
    static void atomically(std::uint64_t* word, std::uint64_t value) {
        std::uint64_t none = 0;
        std::atomic_ref(*word).compare_exchange_strong(none, value, std::memory_order_relaxed);
    }
    /// Every word with an update has the value of one of this rank's or the other ranks' updates: it is odd.
    static bool is_right(const Table& table, bool in_window, const std::vector<Update>& updates) {
        bool right = true;
        for (const Update& u : updates)
            if (u.owner == table.rank) right = right && table.own(in_window)[u.index] != 0;
        for (std::size_t i = 0; i < table.size(); ++i)
            right = right && (table.own(in_window)[i] == 0 || (table.own(in_window)[i] & 1) != 0);
        return over_all(right ? 1 : 0, MPI_INT, MPI_MIN) == 1;
    }
};

}  // namespace random_bound
