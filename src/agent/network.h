// The process's part of the network: its endpoint, the processes that it knows on other nodes, its requests that wait
// for their replies, and the thread that drives all of it while the application computes (invariant I4). The thread
// never calls MPI (invariant I2). While an application thread waits inside libosc it drives the network itself and the
// thread keeps out of its way; docs/NETWORK.md has the protocol and why nothing waits for ever.
//
// Locks: `drive_` is held by whoever drives: what arrives is handled in order, one at a time. `mutex_` guards the
// tables and is held for a few instructions. Handlers run under `drive_` and never wait for a message.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/hosted.h"
#include "agent/lifeline.h"
#include "agent/nap.h"
#include "agent/slots.h"
#include "diag/fault.h"

namespace osc::net {

/// CLOCK_MONOTONIC, in ns.
std::int64_t now_ns();

/// For how long a process polls after a peer has told it of direct accesses.
inline constexpr std::int64_t kStirNs = 2000000;

/// How a process is reached; exchanged through the host MPI.
struct Card {
    std::uint64_t token = 0;   // the process's name; random
    std::uint64_t secret = 0;  // that messages to it must carry
    ofi::Address address;
    Place lifeline;
};

struct Book;

/// A process on another node that a message has gone to, or come from.
struct Connection {
    std::uint64_t token = 0;
    std::uint64_t secret = 0;
    ofi::PeerId peer = 0;
    Place lifeline;
    std::mutex probing;  // guards probe
    Probe probe;
    std::mutex sending;                       // keeps order: whoever takes `held` sends it before anybody sends more
    struct Message* held = nullptr;           // what has time to wait for another message; under the network's mutex_
    std::deque<struct Message*> unsent;       // what the provider had no room for, in order; under the network's mutex_
    std::atomic<SlotsIn*> slots_in{nullptr};  // that were offered to it
    SlotsOut slots_out;                       // that it has offered; of whoever posts
    bool slots_offered = false;               // these two under drive_
    int ordinary = 0;                         // messages that have come otherwise, as far as that matters
    std::atomic<bool> dead{false};
    std::atomic<std::int64_t> heard{0};    // when it was last heard of, ns
    std::atomic<std::int64_t> direct{0};   // when the last direct access to it began, ns
    std::atomic<std::int64_t> stirred{0};  // when it was last told of them
    std::atomic<std::uint32_t> pongs{0};   // that it has answered
    std::atomic<std::int64_t> asked{0};    // when it was asked for a sign of life that has not come; 0: it was not
};

/// A message being filled, or on its way.
struct Message {
    ofi::Operation operation;  // first: what has ended is known by its address
    class Network* network = nullptr;
    Connection* connection = nullptr;
    std::size_t bytes = 0;  // of the body, so far
    alignas(64) std::byte data[ofi::kLargestMessage];
    std::byte* body() { return data + sizeof(Frame); }
};

/// Who has sent requests. Called under `drive_`, by any thread.
class Sender {
  public:
    /// The reply to its request: `data` is what the records return. Status::PeerDied if none will come.
    virtual void answered(Status status, const std::byte* data, std::size_t bytes) = 0;

  protected:
    ~Sender() = default;
};

/// A direct write or read, or an atomic. Its memory is the owner's until `ended`.
struct Transfer {
    ofi::Operation operation;  // first
    class Network* network = nullptr;
    Connection* connection = nullptr;
    void* owner = nullptr;
    void (*ended)(Transfer&, int error) = nullptr;
};

/// Work that can go on only after an event of the network, such as a message that finds no room under way. Any thread
/// that drives the network resumes it, whatever that thread itself waits for.
class Backlog {
  public:
    enum class Left {
        Nothing,  // it has left the backlog; Network::enlist() may be called again
        Work,     // which needs another event
        Busy,     // another thread uses it, or the provider has no room: to be resumed soon
    };
    /// Goes on as far as it can without waiting. Called without `drive_`, by one thread at a time.
    virtual Left resume() = 0;

  protected:
    ~Backlog() = default;
};

/// What happened, for tests and statistics.
struct Counts {
    std::atomic<std::uint64_t> messages{0};    // sent, of all kinds
    std::atomic<std::uint64_t> deposits{0};    // of these, into slots
    std::atomic<std::uint64_t> requests{0};    // of all
    std::atomic<std::uint64_t> writes{0};      // direct
    std::atomic<std::uint64_t> reads{0};       // direct
    std::atomic<std::uint64_t> atomics{0};     // on the words of locks
    std::atomic<std::uint64_t> strangers{0};   // messages dropped: no frame of ours, a wrong secret, an unknown sender
    std::atomic<std::uint64_t> sleeps{0};      // of the thread
    std::atomic<std::uint64_t> host_polls{0};  // that the host made
};

class Network final : Answers, ofi::Receiver {
  public:
    /// The network of this process, not yet open.
    static Network& mine();

    Network() : hosted_(*this) {}
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// Opens the endpoint and starts the thread, once; false with the reason in `why`. `timeout_ms`: for how long a
    /// peer may be silent that was asked for a sign of life.
    bool open(const ofi::Wishes& wishes, int timeout_ms, std::string& why);
    /// The same over an endpoint that the caller has opened. Without a thread, others call poll().
    enum class Progress { Thread, Callers };
    bool open(std::unique_ptr<ofi::Endpoint> endpoint, int timeout_ms, Progress progress, std::string& why);
    /// Ends the thread, and the endpoint. Nothing of this process may be under way.
    void close();
    /// Ends the thread only.
    void stop();
    bool is_open() const { return endpoint_ != nullptr; }

    const Card& card() const { return card_; }
    ofi::Endpoint& endpoint() { return *endpoint_; }
    const Counts& counts() const { return counts_; }

    /// The process of a card, known from now on; null if the provider refuses its address.
    Connection* connect(const Card& card);
    /// Whoever is in the book may send messages from now on, or, but for those known by then, no longer.
    void admit(const Book& book);
    void dismiss(const Book& book);

    /// Serves a window of this process to other nodes from now on, or no longer.
    std::shared_ptr<Arrivals> serve(const Serving& window);
    void end_service(std::uint64_t window);

    Message* claim();
    void give_back(Message* message);
    /// Sends a notice. Takes the message over.
    void notice(Connection& to, std::uint64_t window, std::uint32_t origin, Message* message);
    /// Sends a request or query, whose reply goes to `sender`. Takes the message over. `held`: it is sent with the next
    /// message to its receiver, by send_held(), or when somebody drives and nothing happens.
    void request(Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin, Message* message,
                 Sender& sender, bool held = false);
    /// Sends what is held back for company.
    void send_held();
    /// Direct access; `transfer` is the network's until it has ended, also if the peer is dead. False, with nothing
    /// begun: the provider has no room now.
    [[nodiscard]] bool write(Transfer& transfer, const void* from, std::size_t bytes, std::uint64_t address,
                             std::uint64_t key);
    [[nodiscard]] bool read(Transfer& transfer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key);

    /// An atomic of the provider; waits for room. Without locks, like wait().
    void atomic(Transfer& transfer, ofi::Atomic& what, std::uint64_t address, std::uint64_t key);

    /// `work` is resumed after the network's events, until its resume() says Nothing. Thread-safe.
    void enlist(Backlog& work);
    /// It is not any more; returns when no thread resumes it.
    void withdraw(Backlog& work);
    /// Resumes all that is enlisted; false if nothing is, or another thread does it. The caller holds no lock.
    bool resume_backlog();
    /// Wakes the threads in wait(), after a change that no event of the network tells them of.
    void ring() { bell_.ring(); }

    /// Drives the network until `done()`, and resumes the whole backlog meanwhile; false if `dead()`, asked after long
    /// waits, gave it up. For application threads, without any lock: it drives the host MPI too.
    template <class Done, class Dead>
    bool wait(Done&& done, Dead&& dead);

    /// Calls f() while nobody handles messages.
    template <class F>
    void while_still(F&& f) {
        const auto lock = seize();
        f();
    }

    /// Drives the network once, if nobody else does. In wait loops of other rooms.
    void poll();

    /// Like poll(), while messages keep coming: for the host MPI's own loops, perhaps under its locks.
    void host_polls();

    /// Whether a message with a body of so many bytes would go into a slot of its receiver, if there is one.
    bool fits_slot(std::size_t bytes) const {
        return endpoint_->prefers_deposits() && sizeof(Frame) + bytes <= kSlotBody;
    }

    /// What messages to a process of another node cost: a small one's way there and each further byte, ns.
    struct Cost {
        double way = 0;
        double byte = 0;
    };
    /// Asked first, measures it by messages to the process of `card`, which has to know this one: a millisecond, at
    /// most ten. What was found then is the answer from then on: nodes are taken to be alike.
    Cost measure(const Card& card);

    /// False if the process is known to be dead, or does not answer. Asks it otherwise, and does not wait for that.
    bool alive(Connection& peer);

  private:
    void received(std::byte* message, std::size_t bytes) override;
    bool landed() const override;
    bool frames(std::byte* message, std::size_t bytes);
    void handle(Connection& from, const Frame& frame, const std::byte* body);
    void answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                std::size_t bytes) override;
    void reply_came(Connection& from, const Frame& frame, const std::byte* body);
    void address(Message* message, Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin,
                 std::uint32_t number) const;
    void send(Message* message);
    void send_in_order(Message* message);
    Message* with_held(Message* message);
    void hold(Message* message);
    Message* take_held(Connection& to);
    bool post(Message* message);
    ofi::Posted post_ordinary(Message* message);
    ofi::Posted post_to_slot(Message* message);
    void offer_slots(Connection& to);
    void slots_offered(Connection& by, const std::byte* body, std::size_t bytes);
    int take_slots(Connection& from, SlotsIn& slots, bool announced);
    int take_slots();
    void control(Connection& to, FrameKind kind, std::uint32_t number = 0);
    std::int64_t round_trip(Connection& to, std::size_t bytes, std::int64_t until);
    template <class Post>
    bool transfer(Transfer& transfer, Post&& post);
    void stir(Connection& to, std::size_t bytes);
    void lost(Connection& peer);
    Connection* find(std::uint64_t token);
    Connection* connect_locked(const Card& card);
    std::unique_lock<std::mutex> seize();
    int drive();
    void tick(int events);
    void send_unsent();
    void look_for_dead();
    enum class Drives : std::uint8_t { Throughout, NowAndThen };  // who drives, as far as is known
    bool try_drive(Drives who = Drives::Throughout);
    bool polls_throughout();
    void keep_thread_away(std::int64_t began);
    static constexpr int kOfferAfter = 16;           // ordinary messages
    static constexpr std::size_t kMostOffers = 128;  // peers, of 8 KiB each
    static constexpr int kWarm = 500;                // empty polls for the host after something has come
    static constexpr int kLongWarm = 5000;           // the same after a peer has told of direct accesses
    // The host waits, and does not look in between computations, when it has polled so often without a longer pause.
    static constexpr int kManyPolls = 16;
    static constexpr std::int64_t kPollPause = 60000;  // ns
    static constexpr std::uint32_t kTransfersPerDrive = 8;
    static constexpr int kDirectPolls = 8;  // per poll of the host, while peers write and read directly
    // An application thread drives for so many rounds, or so many without an event, before it waits like for shared
    // memory.
    static constexpr int kRounds = 20000;
    static constexpr int kQuiet = 2000;
    static void rest(int round, int quiet);
    void keep_warm();
    bool start_thread(std::string& why);
    static void* thread_main(void* self);
    void run();
    static void sent(ofi::Operation& operation, int error);
    static void transferred(ofi::Operation& operation, int error);

    struct FilledBy {
        Connection* connection;
        std::unique_ptr<SlotsIn> slots;
    };
    struct Pending {
        Connection* connection = nullptr;  // null: free
        Sender* sender = nullptr;
    };

    std::unique_ptr<ofi::Endpoint> endpoint_;
    Card card_;
    Lifeline lifeline_;
    std::int64_t timeout_ns_ = 0;
    std::mutex drive_;
    Hosted hosted_;                  // under drive_
    std::vector<FilledBy> senders_;  // whom slots were offered; under drive_
    std::uint64_t idle_polls_ = 0;   // that have reported nothing; under drive_
    bool lock_waits_ = false;        // hosted_ waits for a lock, or for accesses to end; under drive_
    std::int64_t drove_ = 0;         // when somebody drove; under drive_
    std::int64_t looked_ = 0;        // when lock holders were last asked for; under drive_
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // used so far
    std::vector<const Book*> books_;
    std::vector<Message*> free_;
    std::vector<Connection*> holding_;  // with something held
    std::atomic<std::size_t> held_count_{0};
    bool unhurried_ = false;          // the request that is being handled is; under drive_
    std::vector<Connection*> stuck_;  // with something unsent: each for itself, or the dead would hold up the living
    std::atomic<std::size_t> stuck_count_{0};
    std::vector<Pending> pending_;  // requests by number; a number is used again only after its reply
    std::vector<std::uint32_t> free_numbers_;
    std::atomic<int> waiters_{0};                // application threads that drive
    std::atomic<std::int64_t> driven_{0};        // when one of them did, ns
    std::atomic<std::uint32_t> transfers_{0};    // posted
    std::atomic<int> moving_{0};                 // direct accesses of this process that are under way
    std::atomic<std::int64_t> direct_until_{0};  // peers write and read directly, as far as they have told; ns
    std::atomic<int> warm_{0};             // polls by the host without an event before it leaves them to the thread
    std::atomic<std::int64_t> polled_{0};  // when the host's last poll had ended, ns
    std::atomic<int> polls_{0};            // of the host since its last pause, up to kManyPolls
    std::mutex backlog_mutex_;             // held by the thread that resumes, and guards
    std::vector<Backlog*> backlog_;        // what is enlisted
    std::atomic<std::size_t> backlog_count_{0};
    std::atomic<bool> resume_soon_{false};  // no event tells when the backlog can go on
    Nap nap_;                               // the thread's; under drive_ for others
    std::atomic<bool> asleep_{false};       // the thread is in the provider's wait, holding drive_
    std::atomic<bool> stopping_{false};
    shm::Doorbell bell_;  // rung when a reply has come or a transfer has ended
    pthread_t thread_{};
    Progress progress_ = Progress::Thread;
    int process_ = 0;  // that started the thread
    Cost cost_;
    Counts counts_;
};

template <class Done, class Dead>
bool Network::wait(Done&& done, Dead&& dead) {
    bool ended = done();
    if (ended) return true;
    const auto over = [&] { return done() || (resume_backlog() && done()); };
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    // Others' messages are a reason to go on, and so are direct accesses, which these rounds serve and whose parts no
    // event tells of; but not for ever: who is waited for may be dead.
    const auto goes_on = [&](int quiet) { return quiet < kQuiet || moving_.load(std::memory_order_relaxed) > 0; };
    for (int round = 1, quiet = 0; !ended && round < kRounds && goes_on(quiet); ++round) {
        quiet = try_drive() ? 0 : quiet + 1;
        ended = over();
        if (!ended) rest(round, quiet);
    }
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
    if (ended) return true;
    // Long waits are the thread's: it sleeps in the provider, this one until it rings.
    nap_.end();
    return shm::wait_slow(bell_, over, dead);
}

}  // namespace osc::net
