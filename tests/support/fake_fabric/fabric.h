// A fabric inside one process, for tests. Its endpoints implement endpoint.h. Messages, writes, reads and atomics
// travel between them in any order and with any delay that libfabric allows; a seed decides. Only tests link it.
//
// It gives the guarantees of a provider and no others. Messages to one peer arrive in the order of their
// posts. Writes, reads and atomics have no order with any other operation, and a write may arrive in parts. An
// operation ends after its effect. The fabric also checks its callers: violations() counts breaches of endpoint.h.
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

#include "fabric/endpoint.h"
#include "fake_fabric/behaviour.h"

namespace osc::fake {

/// Counters of events, by which a test checks that its run contained them.
struct Totals {
    std::uint64_t messages = 0, writes = 0, reads = 0, atomics = 0;
    std::uint64_t full = 0;    // posts that returned Again
    std::uint64_t split = 0;   // writes that arrived in two parts
    std::uint64_t failed = 0;  // operations that ended with an error
    std::uint64_t flawed = 0;  // see Flaw
    friend bool operator==(const Totals&, const Totals&) = default;
};

/// Tests call the public functions, endpoints the private ones: each moves or checks parcels under the one mutex.
class Fabric {
  public:
    explicit Fabric(const Behaviour& behaviour);
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    /// A further endpoint, which must not outlive the fabric.
    std::unique_ptr<fabric::Endpoint> open();
    /// Endpoint `number`, counted from 0 in the order of open(), neither receives nor answers from now on.
    void kill(std::uint32_t number);

    Totals totals() const;
    /// The number of breaches of endpoint.h's rules by its callers; `first` describes the first one.
    std::uint64_t violations(std::string& first) const;

  private:
    friend class FakeEndpoint;
    static constexpr std::uint64_t kFlawLasts = 100;  // polls
    enum class ParcelKind { Message, Write, Read, Atomic };

    /// An operation in flight.
    struct Parcel {
        ParcelKind kind = ParcelKind::Message;
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        fabric::Operation* operation = nullptr;  // null: nothing is reported
        std::byte* memory = nullptr;             // the origin's; null once `data` holds its contents
        std::size_t bytes = 0;
        std::vector<std::byte> data;
        std::uint64_t sum = 0;  // of the memory when it was posted
        std::uint64_t address = 0;
        std::uint64_t key = 0;
        fabric::AtomicRow* row = nullptr;
        std::uint64_t due = 0;
        unsigned parts = 0;       // number of parts in which it arrives; 0: not decided
        std::size_t cut = 0;      // offset of the second part
        bool back_first = false;  // the second part arrives first
        unsigned arrived = 0;     // parts that have arrived
        bool completed = false;   // its completion is due, or reported
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
        std::uint64_t first = 0;  // the address that peers give for the first byte
    };
    struct Node {
        bool open = true;  // its endpoint exists
        bool dead = false;
        bool woken = false;
        bool moved = false;  // data has moved into its memory since its last sleep
        std::condition_variable bell;
        std::size_t under_way = 0;
        std::uint64_t last_key = 0;
        std::map<std::uint64_t, Region> regions;         // by key
        std::vector<std::deque<SharedParcel>> channels;  // messages to it, by sender
        std::vector<SharedParcel> loose;                 // all other operations to it
        std::deque<SharedParcel> inbox;                  // messages that have arrived
        std::vector<Completion> completions;
    };

    bool chance(unsigned one_of) { return one_of != 0 && random_() % one_of == 0; }
    std::uint64_t later() { return now_ + random_() % (behaviour_.delay + 1); }
    bool is_flawed(Flaw flaw);
    void violation(const char* what);
    fabric::Posted post(Parcel&& parcel);
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
        fabric::Operation* operation = nullptr;
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
