// A fabric inside one process, for tests: endpoints as endpoint.h wants them, between which messages, writes, reads and
// atomics travel as libfabric allows it, in an order and with delays that a seed decides. Linked by tests only.
//
// It keeps what a provider promises and nothing more. Messages and deposits to one peer arrive in the order in which
// they were posted. Writes, reads and atomics keep no order with anything, and a write may arrive in parts. An
// operation ends after its effect. The fabric also checks its users: violations() counts what they may not do.
//
// Thread-safe. One mutex guards all of it; handlers are called without it.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "transport/fake/behaviour.h"
#include "transport/ofi/endpoint.h"

namespace osc::fake {

/// What has happened, for tests to see that a run contained it.
struct Totals {
    std::uint64_t messages = 0, deposits = 0, writes = 0, reads = 0, atomics = 0;
    std::uint64_t full = 0;    // operations that found no room
    std::uint64_t split = 0;   // writes and deposits that arrived in two parts
    std::uint64_t failed = 0;  // operations that ended with an error
    std::uint64_t flawed = 0;  // see Flaw
    friend bool operator==(const Totals&, const Totals&) = default;
};

class Fabric {
  public:
    explicit Fabric(const Behaviour& behaviour);
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    /// A further endpoint, which must not outlive the fabric.
    std::unique_ptr<ofi::Endpoint> open();
    /// Endpoint `number`, counted from 0 as they were opened, neither receives nor answers any more.
    void kill(std::uint32_t number);

    Totals totals() const;
    /// Breaches of endpoint.h's rules by its callers; the text names the first one.
    std::uint64_t violations(std::string& first) const;

  private:
    friend class FakeEndpoint;
    static constexpr std::uint64_t kFlawLasts = 100;  // polls
    enum class Kind { Message, Deposit, Write, Read, Atomic };

    /// An operation under way.
    struct Parcel {
        Kind kind = Kind::Message;
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        ofi::Operation* operation = nullptr;  // null: nothing is reported
        std::byte* memory = nullptr;          // the origin's; null once `data` holds its contents
        std::size_t bytes = 0;
        std::vector<std::byte> data;
        std::uint64_t sum = 0;  // of the memory when it was posted
        std::uint64_t address = 0;
        std::uint64_t key = 0;
        ofi::Atomic* atomic = nullptr;
        std::uint64_t before = 0;  // of the atomic's word
        std::uint64_t due = 0;
        unsigned parts = 0;       // in which it arrives; 0: not decided
        std::size_t cut = 0;      // between two parts
        bool back_first = false;  // of two parts
        unsigned arrived = 0;     // parts
        bool completed = false;   // its end is due, or reported
        bool flawed = false;
    };
    using SharedParcel = std::shared_ptr<Parcel>;
    struct Completion {
        SharedParcel parcel;
        int error = 0;
        std::uint64_t due = 0;
    };
    struct Region {
        std::byte* base = nullptr;
        std::size_t bytes = 0;
        std::uint64_t first = 0;  // what peers give for the first byte
    };
    struct Node {
        bool open = true;  // its endpoint exists
        bool dead = false;
        bool woken = false;
        bool moved = false;  // something has been moved into its memory since it slept last
        std::condition_variable bell;
        std::size_t under_way = 0;
        std::uint64_t last_key = 0;
        std::map<std::uint64_t, Region> regions;         // by key
        std::vector<std::deque<SharedParcel>> channels;  // messages and deposits to it, by sender
        std::vector<SharedParcel> loose;                 // everything else to it
        std::deque<SharedParcel> inbox;                  // messages that have arrived
        std::vector<Completion> completions;
    };

    bool chance(unsigned one_of) { return one_of != 0 && random_() % one_of == 0; }
    std::uint64_t later() { return now_ + random_() % (behaviour_.delay + 1); }
    bool is_flawed(Flaw flaw);
    void violation(const char* what);
    ofi::Posted post(Parcel&& parcel);
    void move(std::uint32_t number);
    void move_channel(Node& node, std::deque<SharedParcel>& channel);
    bool arrive(Node& node, Parcel& parcel, int& error);
    bool update(std::byte* memory, Parcel& parcel);
    bool store(std::byte* memory, Parcel& parcel);
    std::byte* find(Node& node, const Parcel& parcel);
    void capture(Parcel& parcel);
    void complete(const SharedParcel& parcel, int error);
    static void land(Parcel& parcel);
    void close(std::uint32_t number);
    void progress(std::uint32_t number);
    void fail_all(std::uint32_t number);
    bool pending(const Node& node) const;

    /// An event that poll() reports.
    struct Event {
        SharedParcel message;
        ofi::Operation* operation = nullptr;
        int error = 0;
    };
    void collect(std::uint32_t number, std::vector<Event>& events);

    const Behaviour behaviour_;
    mutable std::mutex mutex_;
    std::mt19937_64 random_;
    std::uint64_t now_ = 0;
    std::vector<std::unique_ptr<Node>> nodes_;
    Totals totals_;
    std::uint64_t violations_ = 0;
    std::string first_violation_;
};

}  // namespace osc::fake
