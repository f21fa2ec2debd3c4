// Several processes of a job inside one test process, each on a node of its own: a network over an endpoint of one fake
// fabric, a window that it serves, and its way to the windows of the others.
//
// With Progress::Callers no network has a thread. One thread runs all processes then: while one of them waits, the
// wait's hook polls all of them, in an order that the seed decides, so that a run repeats exactly.
#pragma once

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fake_fabric/fabric.h"
#include "net/origin/remote_window.h"
#include "net/target/leases.h"
#include "table_of.h"
#include "thread_ranks.h"

namespace osc::test {

using Progress = net::NetworkStack::Mode;

/// What a process of a test is made of.
struct JobSetup {
    std::uint32_t processes = 3;
    std::uint32_t per_node = 1;  // more: their networks were opened for one team
    std::size_t bytes = 4096;    // of each window; 0: windows are dynamic
    net::Protocol protocol = net::Protocol::Auto;
    Progress progress = Progress::Callers;
    int timeout_ms = 10000;
    bool lifelines = false;
    fake::Behaviour behaviour;
};

/// Two processes over a fabric without chance: no delays, no refusals.
inline JobSetup plain_setup(net::Protocol protocol = net::Protocol::Buffered,
                            std::size_t bytes = std::size_t{1} << 20) {
    JobSetup setup;
    setup.processes = 2;
    setup.bytes = bytes;
    setup.protocol = protocol;
    setup.behaviour.delay = 0;
    setup.behaviour.splits = 0;
    setup.behaviour.full = 0;
    setup.behaviour.queue = 1000;
    return setup;
}

/// Processes over a fabric whose behaviour the seed decides.
inline JobSetup seeded_setup(std::uint64_t seed, Progress progress) {
    JobSetup setup;
    setup.progress = progress;
    setup.behaviour.seed = seed;
    setup.behaviour.virtual_addresses = seed % 2 == 0;
    setup.behaviour.provider_keys = seed % 3 == 0;
    setup.behaviour.automatic_progress = seed % 4 < 2;
    setup.behaviour.queue = seed % 5 == 0 ? 1 : 64;
    setup.behaviour.full = 200;
    return setup;
}

class Processes;

struct Process {
    Process(Processes& all, std::uint32_t rank);
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    net::Stream& to(std::uint32_t target) { return *far->stream(target); }
    /// Does op(stream) as a window does an operation.
    template <class F>
    Fault operate(std::uint32_t target, F&& op) {
        net::Stream& stream = to(target);
        const std::lock_guard lock(stream.mutex);
        net::Description there{};
        if (const Fault fault = stream.queries.describe(there); fault != Fault::None) return fault;
        op(stream);
        return stream.finish();
    }
    /// The same for an operation whose end is asked for by itself.
    template <class F>
    net::SharedCompletion request(std::uint32_t target, F&& op) {
        net::Stream& stream = to(target);
        const std::lock_guard lock(stream.mutex);
        net::Description there{};
        EXPECT_EQ(stream.queries.describe(there), Fault::None);
        net::SharedCompletion completion = stream.issue();
        op(stream);
        EXPECT_EQ(stream.finish(), Fault::None);
        stream.issued();
        return completion;
    }

    const std::uint32_t rank;
    Ranks ranks;  // of which the slot is used: the window's lock and stripes
    std::vector<std::uint64_t> memory;
    net::NetworkStack network;
    net::Job job;
    fabric::Exposed exposed;
    net::ExposedWindow exposed_window;
    std::atomic<std::uint32_t> incomplete{0};
    std::unique_ptr<net::RemoteWindow> far;
    std::unique_ptr<shm::RegionTable> regions;  // of a dynamic window
    std::unique_ptr<net::Leases> leases;
    std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.data()); }
};

class Processes {
  public:
    static constexpr std::uint64_t kId = 0x77;

    explicit Processes(const JobSetup& setup) : setup_(setup), fabric_(setup.behaviour), random_(setup.behaviour.seed) {
        for (std::uint32_t rank = 0; rank < setup.processes; ++rank) {
            all_.push_back(std::make_unique<Process>(*this, rank));
            addresses_.push_back(all_.back()->network.address());
            if (rank % setup.per_node == 0) nodes_.emplace_back();
            nodes_.back().push_back(rank);
        }
        tables_.resize(nodes_.size());
        table_memory_.resize(nodes_.size());
        for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
            tables_[node] = table_of(addresses_, table_memory_[node], nodes_);
            const auto before = static_cast<std::uint32_t>((node + nodes_.size() - 1) % nodes_.size());
            for (const std::uint32_t known : {node, before})
                enter_others(tables_[node], known, addresses_, nodes_[known]);
        }
        before_ = shm::wait_policy();
        if (setup.progress == Progress::Callers) {
            current_ = this;
            // No other thread ends a wait, so none sleeps.
            const auto step = [] { current_->step(); };
            constexpr int kEver = std::numeric_limits<int>::max();
            shm::set_wait_policy({kEver, kEver, 1, step});
            shm::set_wait_network(step);
        }
        for (auto& process : all_)
            serve(*process);
    }
    ~Processes() {
        quiesce();
        for (auto& process : all_)
            process->network.messenger.end_service(kId);
        for (auto& process : all_)
            process->far.reset();
        shm::set_wait_policy(before_);
        if (current_ != nullptr) shm::set_wait_network(nullptr);
        current_ = nullptr;
        // A network that closes forgets replies whose sending has not ended.
        for (int i = 0; i < 300; ++i)
            for (auto& process : all_)
                process->network.engine.poll();
        all_.clear();
        std::string first;
        EXPECT_EQ(fabric_.violations(first), 0u) << first;
    }
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    std::uint32_t size() const { return setup_.processes; }
    Process& operator[](std::uint32_t rank) { return *all_[rank]; }
    fake::Fabric& fabric() { return fabric_; }
    const JobSetup& setup() const { return setup_; }
    net::ProcessTable& table() { return tables_[0]; }
    std::span<const net::ProcessAddress> addresses() const { return addresses_; }
    const std::vector<std::vector<std::uint32_t>>& nodes() const { return nodes_; }

    /// Serves a process's window anew, with lock words.
    void serve_again(Process& process, const fabric::Exposed& words) {
        process.network.messenger.end_service(kId);
        process.exposed_window.words = words;
        process.far->served(process.network.messenger.serve(process.exposed_window));
    }

    /// Ends all that is under way.
    void quiesce() {
        for (auto& process : all_)
            process->far->complete_ops(shm::kEveryTarget);
    }

    /// Polls every process once.
    void step() {
        // A run that does nothing any more must not last until the test's time limit.
        if (++steps_ > kMostSteps) {
            std::fprintf(stderr, "stuck: nothing ends any more; OSC_TEST_SEED=%llu\n",
                         static_cast<unsigned long long>(setup_.behaviour.seed));
            ::_exit(kStuck);
        }
        const std::size_t first = random_() % all_.size();
        for (std::size_t i = 0; i < all_.size(); ++i)
            all_[(first + i) % all_.size()]->network.engine.poll();
    }
    /// A wait may begin.
    void went_on() { steps_ = 0; }

    static constexpr int kStuck = 3;  // exit status

  private:
    void serve(Process& process) {
        process.job.me = process.rank;
        process.job.node = process.rank / setup_.per_node;
        static_cast<net::ProcessTable&>(process.job) = tables_[process.job.node];
        process.job.liveness = &process.ranks.lives();
        process.job.admitted = true;
        process.network.connections.admit(process.job);
        net::ExposedWindow& exposed_window = process.exposed_window;
        exposed_window.id = kId;
        exposed_window.controls = &process.ranks.controls();
        exposed_window.rank = process.rank;
        exposed_window.processes = size();
        exposed_window.liveness = &process.ranks.lives();
        exposed_window.tokens = process.job.tokens;
        process.far = std::make_unique<net::RemoteWindow>(process.network, process.job, kId, process.rank,
                                                          setup_.protocol, process.incomplete);
        if (setup_.bytes > 0) {
            process.memory.assign(setup_.bytes / sizeof(std::uint64_t), 0);
            process.network.endpoint().expose(process.memory.data(), setup_.bytes, process.exposed);
            exposed_window.base = process.bytes();
            exposed_window.size = setup_.bytes;
            exposed_window.exposed = process.exposed;
        } else {
            process.regions = std::make_unique<shm::RegionTable>(process.ranks.controls().block(process.rank));
            process.leases = std::make_unique<net::Leases>(*process.regions, &process.network.endpoint());
            exposed_window.regions = process.regions.get();
            exposed_window.leases = process.leases.get();
            exposed_window.caches = process.far.get();
        }
        process.far->served(process.network.messenger.serve(exposed_window));
    }

    static constexpr int kMostSteps = 2000;
    static inline Processes* current_ = nullptr;

    const JobSetup setup_;
    fake::Fabric fabric_;
    std::mt19937_64 random_;
    int steps_ = 0;
    shm::WaitPolicy before_;
    std::vector<net::ProcessAddress> addresses_;
    std::vector<std::vector<std::uint32_t>> nodes_;
    std::vector<std::vector<std::uint64_t>> table_memory_;
    std::vector<net::ProcessTable> tables_;  // by node
    std::vector<std::unique_ptr<Process>> all_;
};

inline Process::Process(Processes& all, std::uint32_t number) : rank(number), ranks(all.size(), 1) {
    std::string why;
    const std::uint32_t ipv4 = all.setup().lifelines ? htonl(INADDR_LOOPBACK) : 0;
    const bool by_team = all.setup().per_node > 1;
    const net::ProcessName name{by_team ? Processes::kId ^ rank : base::random64(), by_team ? 1 : base::random64()};
    EXPECT_TRUE(network.open(all.fabric().open(), all.setup().timeout_ms, all.setup().progress, why, ipv4, name))
        << why;
}

inline Process::~Process() {
    leases.reset();
    network.endpoint().revoke(exposed);
    network.connections.dismiss(job);
    network.close();
}

/// Calls f(0) to f(count - 1) at once, each in a thread of its own.
template <class F>
void in_threads(std::uint32_t count, F&& f) {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i)
        threads.emplace_back([&f, i] { f(i); });
}

/// Calls one(*member) for all members at once.
template <class Member, class One>
void at_once(std::span<const std::unique_ptr<Member>> members, One&& one) {
    in_threads(static_cast<std::uint32_t>(members.size()), [&](std::uint32_t i) { one(*members[i]); });
}

/// Members for tests with a dead peer, one for each way in which the provider treats operations on it, and those of
/// earlier calls. None is destroyed: operations that never end are left to the provider, with their fabric.
template <class Member>
std::span<const std::unique_ptr<Member>> with_dead_peers(JobSetup setup) {
    static auto* const left = new std::vector<std::unique_ptr<Member>>;
    setup.timeout_ms = 300;
    setup.progress = Progress::Thread;
    for (const fake::DeadPeer dead : {fake::DeadPeer::Errors, fake::DeadPeer::Full, fake::DeadPeer::Silent}) {
        setup.behaviour.dead = dead;
        left->push_back(std::make_unique<Member>(setup));
    }
    return *left;
}

/// What three threads add to one number, sum(setup), is `all`; less if a second addition executes between the load and
/// the store of the first one. The system may run the threads one after the other, so the run is repeated until
/// additions overlap.
template <class Sum>
void expect_split_atomics_to_lose(JobSetup setup, std::uint64_t all, Sum&& sum) {
    setup.behaviour.full = 0;
    EXPECT_EQ(sum(setup), all);
    setup.behaviour.flaw = fake::Flaw::SplitsAtomics;
    setup.behaviour.flawed = 3;
    std::uint64_t least = all;
    for (int run = 0; run < 200 && least == all; ++run)
        least = sum(setup);
    EXPECT_LT(least, all);
}

}  // namespace osc::test
