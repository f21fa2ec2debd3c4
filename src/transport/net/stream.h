// What one process sends to one target of one window over the network, in order: operations are gathered into messages,
// a few of which are under way at once; large transfers go straight between the two memories. The transport of
// Path::Net.
//
// A message is sent when it is full, or when somebody waits for what is in it. So small operations share messages
// (the buffered protocol), and a lock, an operation and the unlock are one message and one reply.
//
// An operation with a ticket is sent at once and waits for nothing: what has no place under way yet, or must not go
// before the target's lock is had, is put by, and sent by whoever looks for the ticket's end or settles.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "agent/network.h"
#include "sync/costs.h"
#include "transport/net/region_cache.h"
#include "transport/net/ticket.h"
#include "transport/transport.h"

namespace osc::net {

/// How operations travel; see OSC_NET_PROTOCOL.
enum class Protocol : std::uint8_t {
    Auto,
    Messages,  // each operation in a message of its own
    Buffered,  // gathered
    Direct,    // puts and gets by the provider's write and read
};

class Stream final : public Transport {
  public:
    /// `unsettled` counts streams that have something under way. `fence`: what is sent waits at the target for its
    /// fence of this number.
    Stream(Network& network, Connection& to, std::uint64_t window, std::uint32_t me, std::uint32_t target,
           Protocol protocol, std::atomic<std::uint32_t>& unsettled, const std::atomic<std::uint64_t>& fence);
    ~Stream() override;

    /// Held by whoever uses the stream, for a whole operation.
    std::mutex& mutex() { return mutex_; }

    void put(std::int64_t disp, const void* from, std::size_t bytes) override;
    void get(std::int64_t disp, void* to, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    void compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                          void* result) override;
    /// Ends the operation: nothing is awaited, but what answers_now() asked for.
    Fault finish() override;
    /// The operation that follows needs what it returns before finish() returns.
    void answers_now() { answers_now_ = true; }

    /// The operation that follows has a ticket, until issued().
    SharedTicket issue();
    void issued();
    /// Drives once for who looks for a ticket's end: true if it has ended. Without the mutex, like the next.
    bool look(Ticket& ticket);
    void await(Ticket& ticket);

    Fault lock(LockAsk ask);
    Fault unlock();
    /// Sends `end`, FenceClose or Complete, behind all operations. `held`: see Network::request.
    Fault close(What end, bool held);
    /// Sends steps that do not wait behind the operations, and are not answered. Thread-safe by itself.
    Fault notice(std::span<const Record> steps);
    /// What was sent since the last time. Without the mutex.
    sync::Traffic take_traffic() {
        return {gathered_bytes_.exchange(0, std::memory_order_relaxed),
                direct_bytes_.exchange(0, std::memory_order_relaxed)};
    }

    /// What is to know of the target; asked for once, and awaited.
    Fault describe(Description& description);

    // For dynamic windows; see Attached.
    std::uint32_t target() const { return target_; }
    RegionCache& regions() { return regions_; }
    /// Has the target's thread answer one record at once, before all that is under way: `to` is what it returns.
    Fault ask(const Record& record, void* to);
    /// Whether a transfer of so many bytes goes directly, where it can.
    bool wants_direct(std::size_t bytes) const;
    /// Whether the lock that was asked for, if any, is held, and the fence made; and waits until it is so.
    bool lock_is_confirmed() const { return unconfirmed_.load(std::memory_order_acquire) == 0 || abandoned_; }
    void confirm_lock();
    /// Writes or reads `bytes` at `address` with `key`; what is under way uses `entry`, if there is one.
    void transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                  RegionCache::Entry* entry);

    /// What is returned from now on to what is under way is for nobody. While nobody drives.
    void forget_results();

    /// The provider may still use this object: it must not be destroyed.
    bool abandoned() const { return abandoned_; }

    /// Sends what is gathered, to be settled next.
    void send_off();
    /// The same, and waits for all that is under way: the first fault that was met.
    Fault settle();
    /// The same if something under way reads or writes this process's memory.
    Fault settle_local();

  private:
    struct Landing {
        void* to;
        std::size_t bytes;
        op::Kernel copy;    // null: as bytes
        std::size_t width;  // of an element, for `copy`
    };
    struct Flight final : Sender {
        Stream* stream = nullptr;
        std::atomic<bool> busy{false};
        bool locks = false;
        std::vector<Landing> landings;
        std::vector<SharedTicket> tickets;
        void answered(Status status, const std::byte* data, std::size_t bytes) override;
    };
    struct Move {
        Transfer transfer;  // first
        std::atomic<bool> busy{false};
        RegionCache::Entry* entry = nullptr;  // by which it goes
        SharedTicket ticket;
    };
    /// A message that is not sent yet, and what its reply ends.
    struct Outgoing {
        Message* message = nullptr;
        bool locks = false;  // asks for the target's lock, or waits for its fence
        std::vector<Landing> landings;
        std::vector<SharedTicket> tickets;
    };
    /// A direct access, as far as it is one transfer.
    struct Piece {
        bool write;
        std::uint64_t address, key;
        std::byte* memory;
        std::size_t bytes;
        RegionCache::Entry* entry;
        SharedTicket ticket;
    };
    struct Question final : Sender {
        std::atomic<bool> open{false};
        Status status = Status::Done;
        void* to = nullptr;
        std::size_t bytes = 0;
        void answered(Status status, const std::byte* data, std::size_t bytes) override;
    };
    static constexpr std::size_t kFlights = 8;
    static constexpr std::size_t kMoves = 16;
    static constexpr std::size_t kPutBy = 2048;  // messages; then operations with tickets wait as well
    // Of so many full messages that return nothing one is answered at once.
    static constexpr std::uint32_t kAnswered = 4;

    std::byte* add(const Record& record);
    bool merge_put(std::int64_t disp, const std::byte* data, std::size_t bytes);
    void begin();
    void must_confirm();
    void push(FrameKind kind = FrameKind::Request, bool held = false);
    bool send_alone();
    template <class Slots>
    auto* free_one(Slots& slots);
    template <class Slots>
    static bool has_free(const Slots& slots);
    void launch(Outgoing& message, FrameKind kind, bool held = false);
    void drop(Outgoing& message);
    void put_by();
    void start(const Piece& piece);
    void advance();
    void landing(const Landing& what);
    bool gone(std::int64_t& since);
    bool lost();
    bool direct(std::size_t bytes) const { return described_ && description_.exposed != 0 && wants_direct(bytes); }
    void transfer(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
        transfer(write, description_.base + static_cast<std::uint64_t>(disp), description_.key, memory, bytes, nullptr);
    }
    void mark();
    void await_all();
    void failed(Status status);
    void failed(Fault fault);
    Fault take_fault();
    bool given_up();
    static void moved(Transfer& transfer, int error);

    Network& network_;
    Connection& to_;
    const std::uint64_t window_;
    const std::uint32_t me_;
    const std::uint32_t target_;
    const Protocol protocol_;
    std::atomic<std::uint32_t>& unsettled_;
    const std::atomic<std::uint64_t>& fence_;

    std::mutex mutex_;
    std::uint64_t awaited_fence_ = 0;  // told to the target
    Outgoing filling_;
    Message* alone_ = nullptr;     // what a direct put under way is read from
    std::size_t returning_ = 0;    // bytes that the reply to it will hold
    std::uint32_t records_ = 0;    // in it
    std::uint32_t full_ = 0;       // messages, since the window was made
    Record last_;                  // of them
    std::deque<Outgoing> queue_;   // put by, before it
    std::deque<Piece> parked_;     // put by
    SharedTicket ticket_;          // of the operation that is being done
    std::int64_t looked_ = 0;      // when look() last asked for a sign of life
    std::int64_t gone_since_ = 0;  // that it has found none
    bool marked_ = false;          // counted in unsettled_
    bool answers_now_ = false;
    bool under_lock_ = false;                       // asked for, and not given back
    std::atomic<std::uint32_t> unconfirmed_{0};     // messages with `locks` that are not answered: no direct access
    std::atomic<std::uint64_t> gathered_bytes_{0};  // see take_traffic
    std::atomic<std::uint64_t> direct_bytes_{0};
    // It was not had: no direct access under it; other operations are refused by the target.
    std::atomic<bool> lock_refused_{false};
    bool abandoned_ = false;  // something may be under way for ever
    bool described_ = false;
    Description description_{};
    RegionCache regions_;
    Question question_;
    std::array<Flight, kFlights> flights_;
    std::array<Move, kMoves> moves_;
    std::atomic<std::uint32_t> under_way_{0};  // flights and moves
    std::atomic<std::uint32_t> local_{0};      // of these, what uses this process's memory
    std::mutex fault_mutex_;
    Fault fault_ = Fault::None;
    std::string text_;
};

}  // namespace osc::net
