// What the timeline (OSC_TRACE) consists of: records of 32 bytes, each one interval of one thread. Entry points,
// waits and messages write them (recorder.h); the merge turns them into JSON (merge.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace osc::trace {

/// The entry points, by their names in entries.def and notify.def. None marks a record that is not written.
enum class Call : std::uint8_t {
    None,
#define OSC_ENTRY(kind, name, parameters, arguments) name,
#include "api/entries.def"
#define OSC_NOTIFY_ENTRY(kind, name) name,
#include "api/notify.def"
    Count
};

/// Whether a call is of osc/notify.h.
constexpr bool is_notified(std::uint8_t call) {
    return call >= static_cast<std::uint8_t>(Call::Put_notify) && call < static_cast<std::uint8_t>(Call::Count);
}

/// What a record says: one of Call, or one of these.
enum class Kind : std::uint8_t {
    Wait = 200,    // detail: shm::WaitKind, number: the target
    Send,          // a message to another node. detail: place in kMessages, number: bytes, value: flow
    Handle,        // the receiver handles it; the same detail, number and value
    AskAgent,      // a message to an agent of this node. number: bytes, value: flow
    ServeAgent,    // the agent executes it
    ClockSend,     // a message that only measures clocks, before its sending; value: flow
    ClockReceive,  // after its arrival
    Notify,        // the process increments a counter. number: the counter, value: flow
    Notified,      // the owner of the counter has seen it; the same number and value
};
static_assert(static_cast<int>(Call::Count) < static_cast<int>(Kind::Wait));

/// Kinds of messages between nodes, in the order of net::FrameKind.
inline constexpr const char* kMessages[] = {"message", "request",         "query",         "notice", "reply",  "ping",
                                            "pong",    "delayed request", "progress hint", "hello",  "look-up"};

/// Bits of the detail of a call.
inline constexpr std::uint8_t kFailed = 0x80;     // the call returned an error
inline constexpr std::uint8_t kExclusive = 1;     // MPI_Win_lock
inline constexpr std::uint8_t kNoSucceed = 1;     // MPI_Win_fence with MPI_MODE_NOSUCCEED
inline constexpr std::uint8_t kExposureOver = 1;  // MPI_Win_test that ended the epoch
inline constexpr std::uint32_t kNoTarget = ~std::uint32_t{0};
/// A notified operation's value is its bytes, and its counter from this bit on. Its other calls have the counter as
/// number.
inline constexpr unsigned kCounterBit = 44;

/// Kind, detail, window and number of a record as one word, which is never 0.
constexpr std::uint64_t pack(std::uint8_t kind, std::uint8_t detail, std::uint16_t window, std::uint32_t number) {
    return kind | std::uint64_t{detail} << 8 | std::uint64_t{window} << 16 | std::uint64_t{number} << 32;
}
constexpr std::uint64_t pack(Call call, std::uint8_t detail, std::uint16_t window, std::uint32_t number) {
    return pack(static_cast<std::uint8_t>(call), detail, window, number);
}
constexpr std::uint64_t pack(Kind kind, std::uint8_t detail, std::uint32_t number) {
    return pack(static_cast<std::uint8_t>(kind), detail, 0, number);
}

/// One interval as a thread writes it. `what` comes last, so that a reader of a crashed process's file sees whole
/// records only.
struct Record {
    std::uint64_t begin;  // base::stamp()
    std::uint64_t end;    // the same as `begin`: shorter than two readings of the clock
    std::uint64_t value;  // of an operation: bytes
    std::atomic<std::uint64_t> what;
};
static_assert(sizeof(Record) == 32);

/// A record that a reader has taken apart.
struct Event {
    std::uint64_t begin = 0, end = 0, value = 0;
    std::uint8_t kind = 0, detail = 0;
    std::uint16_t window = 0;
    std::uint32_t number = 0;

    Event() = default;
    Event(const Record& record, std::uint64_t what)
        : begin(record.begin),
          end(record.end),
          value(record.value),
          kind(static_cast<std::uint8_t>(what)),
          detail(static_cast<std::uint8_t>(what >> 8)),
          window(static_cast<std::uint16_t>(what >> 16)),
          number(static_cast<std::uint32_t>(what >> 32)) {}
    bool is(Kind other) const { return kind == static_cast<std::uint8_t>(other); }
    bool is(Call other) const { return kind == static_cast<std::uint8_t>(other); }
};

/// The number of a message's arrow, which both of its ends compute: `count` is the message's place among those from one
/// process to another.
constexpr std::uint64_t flow_of(std::uint64_t from, std::uint64_t to, std::uint64_t count) {
    const auto mix = [](std::uint64_t x) {  // SplitMix64's
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
    };
    return mix(mix(mix(from + 0x9e3779b97f4a7c15ull) ^ to) + count);
}

}  // namespace osc::trace
