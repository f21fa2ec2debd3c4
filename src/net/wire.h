// The wire format: what libosc's processes send each other, byte by byte. docs/NETWORK.md ("Wire format") lists the
// messages and their invariants.
//
// A body is a row of records, each one operation on one run of bytes or one step of a synchronisation. Two channels
// carry bodies: between nodes a body travels in a frame; on a node it lies in a message slot of its sender
// (channels/mailbox.h). A reply is a status and, in the records' order, what they return.
//
// Integers are little-endian, as on every machine that libosc is built for. The receiver trusts nothing: check() and
// Records say what is well formed, and the executor (target/executor.h) checks each record against its window (I7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "fabric/endpoint.h"
#include "net/status.h"
#include "net/target/inspection.h"
#include "op/kernels.h"

namespace osc::net {

inline constexpr std::uint16_t kMagic = 0x636f;
inline constexpr std::uint8_t kVersion = 11;
inline constexpr std::size_t kAlign = 8;  // of records and of what replies return

enum class FrameKind : std::uint8_t {
    Request = 1,   // records; executed in the origin's order, so its later ones wait behind one that waits
    Query,         // records; executed at once, past the requests of the same origin that wait
    Notice,        // the same, without a reply
    Reply,         // ReplyHead, then what the records returned
    Ping,          // asks whether the process answers
    Pong,          // `number`: the sleeps of the process's network thread so far
    DelayedReply,  // a request whose sender does not wait: the reply may come with the next message
    ProgressHint,  // the sender writes or reads directly in the next milliseconds, which causes no event
    Hello,         // the sender's ProcessAddress, for a process that may lack it
    LookUp,        // asks for the others (AddressForm) of the part of rank `origin` in team `window`
};

struct Frame {
    std::uint16_t magic = kMagic;
    std::uint8_t version = kVersion;
    FrameKind kind = FrameKind::Request;
    std::uint32_t origin = 0;  // the sender's rank in the window; requests
    std::uint64_t secret = 0;  // the receiver's
    std::uint64_t sender = 0;  // its token
    std::uint64_t window = 0;
    std::uint32_t number = 0;  // of the request: the sender's own, given back by the reply
    std::uint32_t bytes = 0;   // after the header
};
static_assert(std::is_trivially_copyable_v<Frame> && sizeof(Frame) == 40);

inline constexpr std::size_t kBody = fabric::kLargestMessage - sizeof(Frame);

enum class Opcode : std::uint8_t {
    None,  // no record has it
#define OSC_RECORD(name, frame) name,
#include "net/records.def"
};

inline constexpr FrameKind kFrames[] = {
    FrameKind::Reply,  // which carries no records
#define OSC_RECORD(name, frame) FrameKind::frame,
#include "net/records.def"
};

/// Barging: shared, with LockContext::inside_lock_all.
enum class LockAsk : std::int64_t { Shared = 1, Exclusive = 2, Barging = 3 };

struct Record {
    Opcode opcode = Opcode::Put;
    Basic basic = Basic::None;
    Op op = Op::None;
    std::uint8_t flags = 0;   // of an operation: the length of the shape that it carries (net/shape.h)
    std::uint32_t bytes = 0;  // of the target's memory
    std::int64_t disp = 0;    // bytes from displacement 0; the address in a dynamic window
};
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 16);

/// What a target says about its part of a window.
struct Description {
    std::uint64_t size;     // bytes
    std::uint64_t unit;     // bytes
    std::uint64_t base;     // of displacement 0, for direct writes and reads
    std::uint64_t key;      // for these
    std::uint32_t exposed;  // 0: no direct writes and reads
    std::uint32_t dynamic;
    std::uint64_t words_base;  // of the words of two-level locks, in windows that have them
    std::uint64_t words_key;
};

/// An attached region. The origin may use the lease until the owner has withdrawn it.
struct Lease {
    std::uint64_t address = 0;
    std::uint64_t size = 0;    // 0: there is no region
    std::uint64_t base = 0;    // of `address`, for direct writes and reads
    std::uint64_t key = 0;     // for these
    std::uint32_t number = 0;  // a new one for each region that the owner attaches
    std::uint32_t exposed = 0;
};
static_assert(std::is_trivially_copyable_v<Lease> && sizeof(Lease) == 40);
inline constexpr std::uint32_t kMostLeases = 32;  // of one look-up

struct ReplyHead {
    Status status = Status::Done;
    std::uint32_t zero = 0;
};

/// Room that a record's data takes, and what it returns.
constexpr std::size_t padded(std::size_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
}

constexpr bool is_record(Opcode opcode) {
    return opcode != Opcode::None && static_cast<std::size_t>(opcode) < std::size(kFrames);
}

/// Whether a frame of this kind may carry the record. DelayedReply counts as Request.
constexpr bool travels_in(Opcode opcode, FrameKind kind) {
    return kFrames[static_cast<std::size_t>(opcode)] == kind;
}

constexpr bool is_operation(Opcode opcode) {
    return opcode <= Opcode::CompareAndSwap;
}

inline constexpr std::size_t kShapeUnit = 64;

/// Bytes of the description of pieces in front of an operation's data; 0: the operation is on one run of bytes.
constexpr std::size_t shape_bytes(const Record& record) {
    const bool has = record.opcode >= Opcode::Put && record.opcode <= Opcode::UpdateReturn;
    return has ? record.flags * kShapeUnit : 0;
}

/// Whether the operation changes the target's memory.
constexpr bool changes(const Record& record) {
    const bool combines = record.opcode == Opcode::Update || record.opcode == Opcode::UpdateReturn;
    return record.opcode != Opcode::Get && !(combines && record.op == Op::NoOp);
}

/// Bytes that a record carries, and that its reply returns.
constexpr std::size_t carried(const Record& record) {
    switch (record.opcode) {
        case Opcode::Put:
        case Opcode::Get:
        case Opcode::Update:
        case Opcode::UpdateReturn:
            return shape_bytes(record) + (changes(record) ? record.bytes : 0);
        case Opcode::CompareAndSwap:
            return std::size_t{2} * record.bytes;
        case Opcode::Inspect:
            return sizeof(InspectQuestion);
        default:
            return 0;
    }
}
constexpr std::size_t returned(const Record& record) {
    switch (record.opcode) {
        case Opcode::Get:
        case Opcode::UpdateReturn:
        case Opcode::CompareAndSwap:
            return record.bytes;
        case Opcode::Describe:
            return sizeof(Description);
        case Opcode::Lookup:
            return std::size_t{record.bytes} * sizeof(Lease);
        case Opcode::Expose:
            return sizeof(Lease);
        case Opcode::Inspect:
            return sizeof(Inspection);
        case Opcode::Counters:
            return sizeof(std::uint64_t);
        default:
            return 0;
    }
}

// The longest answers to one record that is no operation fit the shortest messages.
static_assert(sizeof(Frame) + sizeof(ReplyHead) + kMostLeases * sizeof(Lease) <= fabric::kSmallestBuffer &&
              sizeof(Frame) + sizeof(ReplyHead) + sizeof(Inspection) <= fabric::kSmallestBuffer);

/// Whether a message begins with a frame of this version for a receiver with this secret; `frame` is the header's copy.
/// Bytes behind the frame are another frame.
inline bool check(const std::byte* message, std::size_t bytes, std::uint64_t secret, Frame& frame) {
    if (bytes < sizeof(Frame)) return false;
    std::memcpy(&frame, message, sizeof frame);
    return frame.magic == kMagic && frame.version == kVersion && frame.secret == secret &&
           frame.kind >= FrameKind::Request && frame.kind <= FrameKind::LookUp && frame.bytes % kAlign == 0 &&
           frame.bytes <= bytes - sizeof(Frame);
}

/// Reads the records of a body one after the other. Copies each before it checks it: on a node the sender can still
/// change the body.
class Records {
  public:
    Records(const std::byte* body, std::size_t bytes, std::size_t at = 0) : body_(body), bytes_(bytes), at_(at) {}

    bool done() const { return at_ == bytes_; }
    std::size_t at() const { return at_; }
    /// The next record and the data that it carries; false if there is none that is whole.
    bool next(Record& record, const std::byte*& data) {
        if (bytes_ - at_ < sizeof(Record)) return false;
        std::memcpy(&record, body_ + at_, sizeof record);
        if (!is_record(record.opcode)) return false;
        const std::size_t follows = padded(carried(record));
        if (bytes_ - at_ - sizeof(Record) < follows) return false;
        data = body_ + at_ + sizeof(Record);
        at_ += sizeof(Record) + follows;
        return true;
    }

    /// Moves on to the next record if it equals the last one, `record`, in all but its displacement.
    bool next_alike(Record& record, const std::byte*& data) {
        const std::size_t step = sizeof(Record) + padded(carried(record));
        if (bytes_ - at_ < step) return false;
        Record next;
        std::memcpy(&next, body_ + at_, sizeof next);
        if (std::memcmp(&next, &record, offsetof(Record, disp)) != 0) return false;
        record.disp = next.disp;
        data = body_ + at_ + sizeof(Record);
        at_ += step;
        return true;
    }
    /// The displacement of the record so many steps of next_alike() further, if there is one: a guess before that.
    std::int64_t guess(const Record& record, std::size_t steps) const {
        const std::size_t at = at_ + steps * (sizeof(Record) + padded(carried(record)));
        std::int64_t disp = record.disp;
        if (at < bytes_ && bytes_ - at >= sizeof(Record))
            std::memcpy(&disp, body_ + at + offsetof(Record, disp), sizeof disp);
        return disp;
    }

  private:
    const std::byte* body_;
    std::size_t bytes_;
    std::size_t at_;
};

}  // namespace osc::net
