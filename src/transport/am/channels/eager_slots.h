// Eager slots: the sender of a message writes it into slots of the receiver's memory, where receiving costs the
// provider more than writing (providers.def: kDeposits). The slots are filled from the last address down: a message
// ends where its first slot ends, and takes as many slots before it as it needs. It is the message's body and behind it
// a SlotHead. The last byte of the head arrives last; it has the number of the lap, which shows that the message is
// there. A message that reaches the first address takes fewer slots, because memory before them holds the rest.
//
// A receiver offers slots to a peer that sends often. Messages that are too long, and messages while not enough slots
// are free, travel as ordinary messages; each head counts the ordinary messages before it, so there is one order. The
// receiver reports how many slots it has emptied, in the heads of its own messages or by a frame. docs/NETWORK.md
// ("Slots") has the protocol.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "transport/am/wire.h"

namespace osc::am {

inline constexpr std::uint32_t kSlots = 128;
inline constexpr std::size_t kSlotBytes = 256;
inline constexpr std::size_t kLongestInSlots = fabric::kLargestMessage;  // head included
inline constexpr std::uint8_t kWholeFrames = 0;  // SlotHead::kind of a message of several frames

struct SlotHead {
    std::uint64_t window = 0;  // this and the next two as in Frame
    std::uint32_t origin = 0;
    std::uint32_t number = 0;
    std::uint16_t sends = 0;    // ordinary messages before it, since Begin
    std::uint16_t emptied = 0;  // slots of the receiver's messages to the sender
    std::uint16_t words = 0;    // of 8 bytes, before this head
    std::uint8_t kind = kWholeFrames;
    std::uint8_t lap = 0;
};
static_assert(std::is_trivially_copyable_v<SlotHead> && sizeof(SlotHead) == 24);
inline constexpr std::size_t kOneSlotBody = kSlotBytes - sizeof(SlotHead);
inline constexpr std::size_t kSlotBody = kLongestInSlots - sizeof(SlotHead);
inline constexpr std::size_t kBeforeSlots = kLongestInSlots - kSlotBytes;
inline constexpr std::size_t kSlotMemory = kBeforeSlots + kSlots * kSlotBytes;
static_assert(kLongestInSlots <= fabric::kLargestMessage && kLongestInSlots % kSlotBytes == 0);

/// The lap, never 0, of a message whose first slot is the `count`th.
constexpr std::uint8_t lap_of(std::uint32_t count) {
    return static_cast<std::uint8_t>(count / kSlots % 255 + 1);
}
/// Where the `count`th slot ends, in bytes from the beginning of the memory.
constexpr std::size_t slot_end(std::uint32_t count) {
    return kSlotMemory - count % kSlots * kSlotBytes;
}
/// How many slots a message of `bytes` bytes takes, head included, whose first slot is the `count`th. A malformed one
/// takes one slot.
constexpr std::uint32_t slots_of(std::size_t bytes, std::uint32_t count) {
    if (bytes > kLongestInSlots) return 1;
    const auto needed = static_cast<std::uint32_t>((bytes + kSlotBytes - 1) / kSlotBytes);
    return std::min(needed, kSlots - count % kSlots);
}

/// Where the slots are that a receiver offers.
struct SlotOffer {
    std::uint64_t base = 0;  // as Exposed's
    std::uint64_t key = 0;
};

/// The slots that a peer fills. Under the drive lock, unless said otherwise.
class EagerSlotsIn {
  public:
    explicit EagerSlotsIn(fabric::Endpoint& endpoint);
    ~EagerSlotsIn();
    EagerSlotsIn(const EagerSlotsIn&) = delete;
    EagerSlotsIn& operator=(const EagerSlotsIn&) = delete;

    /// False if the provider does not expose the memory.
    bool open() const { return exposed_.registration != nullptr; }
    SlotOffer offer() const { return {exposed_.base, exposed_.key}; }

    /// Begin has come: the sender uses the slots.
    void begin() { begun_ = true, sends_ = 0; }
    /// An ordinary message has come.
    void sent() { ++sends_; }
    /// Whether the next message is there. Earlier ordinary messages may still be missing.
    bool landed() const {
        const std::byte* last = memory_.get() + slot_end(emptied()) - 1;
        return std::atomic_ref(const_cast<std::byte&>(*last)).load(std::memory_order_acquire) ==
               std::byte{lap_of(emptied())};
    }
    /// Whether the next message is there, and all earlier ordinary messages have come.
    bool due() const;
    /// Takes the next message if it is due and complete; `body` has room for kSlotBody bytes. `announced`: an ordinary
    /// message behind it has come. `polls`: how many polls of the endpoint have reported nothing so far.
    bool take(SlotHead& head, std::byte* body, bool announced, std::uint64_t polls);
    /// How many slots were emptied; and the same, for a report to the sender. Thread-safe.
    std::uint32_t emptied() const { return emptied_.load(std::memory_order_relaxed); }
    std::uint16_t report_emptied() {
        const std::uint32_t emptied = emptied_.load(std::memory_order_acquire);
        reported_.store(emptied, std::memory_order_relaxed);
        return static_cast<std::uint16_t>(emptied);
    }
    /// Whether the sender may run out of slots without a report.
    bool must_report() const { return emptied() - reported_.load(std::memory_order_relaxed) >= kSlots / 2; }

  private:
    bool complete(std::uint64_t polls);
    void empty(std::uint32_t slots);

    fabric::Endpoint& endpoint_;
    std::unique_ptr<std::byte[]> memory_;
    fabric::Exposed exposed_;
    bool begun_ = false;
    std::uint16_t sends_ = 0;
    std::atomic<std::uint32_t> emptied_{0};
    std::atomic<std::uint32_t> reported_{0};
    // The message that is there but perhaps incomplete: its first slot's number, from 1 on, and `polls` when it was
    // first seen.
    std::uint32_t seen_ = 0;
    std::uint64_t seen_at_ = 0;
};

/// A peer's slots. One thread at a time uses them, the one that posts to the peer, unless said otherwise.
class EagerSlotsOut {
  public:
    /// The peer has offered its slots. They are used from the Begin frame on.
    void offered(const SlotOffer& offer) { offer_ = offer; }
    void begin() { begun_ = true, sends_ = 0; }
    bool begun() const { return begun_; }
    /// An ordinary message was sent.
    void sent() { ++sends_; }
    /// The peer has reported so many emptied slots. Called under the drive lock.
    void emptied(std::uint16_t count) {
        const std::uint16_t known = emptied_.load(std::memory_order_relaxed);
        if (static_cast<std::int16_t>(count - known) > 0) emptied_.store(count, std::memory_order_relaxed);
    }

    /// Whether there are slots for a message of `bytes` bytes, head included.
    bool has_room(std::size_t bytes) const {
        const auto used = static_cast<std::uint16_t>(filled_ - emptied_.load(std::memory_order_relaxed));
        return used + slots_of(bytes, filled_) <= kSlots;
    }
    /// Fills in the head of the next message.
    void complete(SlotHead& head) const { head.sends = sends_, head.lap = lap_of(filled_); }
    /// Where its `bytes` bytes are written, head included.
    std::uint64_t address(std::size_t bytes) const { return offer_.base + slot_end(filled_) - bytes; }
    std::uint64_t key() const { return offer_.key; }
    void filled(std::size_t bytes) { filled_ += slots_of(bytes, filled_); }

  private:
    SlotOffer offer_;
    bool begun_ = false;
    std::uint16_t sends_ = 0;
    std::uint32_t filled_ = 0;
    std::atomic<std::uint16_t> emptied_{0};
};

}  // namespace osc::am
