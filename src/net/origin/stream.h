// What one process sends to one target of one window over the network, in order: operations and synchronisation.
// Operations share messages (SendQueue), and large ones go directly between the two memories (RdmaQueue); FlowControl
// bounds what is in flight, and waits.
//
// A message is sent when it is full, or when the program waits for its operations. So small operations share messages
// (the buffered protocol), and a lock, an operation and the unlock are one message and one reply. An operation with a
// completion is sent at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "net/origin/record_transport.h"
#include "net/origin/target_queries.h"
#include "op/simple.h"
#include "sync/costs.h"

namespace osc::net {

/// How operations travel; see OSC_DEBUG=net_protocol.
enum class Protocol : std::uint8_t {
    Auto,
    Messages,  // each operation in a message of its own
    Buffered,  // gathered
    Direct,    // puts and gets by the provider's write and read
};

/// Under the flow's mutex, which waits release, unless said otherwise.
class Stream final : public RecordTransport {
  public:
    /// `incomplete` counts streams that have something in flight. `fence`: the target executes the messages when it has
    /// made its fence of this number.
    Stream(NetworkStack& network, Connection& to, std::uint64_t window, std::uint32_t me, std::uint32_t target,
           Protocol protocol, std::atomic<std::uint32_t>& incomplete, const std::atomic<std::uint64_t>& fence);
    ~Stream() override;

    std::mutex& mutex() { return flow_.mutex(); }
    FlowControl& flow() { return flow_; }
    TargetQueries& queries() { return queries_; }
    std::uint32_t target() const { return target_; }

    void put(std::int64_t disp, const void* from, std::size_t bytes) override;
    void get(std::int64_t disp, void* to, std::size_t bytes) override;
    /// Ends the operation. Waits only for a result that Operation::answers_now asks for.
    Fault finish() override;

    /// Adds an operation to the message that is being filled, without a completion. False, with nothing done, if the
    /// general path must take it: the message is full or not begun, the target's window is dynamic or not known yet,
    /// the operation leaves the window, or goes directly. Takes the mutex, unless no other thread may use the stream:
    /// `threaded` says whether other threads of the program may.
    bool try_small(const op::Simple& operation, bool threaded);

    /// Whether a transfer of so many bytes goes directly, where it can.
    bool wants_direct(std::size_t bytes) const;
    /// Writes or reads `bytes` at `address` with `key`, by a lease if there is one.
    void transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                  RegionCache::Entry* entry);

    /// An atomic of the provider on a row of the target's elements, behind all accumulates by message.
    void update_row(std::unique_ptr<RowUpdate> update, std::uint64_t address, std::uint64_t key);
    /// The accumulate that follows goes by message, behind the atomics of the provider that are in flight.
    void accumulate_by_message();

    // These three take the mutex.
    Fault lock(LockAsk ask);
    Fault unlock();
    /// Sends `end`, FenceClose or Complete, behind all operations. `awaited`: the caller awaits the reply next.
    Fault close(Opcode end, SendQueue::When when, bool awaited);

    /// Sends the gathered operations; the caller completes them next.
    void send_off();
    /// The same, and waits for what was issued until now: the first fault that was met.
    Fault complete_ops();
    /// The same if something in flight reads or writes this process's memory. Else sends the gathered operations and
    /// awaits nothing: they must reach the target without a further call of this process (12.7.3).
    Fault complete_local();
    /// The traffic since the last call. Takes the mutex.
    sync::Traffic take_traffic();
    /// Makes operations in flight write no memory from now on. Takes the mutex; the caller holds the drive lock.
    void forget_results();

  private:
    // One of so many full messages that return nothing is answered at once, the others with a delay.
    static constexpr std::uint32_t kAnswered = 4;

    std::byte* add(const Record& record) override;
    void returns(const ReplySegment& segment) override;
    void begin();
    void notify();
    bool send_alone();
    void begin_direct(bool may_wait);
    void await_room();
    bool transfer_directly(bool write, std::int64_t disp, void* memory, std::size_t bytes);
    void end_direct();

    NetworkStack& network_;
    const std::uint32_t target_;
    const Protocol protocol_;
    const std::atomic<std::uint64_t>& fence_;
    FlowControl flow_;
    TargetQueries queries_;
    std::uint64_t awaited_fence_ = 0;  // in the last FenceOpen
    std::uint32_t full_ = 0;           // messages, since the window was made
    std::uint64_t accumulates_ = 0;    // the serial of the last message with an accumulate
    std::uint64_t rows_ = 0;           // the serial of the last atomic on a row
    std::uint64_t direct_bytes_ = 0;   // see take_traffic
};

}  // namespace osc::net
