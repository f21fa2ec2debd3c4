// Several processes of a job inside one test process, each on a node of its own: a network over an endpoint of one fake
// fabric, a window that it serves, and its way to the windows of the others.
//
// With Progress::Callers no network has a thread. One thread runs all processes then: while one of them waits, the
// wait's hook polls all of them, in an order that the seed decides, so that a run repeats exactly.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "agent/leases.h"
#include "thread_ranks.h"
#include "transport/fake/fabric.h"
#include "transport/net/far.h"

namespace osc::test {

using Progress = net::Network::Progress;

/// What a process of a test is made of.
struct JobSetup {
    std::uint32_t processes = 3;
    std::size_t bytes = 4096;  // of each window; 0: windows are dynamic
    net::Protocol protocol = net::Protocol::Auto;
    Progress progress = Progress::Callers;
    int timeout_ms = 10000;
    fake::Behaviour behaviour;
};

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
        const std::lock_guard lock(stream.mutex());
        net::Description there{};
        if (const Fault fault = stream.describe(there); fault != Fault::None) return fault;
        op(stream);
        return stream.finish();
    }
    /// The same for an operation whose end is asked for by itself.
    template <class F>
    net::SharedTicket request(std::uint32_t target, F&& op) {
        net::Stream& stream = to(target);
        const std::lock_guard lock(stream.mutex());
        net::Description there{};
        EXPECT_EQ(stream.describe(there), Fault::None);
        net::SharedTicket ticket = stream.issue();
        op(stream);
        EXPECT_EQ(stream.finish(), Fault::None);
        stream.issued();
        return ticket;
    }

    const std::uint32_t rank;
    Ranks ranks;  // of which the slot is used: the window's lock and stripes
    std::vector<std::uint64_t> memory;
    net::Network network;
    net::Job job;
    ofi::Exposed exposed;
    net::Serving serving;
    std::atomic<std::uint32_t> unsettled{0};
    std::unique_ptr<net::Far> far;
    std::unique_ptr<shm::RegionTable> regions;  // of a dynamic window
    std::unique_ptr<net::Leases> leases;
    std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.data()); }
};

class Processes {
  public:
    static constexpr std::uint64_t kId = 0x77;

    explicit Processes(const JobSetup& setup) : setup_(setup), fabric_(setup.behaviour), random_(setup.behaviour.seed) {
        const std::size_t words = net::Book::bytes_for(setup.processes, setup.processes) / sizeof(net::Card) + 1;
        book_memory_ = std::make_unique<net::Card[]>(words);
        book_ = net::Book::at(reinterpret_cast<std::byte*>(book_memory_.get()), setup.processes, setup.processes);
        for (std::uint32_t rank = 0; rank < setup.processes; ++rank) {
            all_.push_back(std::make_unique<Process>(*this, rank));
            book_.cards[rank] = all_.back()->network.card();
            book_.node_of[rank] = rank;
            book_.leaders[rank] = rank;
        }
        book_.index();
        before_ = shm::wait_policy();
        if (setup.progress == Progress::Callers) {
            current_ = this;
            shm::set_wait_policy({0, 50, 1, [] { current_->step(); }});
        }
        for (auto& process : all_)
            serve(*process);
    }
    ~Processes() {
        quiesce();
        for (auto& process : all_)
            process->network.end_service(kId);
        for (auto& process : all_)
            process->far.reset();
        shm::set_wait_policy(before_);
        current_ = nullptr;
        // A network that closes forgets replies whose sending has not ended.
        for (int i = 0; i < 300; ++i)
            for (auto& process : all_)
                process->network.poll();
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
    net::Book& book() { return book_; }

    /// Serves a process's window anew, with lock words.
    void serve_again(Process& process, const ofi::Exposed& words) {
        process.network.end_service(kId);
        process.serving.words = words;
        process.far->served(process.network.serve(process.serving));
    }

    /// Ends all that is under way.
    void quiesce() {
        for (auto& process : all_)
            process->far->settle(net::Far::kAll);
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
            all_[(first + i) % all_.size()]->network.poll();
    }
    /// A wait may begin.
    void went_on() { steps_ = 0; }

    static constexpr int kStuck = 3;  // exit status

  private:
    void serve(Process& process) {
        process.job.node = process.rank;
        static_cast<net::Book&>(process.job) = book_;
        process.network.admit(process.job);
        net::Serving& serving = process.serving;
        serving.id = kId;
        serving.slot = &process.ranks.slot();
        serving.rank = process.rank;
        serving.processes = size();
        serving.liveness = &process.ranks.lives();
        serving.tokens = book_.tokens.data();
        process.far = std::make_unique<net::Far>(process.network, process.job, kId, process.rank, setup_.protocol,
                                                 process.unsettled);
        if (setup_.bytes > 0) {
            process.memory.assign(setup_.bytes / sizeof(std::uint64_t), 0);
            process.network.endpoint().expose(process.memory.data(), setup_.bytes, process.exposed);
            serving.base = process.bytes();
            serving.size = setup_.bytes;
            serving.exposed = process.exposed;
        } else {
            process.regions = std::make_unique<shm::RegionTable>(process.ranks.slot().block(process.rank));
            process.leases = std::make_unique<net::Leases>(*process.regions, &process.network.endpoint());
            serving.regions = process.regions.get();
            serving.leases = process.leases.get();
            serving.caches = process.far.get();
        }
        process.far->served(process.network.serve(serving));
    }

    static constexpr int kMostSteps = 2000;
    static inline Processes* current_ = nullptr;

    const JobSetup setup_;
    fake::Fabric fabric_;
    std::mt19937_64 random_;
    int steps_ = 0;
    shm::WaitPolicy before_;
    std::unique_ptr<net::Card[]> book_memory_;
    net::Book book_;
    std::vector<std::unique_ptr<Process>> all_;
};

inline Process::Process(Processes& all, std::uint32_t number) : rank(number), ranks(all.size(), 1) {
    std::string why;
    EXPECT_TRUE(network.open(all.fabric().open(), all.setup().timeout_ms, all.setup().progress, why)) << why;
}

inline Process::~Process() {
    leases.reset();
    network.endpoint().revoke(exposed);
    network.dismiss(job);
    network.close();
}

}  // namespace osc::test
