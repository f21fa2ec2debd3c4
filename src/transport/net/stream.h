// What one process sends to one target of one window over the network, in order: operations are gathered into messages,
// a few of which are under way at once; large transfers go straight between the two memories. The transport of
// Path::Net.
//
// A message is sent when it is full, or when somebody waits for what is in it. So small operations share messages
// (the buffered protocol), and a lock, an operation and the unlock are one message and one reply.
//
// An operation with a ticket is sent at once and waits for nothing. A message that finds no room under way is put by,
// and so is a direct access that must not go before the target's lock is had: the network's backlog resumes both.
//
// Threads: the mutex guards the stream, and no thread waits with it held. A wait in the middle of an operation lets
// other threads' operations in, and waits for what was issued until then, by serial numbers.
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
#include "op/transport.h"
#include "sync/costs.h"
#include "transport/net/region_cache.h"
#include "transport/net/ticket.h"

namespace osc::net {

/// How operations travel; see OSC_NET_PROTOCOL.
enum class Protocol : std::uint8_t {
    Auto,
    Messages,  // each operation in a message of its own
    Buffered,  // gathered
    Direct,    // puts and gets by the provider's write and read
};

class Stream final : public Transport, public Backlog {
  public:
    /// `unsettled` counts streams that have something under way. `fence`: what is sent waits at the target for its
    /// fence of this number.
    Stream(Network& network, Connection& to, std::uint64_t window, std::uint32_t me, std::uint32_t target,
           Protocol protocol, std::atomic<std::uint32_t>& unsettled, const std::atomic<std::uint64_t>& fence);
    ~Stream() override;

    /// The caller of most functions holds it; those that wait release it meanwhile.
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
    /// Has the target's thread answer one record at once, before all that is under way: `to` is what it returns. With a
    /// Question of the caller's.
    Fault ask(const Record& record, void* to);
    /// The right to ask(), of one thread at a time; waits for it.
    class Question {
      public:
        explicit Question(Stream& stream) : stream_(stream), waited_(stream.begin_question()) {}
        ~Question() { stream_.end_question(); }
        Question(const Question&) = delete;
        Question& operator=(const Question&) = delete;
        /// Another thread has asked meanwhile, perhaps the same.
        bool waited() const { return waited_; }

      private:
        Stream& stream_;
        const bool waited_;
    };
    /// Whether a transfer of so many bytes goes directly, where it can.
    bool wants_direct(std::size_t bytes) const;
    /// Whether the lock that was asked for, if any, is held, and the fence made; and waits until it is so.
    bool lock_is_confirmed() const { return unconfirmed_.load(std::memory_order_acquire) == 0 || abandoned_; }
    void confirm_lock();
    /// Writes or reads `bytes` at `address` with `key`; what is under way uses `entry`, if there is one.
    void transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                  RegionCache::Entry* entry);

    /// What is returned from now on to what is under way is for nobody. While nobody drives, without the mutex.
    void forget_results();

    /// The provider may still use this object: it must not be destroyed. After that, resume() is not called any more.
    bool abandon();

    /// Sends what is gathered, to be settled next.
    void send_off();
    /// The same, and waits for what was issued until now: the first fault that was met.
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
    // Messages and accesses are numbered as they are issued; `serial` is 0 in one that is not under way.
    struct Flight final : Sender {
        Stream* stream = nullptr;
        std::atomic<std::uint64_t> serial{0};
        bool locks = false;
        std::vector<Landing> landings;
        std::vector<SharedTicket> tickets;
        void answered(Status status, const std::byte* data, std::size_t bytes) override;
    };
    struct Move {
        Transfer transfer;  // first
        std::atomic<std::uint64_t> serial{0};
        RegionCache::Entry* entry = nullptr;  // by which it goes
        Message* lent = nullptr;              // whose body it is read from
        SharedTicket ticket;
    };
    /// A message that is not sent yet, and what its reply ends.
    struct Outgoing {
        Message* message = nullptr;
        bool locks = false;  // asks for the target's lock, or waits for its fence
        FrameKind kind = FrameKind::Request;
        bool held = false;
        std::uint64_t serial = 0;
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
        Message* lent;
        SharedTicket ticket;
        std::uint64_t serial;
    };
    struct Reply final : Sender {
        std::atomic<bool> open{false};
        Status status = Status::Done;
        void* to = nullptr;
        std::size_t bytes = 0;
        void answered(Status status, const std::byte* data, std::size_t bytes) override;
    };
    static constexpr std::size_t kFlights = 8;
    static constexpr std::size_t kMoves = 16;
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    static constexpr std::size_t kPutBy = 2048;  // messages; then operations with tickets wait as well
    // Of so many full messages that return nothing one is answered at once.
    static constexpr std::uint32_t kAnswered = 4;

    std::byte* add(const Record& record);
    bool merge_put(std::int64_t disp, const std::byte* data, std::size_t bytes);
    void begin();
    void must_confirm();
    void dispatch(FrameKind kind = FrameKind::Request, bool held = false);
    void push(FrameKind kind = FrameKind::Request);
    bool send_alone();
    template <class Slots>
    static auto* free_one(Slots& slots);
    template <class Slots>
    bool has_room(Slots& slots) const;
    void launch(Outgoing& message);
    void drop(Outgoing& message);
    void put_by();
    bool start(const Piece& piece);
    void start_or_park(Piece&& piece);
    void advance();
    bool proceed();
    bool has_backlog() const { return !queue_.empty() || !parked_.empty() || !filling_.tickets.empty(); }
    void publish();
    Left resume() override;
    void landing(const Landing& what);
    bool gone(std::int64_t& since);
    bool lost();
    bool direct(std::size_t bytes) const { return described_ && description_.exposed != 0 && wants_direct(bytes); }
    void transfer(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
        transfer(write, description_.base + static_cast<std::uint64_t>(disp), description_.key, memory, bytes, nullptr);
    }
    void mark();
    template <class Wait>
    void while_released(Wait&& wait);
    template <class Done>
    void wait_until(Done&& done);
    void await_issued();
    bool ended(std::uint64_t serial) const;
    bool uses_memory() const;
    bool begin_question();
    void end_question();
    void failed(Status status);
    void failed(Fault fault);
    Fault take_fault();
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
    std::size_t returning_ = 0;   // bytes that the reply to it will hold
    std::uint32_t records_ = 0;   // in it
    std::uint32_t full_ = 0;      // messages, since the window was made
    Record last_;                 // of them
    std::deque<Outgoing> queue_;  // put by, before it
    std::deque<Piece> parked_;    // put by
    std::uint64_t serial_ = 0;    // the last that was given
    // The first serial numbers in these two, for looks without the mutex. What leaves them is under way before.
    std::atomic<std::uint64_t> queued_from_{kNone};
    std::atomic<std::uint64_t> parked_from_{kNone};
    bool enlisted_ = false;        // in the network's backlog
    bool no_room_ = false;         // the provider's, for the first that is parked
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
    std::atomic<bool> abandoned_{false};  // something may be under way for ever
    bool described_ = false;
    Description description_{};
    RegionCache regions_;
    std::atomic<bool> questioned_{false};
    Reply reply_;
    std::array<Flight, kFlights> flights_;
    std::array<Move, kMoves> moves_;
    std::atomic<std::uint32_t> local_{0};  // flights and moves that use this process's memory
    std::mutex fault_mutex_;
    Fault fault_ = Fault::None;
    std::string text_;
};

}  // namespace osc::net
