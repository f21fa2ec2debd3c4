// One libfabric endpoint as the rest of libosc sees it, without libfabric's types: the implementation is a library of
// its own (libosc_ofi.so), loaded when the first window spans nodes, so that a job on one node never loads libfabric.
//
// Thread-safety: send, write, read, insert, expose and revoke may be called by any thread at any time; poll, sleep by
// one thread at a time. Nothing here blocks but sleep().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace osc::ofi {

/// Where an endpoint is reached; exchanged between processes as it is.
struct Address {
    std::uint32_t size = 0;  // bytes in use; 0: none
    std::byte bytes[60]{};
};

/// A peer as this endpoint numbers it.
using PeerId = std::uint64_t;

/// The largest message, in bytes: 32 KiB of data with what goes before them. The software providers send it without
/// asking the receiver first (see load.cpp); `tcp;ofi_rxm` allots two pools of 1,024 buffers of this size.
inline constexpr std::size_t kLargestMessage = 33792;

/// Something under way. Its owner keeps it until `ended` has been called, by the thread that polls; `error` is 0 or a
/// libfabric error number.
struct Operation {
    void* provider[8]{};  // the provider's own
    void (*ended)(Operation&, int error) = nullptr;
    void* registration = nullptr;  // of the local memory, where the provider asks for one
};

enum class Posted { Yes, Again, Failed };

/// An atomic of the provider on one word of 64 bits, which nothing else may touch: software providers do not do it by
/// the processor's atomics. The provider's until it has ended; registered with all in it where the provider asks for
/// that.
struct Atomic {
    enum class Kind : std::uint64_t {
        Add,   // `operand`
        Swap,  // for `operand`, if the word is `expected`
    };
    Kind kind = Kind::Add;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
    std::uint64_t before = 0;  // what the word was
};

/// Memory that peers may write and read.
struct Exposed {
    void* registration = nullptr;  // null: nothing is exposed
    std::uint64_t key = 0;         // random; peers give it with each access
    std::uint64_t base = 0;        // what they give for the memory's first byte
};

/// Told by poll(), in its thread. `message` is valid during the call and may be changed.
class Receiver {
  public:
    virtual void received(std::byte* message, std::size_t bytes) = 0;
    /// Whether something has come that no event tells of: sleep() returns then.
    virtual bool landed() const { return false; }

  protected:
    ~Receiver() = default;
};

class Endpoint {
  public:
    virtual ~Endpoint() = default;
    virtual const Address& address() const = 0;
    virtual const char* provider() const = 0;
    /// The IPv4 address (network order) that this endpoint is reached at; 0 if it is none of that kind.
    virtual std::uint32_t ipv4() const = 0;
    virtual bool insert(const Address& address, PeerId& peer) = 0;

    /// Sends a message of at most kLargestMessage bytes, unchanged until `operation` has ended. Messages to one peer
    /// arrive in the order in which they were sent.
    virtual Posted send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) = 0;
    /// Sends a copy, if the message is small enough for that (largest_copied()); nothing is told of it afterwards.
    virtual Posted send_copied(PeerId peer, const void* message, std::size_t bytes) = 0;
    virtual std::size_t largest_copied() const = 0;

    /// Writes to, or reads from, a peer's exposed memory at `address` = Exposed::base + offset. A write has ended when
    /// the data is in the target's memory.
    virtual Posted write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                         Operation& operation) = 0;
    virtual Posted read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        Operation& operation) = 0;
    /// An atomic on a word of a peer's exposed memory, or of this process's own if the peer is this endpoint. Only
    /// where atomics_flaw() is "".
    virtual Posted atomic(PeerId peer, Atomic& what, std::uint64_t address, std::uint64_t key,
                          Operation& operation) = 0;
    /// Small messages had better be deposited: a write of which the target is told nothing, and which has ended when
    /// `from` may be changed; without an operation, of a copy of at most largest_copied() bytes. Deposits and messages
    /// to one peer arrive byte by byte in the order in which they were posted.
    virtual bool prefers_deposits() const { return false; }
    virtual Posted deposit(PeerId, const void* /*from*/, std::size_t, std::uint64_t /*address*/, std::uint64_t /*key*/,
                           Operation*) {
        return Posted::Failed;
    }
    /// Nobody is about to post something, which the provider may take for an opportunity to move what has come: what
    /// was seen of that before is whole. So it is after a poll() that has reported nothing, which waits for whoever
    /// moves.
    virtual bool settled() const { return true; }

    /// The most bytes of one write or read.
    virtual std::size_t largest_transfer() const = 0;

    /// Bytes from which on a write or read is faster than messages.
    virtual std::size_t direct_from() const = 0;

    /// What a probe has found wrong with direct accesses, which are not used then: nothing is exposed. "": nothing.
    virtual const char* flaw() const = 0;
    /// Why there are no atomics. "": there are.
    virtual const char* atomics_flaw() const = 0;

    virtual bool expose(void* base, std::size_t bytes, Exposed& exposed) = 0;
    virtual void revoke(Exposed& exposed) = 0;

    /// Reports what has happened; the number of events.
    virtual int poll(Receiver& receiver) = 0;
    /// Waits until something may have happened, at most `milliseconds` (-1: for ever), and reports like poll(). Not 0
    /// too if what happened is no event.
    virtual int sleep(int milliseconds, Receiver& receiver) = 0;
    /// Ends a sleep() that another thread is in, or the next one. Any thread.
    virtual void wake() = 0;
};

/// How an endpoint is chosen.
struct Wishes {
    const char* provider;   // its name, or "": the best that there is
    const char* interface;  // name of a network interface, or "": the provider's own choice
    bool loopback;          // all peers are on this machine
    bool atomics;           // the provider is asked for them; another one is not taken for that
    bool pieces = false;    // it may cut messages, which then keep no order with deposits
};

/// Loads libosc_ofi.so, which lies beside this library, and opens an endpoint; null with the reason in `why`.
Endpoint* open(const Wishes& wishes, std::string& why);

/// What libosc_ofi.so exports, by the name osc_ofi_open. `why` has room for `room` bytes.
using OpenFunction = Endpoint*(const Wishes* wishes, char* why, std::size_t room);

}  // namespace osc::ofi
