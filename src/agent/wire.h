// What libosc's processes on different nodes send each other, byte by byte: messages of one frame or several, each with
// a header, and in a request a row of records, each one operation on one run of bytes or one step of a synchronisation.
// Integers are little-endian, as on every machine that libosc is built for. Nothing received is trusted: `check` and
// Records say what is well formed, and whoever executes a record still checks it against the window (invariant I7).
//
// A request or query is answered by one reply: a status and, in the records' order, what they return. The fuzzers in
// tests/fuzz and the unit tests feed these functions with everything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "agent/work.h"
#include "op/kernels.h"
#include "transport/ofi/endpoint.h"

namespace osc::net {

inline constexpr std::uint16_t kMagic = 0x636f;
inline constexpr std::uint8_t kVersion = 3;
inline constexpr std::size_t kAlign = 8;  // of records and of what replies return

enum class FrameKind : std::uint8_t {
    Request = 1,  // records; executed in the order in which the origin sent them, lock by lock
    Query,        // records that nothing the same origin has sent for the window may hold up
    Notice,       // the same, without a reply
    Reply,
    Ping,  // asks whether the process answers
    Pong,
    Unhurried,  // a request whose sender does not wait for the reply: that may come with the next message
    Stir,       // the sender writes or reads directly, which no event tells of, for the next milliseconds
    // See agent/slots.h.
    Slots,    // offers them
    Begin,    // the sender uses those that it was offered from now on
    Emptied,  // number: how many the sender has emptied
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

inline constexpr std::size_t kBody = ofi::kLargestMessage - sizeof(Frame);

using agent::Status;

enum class What : std::uint8_t {
    // Operations, numbered as agent::Kind.
    Put = static_cast<std::uint8_t>(agent::Kind::Put),
    Get,
    Update,
    UpdateReturn,
    CompareAndSwap,
    Lock,      // disp: LockAsk
    Unlock,    // gives back the lock that the origin holds
    Post,      // the sender's exposure epoch is open for the receiver
    Complete,  // the sender's access epoch to the receiver is over
    Barrier,   // disp: the barrier's number, bytes: its round, flags: sync::Want, and what is told of checked asserts
    Describe,  // returns Description
    // Regions of a dynamic window: see agent/leases.h.
    Lookup,    // disp: an address; returns `bytes` leases, from the region that holds the address on
    Expose,    // disp: an address; returns one lease, of a region that may be written and read directly from now on
    Withdraw,  // disp and bytes: address and number of a lease that its owner takes back
    // Fences: see docs/NETWORK.md.
    FenceOpen,   // disp: a fence's number; what follows waits until the receiver has made it
    FenceClose,  // the sender's operations of a fence's epoch on the receiver are over
    FenceCount,  // disp: a rank, bytes: how many have closed an epoch to it; told with the Barrier record that follows
};

enum class LockAsk : std::int64_t { Shared = 1, Exclusive = 2, Passing = 3 };  // Passing: shared, inside a lock_all

struct Record {
    What what = What::Put;
    Basic basic = Basic::None;
    Op op = Op::None;
    std::uint8_t flags = 0;
    std::uint32_t bytes = 0;  // of the target's memory
    std::int64_t disp = 0;    // bytes from displacement 0; the address in a dynamic window
};
static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) == 16);

/// What an origin wants to know of a target.
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

/// An attached region as its owner tells of it. The origin may go by it until the owner has withdrawn it.
struct Lease {
    std::uint64_t address = 0;
    std::uint64_t size = 0;    // 0: there is no region
    std::uint64_t base = 0;    // of `address`, for direct writes and reads
    std::uint64_t key = 0;     // for these
    std::uint32_t number = 0;  // another one for each region that the owner attaches
    std::uint32_t exposed = 0;
};
static_assert(std::is_trivially_copyable_v<Lease> && sizeof(Lease) == 40);
inline constexpr std::uint32_t kMostLeases = 64;  // of one look-up

struct ReplyHead {
    Status status = Status::Done;
    std::uint32_t zero = 0;
};

constexpr std::size_t padded(std::size_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
}

static_assert(static_cast<int>(What::CompareAndSwap) == static_cast<int>(agent::Kind::CompareAndSwap));
constexpr bool is_operation(What what) {
    return what <= What::CompareAndSwap;
}

/// Bytes that a record carries, and that its reply returns.
constexpr std::size_t carried(const Record& record) {
    switch (record.what) {
        case What::Put:
            return record.bytes;
        case What::Update:
        case What::UpdateReturn:
            return record.op == Op::NoOp ? 0 : record.bytes;
        case What::CompareAndSwap:
            return std::size_t{2} * record.bytes;
        default:
            return 0;
    }
}
constexpr std::size_t returned(const Record& record) {
    switch (record.what) {
        case What::Get:
        case What::UpdateReturn:
        case What::CompareAndSwap:
            return record.bytes;
        case What::Describe:
            return sizeof(Description);
        case What::Lookup:
            return std::size_t{record.bytes} * sizeof(Lease);
        case What::Expose:
            return sizeof(Lease);
        default:
            return 0;
    }
}

/// Whether a message begins with a frame of ours for a receiver with this secret; `frame` is its header. What follows
/// it is another frame.
inline bool check(const std::byte* message, std::size_t bytes, std::uint64_t secret, Frame& frame) {
    if (bytes < sizeof(Frame)) return false;
    std::memcpy(&frame, message, sizeof frame);
    return frame.magic == kMagic && frame.version == kVersion && frame.secret == secret &&
           frame.kind >= FrameKind::Request && frame.kind <= FrameKind::Emptied && frame.bytes % kAlign == 0 &&
           frame.bytes <= bytes - sizeof(Frame);
}

/// Reads the records of a request's body one after the other.
class Records {
  public:
    Records(const std::byte* body, std::size_t bytes, std::size_t at = 0) : body_(body), bytes_(bytes), at_(at) {}

    bool done() const { return at_ == bytes_; }
    std::size_t at() const { return at_; }
    /// The next record and the data that it carries; false if there is none that is whole.
    bool next(Record& record, const std::byte*& data) {
        if (bytes_ - at_ < sizeof(Record)) return false;
        std::memcpy(&record, body_ + at_, sizeof record);
        if (record.what < What::Put || record.what > What::FenceCount) return false;
        const std::size_t follows = padded(carried(record));
        if (bytes_ - at_ - sizeof(Record) < follows) return false;
        data = body_ + at_ + sizeof(Record);
        at_ += sizeof(Record) + follows;
        return true;
    }

  private:
    const std::byte* body_;
    std::size_t bytes_;
    std::size_t at_;
};

}  // namespace osc::net
