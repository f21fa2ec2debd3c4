// Small messages that their sender writes straight into slots of the receiver's memory, where receiving costs the
// provider more than writing (providers.def: kDeposits). A slot is filled from its end: the message's body, and behind
// it a SlotHead, whose last byte is the last one to come, and tells by the lap that it is of that the slot is full.
//
// A peer that sends often is offered slots. Messages that have no room there, and all while there is no slot free, go
// the ordinary way; each slot's head says behind how many of these it comes, so that there is one order. The receiver
// tells, with what goes the other way or by a frame of its own, how many slots it has emptied.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "agent/wire.h"

namespace osc::net {

inline constexpr std::uint32_t kSlots = 32;
inline constexpr std::size_t kSlotBytes = 256;
inline constexpr std::uint8_t kWholeFrames = 0;  // SlotHead::kind of messages that are more than one frame

struct SlotHead {
    std::uint64_t window = 0;  // these as in Frame
    std::uint32_t origin = 0;
    std::uint32_t number = 0;
    std::uint16_t sends = 0;    // ordinary messages before it, since the sender began to use the slots
    std::uint16_t emptied = 0;  // of the receiver's messages to the sender
    std::uint8_t kind = kWholeFrames;
    std::uint8_t words = 0;  // of 8 bytes, before this head
    std::uint8_t zero = 0;
    std::uint8_t lap = 0;
};
static_assert(std::is_trivially_copyable_v<SlotHead> && sizeof(SlotHead) == 24);
inline constexpr std::size_t kSlotBody = kSlotBytes - sizeof(SlotHead);

/// The lap, never 0, of the `count`th message through some slots.
constexpr std::uint8_t lap_of(std::uint32_t count) {
    return static_cast<std::uint8_t>(count / kSlots % 255 + 1);
}
/// Where the slot of the `count`th message ends, in bytes from the first slot.
constexpr std::size_t slot_end(std::uint32_t count) {
    return (count % kSlots + 1) * kSlotBytes;
}

/// What a receiver offers.
struct SlotOffer {
    std::uint64_t base = 0;  // as Exposed's
    std::uint64_t key = 0;
};

/// The slots that a peer fills. Under the network's `drive_`, but where it says otherwise.
class SlotsIn {
  public:
    explicit SlotsIn(ofi::Endpoint& endpoint);
    ~SlotsIn();
    SlotsIn(const SlotsIn&) = delete;
    SlotsIn& operator=(const SlotsIn&) = delete;

    /// False if the provider does not expose the memory.
    bool open() const { return exposed_.registration != nullptr; }
    SlotOffer offer() const { return {exposed_.base, exposed_.key}; }

    /// The sender has begun to use them.
    void begin() { begun_ = true, sends_ = 0; }
    /// An ordinary message has come.
    void sent() { ++sends_; }
    /// Whether the next message is there; perhaps not yet its turn.
    bool landed() const {
        const std::byte* last = memory_.get() + slot_end(emptied()) - 1;
        return std::atomic_ref(const_cast<std::byte&>(*last)).load(std::memory_order_acquire) ==
               std::byte{lap_of(emptied())};
    }
    /// The next message is there, and what is before it has come.
    bool due() const;
    /// Takes the next message, if it is there, and whole, and its turn; `body` has room for kSlotBody bytes.
    /// `announced`: an ordinary message behind it has come. `polls`: of the endpoint, that have reported nothing so
    /// far.
    bool take(SlotHead& head, std::byte* body, bool announced, std::uint64_t polls);
    /// Any thread: how many were taken; and the same, to be told to the sender.
    std::uint32_t emptied() const { return emptied_.load(std::memory_order_relaxed); }
    std::uint16_t tell() {
        const std::uint32_t emptied = emptied_.load(std::memory_order_acquire);
        told_.store(emptied, std::memory_order_relaxed);
        return static_cast<std::uint16_t>(emptied);
    }
    /// The sender may run out of slots before it is told.
    bool to_be_told() const { return emptied() - told_.load(std::memory_order_relaxed) >= kSlots / 2; }

  private:
    bool whole(std::uint64_t polls);

    ofi::Endpoint& endpoint_;
    std::unique_ptr<std::byte[]> memory_;
    ofi::Exposed exposed_;
    bool begun_ = false;
    std::uint16_t sends_ = 0;
    std::atomic<std::uint32_t> emptied_{0};
    std::atomic<std::uint32_t> told_{0};
    // That is there, but perhaps not whole: the number of the message, from 1 on, and the polls when it was seen first.
    std::uint32_t seen_ = 0;
    std::uint64_t seen_at_ = 0;
};

/// A peer's slots, of whoever posts messages to it, one at a time.
class SlotsOut {
  public:
    /// The peer has offered them; they are used once it was told so, and that has been sent.
    void offered(const SlotOffer& offer) { offer_ = offer; }
    void begin() { begun_ = true, sends_ = 0; }
    bool begun() const { return begun_; }
    /// An ordinary message was sent.
    void sent() { ++sends_; }
    /// Of the thread that drives: the peer has emptied so many.
    void emptied(std::uint16_t count) {
        const std::uint16_t known = emptied_.load(std::memory_order_relaxed);
        if (static_cast<std::int16_t>(count - known) > 0) emptied_.store(count, std::memory_order_relaxed);
    }

    bool full() const {
        return static_cast<std::uint16_t>(filled_ - emptied_.load(std::memory_order_relaxed)) >= kSlots;
    }
    /// Completes the head of the next message.
    void complete(SlotHead& head) const { head.sends = sends_, head.lap = lap_of(filled_); }
    /// Where its `bytes` bytes go, head included.
    std::uint64_t address(std::size_t bytes) const { return offer_.base + slot_end(filled_) - bytes; }
    std::uint64_t key() const { return offer_.key; }
    void filled() { ++filled_; }

  private:
    SlotOffer offer_;
    bool begun_ = false;
    std::uint16_t sends_ = 0;
    std::uint32_t filled_ = 0;
    std::atomic<std::uint16_t> emptied_{0};
};

}  // namespace osc::net
