// The interface of a libfabric endpoint, without libfabric's types. The implementation is a library of its own
// (libosc_ofi.so), which is loaded when the first window spans nodes, so that a job on one node never loads libfabric.
//
// Thread-safety: any thread may call send, write, read, insert, expose and revoke at any time; one thread at a time may
// call poll or sleep. Only sleep() and await() block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "op/types.h"

namespace osc::fabric {

/// The address of an endpoint. Processes exchange these bytes.
struct Address {
    std::uint32_t size = 0;  // bytes in use; 0: none
    std::byte bytes[60]{};
};

/// This endpoint's number for a peer.
using PeerId = std::uint64_t;

/// The largest message of any provider, in bytes: 64 KiB of data and a header.
inline constexpr std::size_t kLargestMessage = 66560;
/// The same of providers over ofi_rxm, which allocates two pools of 1,024 buffers of this size and a header, touches
/// all of them, and pins them for a network adapter.
inline constexpr std::size_t kLargestBuffered = 2304;
inline constexpr std::size_t kSmallestBuffer = 2048;

/// An operation of the provider. Its owner keeps it until the polling thread has called `ended`; `error` is 0 or a
/// libfabric error number.
struct Operation {
    void* provider[8]{};  // for the provider's use
    void (*ended)(Operation&, int error) = nullptr;
    void* pinned = nullptr;        // the result of Endpoint::pin() for a message's memory, if its owner called it
    void* registration = nullptr;  // the endpoint's, of the local memory, if the provider requires one
    int slot = -1;                 // the endpoint's registered slot that stands for the local memory; -1: none
};

enum class Posted {
    Yes,
    Again,  // the provider has no room now
    Failed,
    NoMemory,  // the provider cannot register the operation's local memory, and no operation in flight may free some
};

/// The forms of an atomic on a row of elements. Update returns nothing, Fetch the previous values; Swap stores the
/// operands where the elements equal the expected values, and returns the previous values.
enum class RowForm : std::uint8_t { Update, Fetch, Swap };

/// An atomic of the provider on adjacent elements, each by itself. Only such atomics may access the elements, because
/// software providers do not use the processor's atomics. The provider uses this object's memory until the operation
/// has ended.
class AtomicRow {
  public:
    /// `operation`: for Update and Fetch. `width`: bytes of an element.
    AtomicRow(RowForm how, Basic basic, Op operation, std::size_t elements, std::size_t width)
        : form(how),
          type(basic),
          op(operation),
          count(elements),
          bytes(elements * width),
          memory_(std::make_unique_for_overwrite<std::byte[]>(parts() * bytes)) {}

    /// The operands, the previous values (Fetch, Swap), and the expected values (Swap).
    std::byte* operands() const { return memory_.get(); }
    std::byte* before() const { return memory_.get() + bytes; }
    std::byte* expected() const { return memory_.get() + 2 * bytes; }
    /// All of them.
    std::size_t used() const { return parts() * bytes; }

    const RowForm form;
    const Basic type;
    const Op op;
    const std::size_t count;
    const std::size_t bytes;

  private:
    std::size_t parts() const { return 1 + static_cast<std::size_t>(form); }

    std::unique_ptr<std::byte[]> memory_;
};

/// Memory that peers may write and read.
struct Exposed {
    void* registration = nullptr;  // null: nothing is exposed
    std::uint64_t key = 0;         // random; peers give it with each access
    std::uint64_t base = 0;        // the address that peers give for the memory's first byte
};

/// poll() calls it in the polling thread. `message` is valid during the call and may be changed.
class Receiver {
  public:
    virtual void received(std::byte* message, std::size_t bytes) = 0;

  protected:
    ~Receiver() = default;
};

class Endpoint {
  public:
    virtual ~Endpoint() = default;
    virtual const Address& address() const = 0;
    virtual const char* provider() const = 0;
    /// The provider's place in the order of preference, which is the same in all processes of a job.
    virtual int preference() const { return 0; }
    /// The better providers that could not be opened, with the reasons; "" if there are none.
    virtual const char* passed_over() const { return ""; }
    /// The name of the network adapter; "" if the provider does not say.
    virtual std::string adapter() const { return ""; }
    /// Why the adapter cannot connect this process to `peers` processes; "" if it can.
    virtual std::string refuses(std::uint32_t /*peers*/) const { return ""; }
    /// This endpoint's IPv4 address (network order); 0 if it has none.
    virtual std::uint32_t ipv4() const = 0;
    virtual bool insert(const Address& address, PeerId& peer) = 0;

    /// Sends a message of at most largest_message() bytes, unchanged until `operation` has ended. Messages to one peer
    /// arrive in the order in which they were sent.
    virtual Posted send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) = 0;
    /// Sends a copy of a message of at most largest_copied() bytes; its completion is not reported.
    virtual Posted send_copied(PeerId peer, const void* message, std::size_t bytes) = 0;
    virtual std::size_t largest_copied() const = 0;
    /// The longest message that keeps its place in the order; at most kLargestMessage.
    virtual std::size_t largest_message() const { return kLargestMessage; }

    /// Writes to, or reads from, a peer's exposed memory at `address` = Exposed::base + offset. A write ends when the
    /// data is in the target's memory.
    virtual Posted write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                         Operation& operation) = 0;
    virtual Posted read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        Operation& operation) = 0;
    /// The most elements of a row; 0 if the provider has no such atomic, or atomics are not used. The type's alignment
    /// must suffice for the target's elements. `op`: Op::NoOp only reads (Fetch); ignored for Swap.
    virtual std::size_t longest_row(RowForm form, Basic type, Op op) const = 0;
    /// An atomic on a row of at most longest_row() elements, or on one word of 64 bits (Fetch with Op::Sum, Swap) if
    /// atomics_flaw() is "": of a peer's exposed memory, or of this process's own if the peer is this endpoint. It ends
    /// when its effect is in the target's memory.
    virtual Posted update(PeerId peer, AtomicRow& row, std::uint64_t address, std::uint64_t key,
                          Operation& operation) = 0;
    /// Whether the network adapter executes atomics, and no process of the target.
    virtual bool has_hardware_atomics() const = 0;
    /// Whether the target's polls perform writes and reads, and no adapter.
    virtual bool needs_target() const { return true; }
    /// The most bytes of one write or read.
    virtual std::size_t largest_transfer() const = 0;

    /// The size from which on a write or read is faster than messages.
    virtual std::size_t direct_from() const = 0;

    /// The fault that a probe has found in direct accesses; they are then not used, and no memory is exposed. "" if
    /// none.
    virtual const char* flaw() const = 0;
    /// The reason why atomics are not used; "" if they are.
    virtual const char* atomics_flaw() const = 0;

    /// Registers the memory of messages until the endpoint ends, if the provider requires registered memory; see
    /// Operation::pinned. Null if it requires none, or refuses this one: each send registers its message then.
    virtual void* pin(void* /*base*/, std::size_t /*bytes*/) { return nullptr; }
    /// How the local memory of accesses is registered, for people.
    virtual std::string registration() const { return "none needed"; }

    virtual bool expose(void* base, std::size_t bytes, Exposed& exposed) = 0;
    virtual void revoke(Exposed& exposed) = 0;

    /// Reports events and returns their number.
    virtual int poll(Receiver& receiver) = 0;
    /// Waits until there may be events, at most `milliseconds` (-1: without limit), and reports them like poll(). The
    /// result is also positive if data moved without an event.
    virtual int sleep(int milliseconds, Receiver& receiver) = 0;
    /// Ends a sleep() or await() of another thread, or the next one. Any thread may call.
    virtual void wake() = 0;

    // A sleep in two parts, during the second of which another thread may poll.
    /// Prepares such sleeps, which `timer`, a descriptor, ends too when it is readable. False if there are none.
    virtual bool watch(int /*timer*/) { return false; }
    /// For the thread that may call poll: false if there may be events. Else events end the next await().
    virtual bool may_sleep() { return false; }
    /// From now on, until the next may_sleep(), events do not end await(). For the thread that may call poll.
    virtual void ignore_events() {}
    /// Waits, at most `milliseconds`; true if there may be events.
    virtual bool await(int /*milliseconds*/) { return false; }
};

/// The requirements on an endpoint.
struct Wishes {
    const char* provider;   // the provider's name; "": the best one
    const char* interface;  // the name of a network interface; "": the provider's own choice
    bool loopback;          // all peers are on this machine
    bool atomics;           // use the provider's atomics if it has them; this does not influence the choice
    // The size of ofi_rxm's buffers, in bytes: a longer message travels in pieces, which a shorter one overtakes.
    std::size_t buffer = kLargestBuffered;
    // Take a software provider with atomics before a better one without; the same in all processes of a job, as the
    // name.
    bool prefers_atomics = false;
    // The first preference() to consider.
    int from = 0;
    // The processes of other nodes that this process may have to reach.
    std::uint32_t peers = 0;
    // How many processes there may be, at least; sizes the provider's queues when libfabric is loaded.
    std::uint32_t processes = 0;
    // Called when the process exits, before libfabric ends; null: nothing is.
    void (*before_end)() = nullptr;
};

/// FI_UNIVERSE_SIZE, as libosc sets it, and the sends to one peer: the queue of ofi_rxm has room for so many sends to
/// so many peers. The largest universe fits a device with queues of 32,767 entries, also where a host has made ofi_rxm
/// give each peer a queue of receives.
inline constexpr std::uint32_t kSmallestUniverse = 8;
inline constexpr std::uint32_t kLargestUniverse = 127;
inline constexpr int kSendsPerPeer = 128;

/// When libosc is loaded, before a host over libfabric initialises that: sets FI_UNIVERSE_SIZE from the number of
/// processes of the job, unless it is set. libfabric's own value makes queues that small devices do not have.
void announce_processes(std::uint32_t processes);

/// Loads libosc_ofi.so and opens an endpoint; null with the reason in `why`. `folder`: where libosc_ofi.so lies; null:
/// beside the library or program that this code is part of.
Endpoint* open(const Wishes& wishes, std::string& why, const char* folder = nullptr);

/// The function osc_ofi_open of libosc_ofi.so. `why` has `room` bytes.
using OpenFunction = Endpoint*(const Wishes* wishes, char* why, std::size_t room);

/// What libfabric says of a provider, for osc_info; libosc itself relies on probe.h's tests instead. Loads
/// libosc_ofi.so. Always has "version", libfabric's; with an endpoint of the kind that libosc needs also "provider"
/// (its full name), "registration", "order", "ordered_writes", "copied", "pieces" and "progress", all in libfabric's
/// words; else "missing": the first requirement without which there is one, or "the provider". Empty with the reason in
/// `why` if the library cannot be loaded. `folder`: see open().
std::map<std::string, std::string> describe(const char* provider, std::string& why, const char* folder);

/// The function osc_ofi_describe of libosc_ofi.so: lines "name=value".
using DescribeFunction = void(const char* provider, char* text, std::size_t room);

}  // namespace osc::fabric
