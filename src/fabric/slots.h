// Registered slots: an endpoint whose provider needs registered memory copies short transfers through them, because a
// copy takes less time than a look at the registration cache, and far less than a registration.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace osc::fabric {

/// What an operation does with its local memory: whether it sends the contents, and where the part that it changes
/// lies.
struct Results {
    bool sent = true;
    std::size_t offset = 0;
    std::size_t bytes = 0;  // 0: it changes nothing
};

/// Thread-safe after open().
class Slots {
  public:
    static constexpr std::size_t kBytes = 4096;
    static constexpr int kCount = 64;

    Slots() = default;
    ~Slots() {
        if (memory_ != nullptr) ::munmap(memory_, kCount * kBytes);
    }
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    /// Maps the slots' memory, which the caller registers. Null if the system has none.
    std::byte* open() {
        void* const memory =
            ::mmap(nullptr, kCount * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        memory_ = static_cast<std::byte*>(memory);
        free_.store(~std::uint64_t{0}, std::memory_order_relaxed);
        return memory_;
    }

    /// A slot for `bytes` bytes of `memory`; -1 if none is free. `results`: what give_back() copies to `memory`.
    int take(std::byte* memory, std::size_t bytes, const Results& results) {
        std::uint64_t free = free_.load(std::memory_order_relaxed);
        do {
            if (free == 0) return -1;
        } while (!free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire));
        const int slot = std::countr_zero(free);
        users_[slot] = {memory, results};
        if (results.sent) std::memcpy(at(slot), memory, bytes);
        return slot;
    }
    /// Frees a slot after its operation; `done`: the results are there.
    void give_back(int slot, bool done) {
        const auto& [memory, results] = users_[slot];
        if (done && results.bytes > 0) std::memcpy(memory + results.offset, at(slot) + results.offset, results.bytes);
        free_.fetch_or(std::uint64_t{1} << slot, std::memory_order_release);
    }
    std::byte* at(int slot) const { return memory_ + static_cast<std::size_t>(slot) * kBytes; }

  private:
    struct User {
        std::byte* memory;
        Results results;
    };
    std::byte* memory_ = nullptr;
    std::atomic<std::uint64_t> free_{0};  // a bit for each slot
    User users_[kCount]{};
};
static_assert(Slots::kCount == 64);

}  // namespace osc::fabric
