// Makes teams by one exchange over the user's communicator.
// Build: -O2
#include "window/team.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "abi/abi.h"
#include "base/log.h"
#include "base/options.h"
#include "base/random.h"
#include "base/warn.h"
#include "host/host.h"
#include "host/nodes.h"
#include "local/cma.h"
#include "shm/machine.h"
#include "window/nodes.h"
#include "window/settings.h"

namespace osc {
namespace {

std::mutex g_mutex;
int g_keyvals[2] = {MPI_KEYVAL_INVALID, MPI_KEYVAL_INVALID};  // for all teams, and for teams made with `loads`

// The data that the processes exchange.
struct TeamRecord {
    shm::ArenaAddress arena;
    std::uint64_t shared_offset;  // of the TeamShared; the one of the node's first process counts
    std::int32_t node;            // see node_of
    std::uint64_t machine;        // see shm::machine_number; 0: use the host's nodes
    std::int32_t ready;           // 1: this process can take part
    std::int32_t error;           // errno, if it cannot because it has no shared memory
    std::int32_t atomics;         // 1: this process asks for the network's atomics
    std::uint64_t meeting;        // random: number of this process's FdExchange for this team
};

std::shared_ptr<Process> known_process(const shm::ArenaAddress& address) {
    static auto* known = new std::map<std::uint64_t, std::weak_ptr<Process>>;
    const std::lock_guard lock(g_mutex);
    std::weak_ptr<Process>& entry = (*known)[address.token];
    std::shared_ptr<Process> process = entry.lock();
    if (process == nullptr) {
        process = std::make_shared<Process>(address);
        entry = process;
        // A program that spawns and disconnects again and again would keep what it knew of all of them.
        std::erase_if(*known, [](const auto& its) { return its.second.expired(); });
    }
    return process;
}

// Shared states of ended teams that other members may still use; their owner frees them when all have detached.
std::vector<std::pair<TeamShared*, std::uint32_t>>& leaving() {
    static auto* list = new std::vector<std::pair<TeamShared*, std::uint32_t>>;
    return *list;
}

void release_shared(TeamShared* shared) {
    shm::Arena& arena = shm::Arena::mine();
    if (const std::uint64_t table = shared->process_table.load(std::memory_order_relaxed); table != 0)
        arena.release(arena.at(table));
    arena.release(shared);
}

void sweep_leaving() {
    const std::lock_guard lock(g_mutex);
    std::erase_if(leaving(), [](const auto& entry) {
        if (entry.first->detached.load(std::memory_order_acquire) < entry.second) return false;
        release_shared(entry.first);
        return true;
    });
}

int drop_team(MPI_Comm, int, void* value, void*) {
    static_cast<Team*>(value)->release();
    return MPI_SUCCESS;
}

bool ensure_keyval(int& keyval) {
    const std::lock_guard lock(g_mutex);
    if (keyval != MPI_KEYVAL_INVALID) return true;
    return host::real().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &drop_team, &keyval, nullptr) == MPI_SUCCESS;
}

// The node of this process: the rank in `comm` of the first process on it, by the host or, if `made_up`, by
// OSC_DEBUG=fake_nodes. -1 if the host does not know.
int node_of(MPI_Comm comm, bool made_up, int rank, int size) {
    if (!made_up) return host::node_of(comm, rank);
    const long nodes = std::min<long>(base::values().fake_nodes, size);
    const long node = rank * nodes / size;
    return static_cast<int>((node * size + nodes - 1) / nodes);
}

}  // namespace

int Team::of(MPI_Comm comm, bool loads, bool atomics, Team*& team, const char*& why) {
    why = "the host MPI cannot keep an attribute";
    // Without made-up nodes there is one kind of team.
    loads = loads && base::values().fake_nodes > 1;
    int& keyval = g_keyvals[loads ? 1 : 0];
    if (!ensure_keyval(keyval)) return MPI_ERR_OTHER;
    void* value = nullptr;
    int found = 0;
    if (const int error = host::real().Comm_get_attr(comm, keyval, static_cast<void*>(&value), &found);
        error != MPI_SUCCESS)
        return error;
    if (found) {
        team = static_cast<Team*>(value);
        team->retain();
        return MPI_SUCCESS;
    }
    sweep_leaving();
    team = new Team;
    why = "the exchange over the communicator failed";
    int error = compare_settings(comm, team->not_served_);
    if (error == MPI_SUCCESS && team->not_served_.empty()) error = team->exchange(comm, loads, atomics, true, why);
    if (error == MPI_SUCCESS) {
        team->retain();  // for the attribute
        error = host::real().Comm_set_attr(comm, keyval, team);
        if (error != MPI_SUCCESS) team->release();
    }
    if (error != MPI_SUCCESS) {
        team->release();
        team = nullptr;
    }
    return error;
}

int Team::largest(MPI_Comm comm, std::span<int> values) {
    auto all = std::make_unique<std::vector<int>>(values.begin(), values.end());
    MPI_Request request = MPI_REQUEST_NULL;
    int error = host::real().Iallreduce(MPI_IN_PLACE, all->data(), static_cast<int>(all->size()), MPI_INT, MPI_MAX,
                                        comm, &request);
    if (error != MPI_SUCCESS) return error;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Clock::time_point next = begin + std::chrono::milliseconds(100);
    bool dead = false;
    error = host::wait(request, [&] {
        if (Clock::now() < next) return true;
        next = Clock::now() + std::chrono::milliseconds(100);
        // The host may have ended the reduction for another process of the node, which then looks at its share no more.
        dead = find_dead(Clock::now() - begin > std::chrono::seconds(10) ? Asked::All : Asked::Share) >= 0;
        return !dead;
    });
    if (dead) {
        static_cast<void>(all.release());  // the host's reduction never ends and may still use it
        return MPI_ERR_OTHER;
    }
    std::copy(all->begin(), all->end(), values.begin());
    return error;
}

std::uint64_t Team::window_id(std::uint64_t creation) const {
    // A bijection of the creation's number: numbers of one team never collide, numbers of two teams are random.
    return (random_ ^ creation) * 0x9e3779b97f4a7c15ull;
}

int Team::exchange(MPI_Comm comm, bool loads, bool atomics, bool joins, const char*& why) {
    const host::Real& mpi = host::real();
    int size = 0;
    int rank = 0;
    mpi.Comm_size(comm, &size);
    mpi.Comm_rank(comm, &rank);
    size_ = static_cast<std::uint32_t>(size);
    me_ = static_cast<std::uint32_t>(rank);
    if (group_ == MPI_GROUP_NULL) mpi.Comm_group(comm, &group_);
    base::set_rank(rank, size);
    cma::allow_peers();

    shm::Arena& arena = shm::Arena::mine();
    TeamRecord mine{};
    const bool made_up = std::min<long>(base::values().fake_nodes, size) > 1 && !loads;
    mine.node = node_of(comm, made_up, rank, size);
    mine.machine = joins && !made_up && !abi::simulates_nodes() ? shm::machine_number() : 0;
    mine.atomics = atomics ? 1 : 0;
    mine.meeting = base::random64();
    const bool opened = arena.open();
    if (!opened) mine.error = errno;
    mine.ready = opened && host::self_comm(comm) != MPI_COMM_NULL && mine.node >= 0 ? 1 : 0;
    TeamShared* made = nullptr;
    if (mine.ready && rank == mine.node) {
        const shm::ArenaBlock piece = arena.allocate(sizeof(TeamShared), alignof(TeamShared), true);
        if (piece) {
            made = new (piece.address) TeamShared;
            mine.shared_offset = piece.offset;
        } else {
            mine.ready = 0;
            mine.error = errno;
        }
    }
    if (mine.ready) mine.arena = arena.address();

    std::vector<TeamRecord> records(size_);
    MPI_Request request = MPI_REQUEST_NULL;
    int error = mpi.Iallgather(&mine, sizeof mine, MPI_BYTE, records.data(), sizeof mine, MPI_BYTE, comm, &request);
    if (error == MPI_SUCCESS) error = host::wait(request);
    if (error != MPI_SUCCESS) {
        if (made != nullptr) arena.release(made);
        return error;
    }
    bool ready = true;
    bool no_memory = false;
    for (const TeamRecord& record : records) {
        ready = ready && record.ready != 0;
        no_memory = no_memory || record.error == ENOMEM;
        atomics = atomics || record.atomics != 0;
    }
    const bool joined = ready && join_nodes(std::span(records));
    mine.node = records[me_].node;
    spans_nodes_ =
        std::any_of(records.begin(), records.end(), [&](const TeamRecord& record) { return record.node != mine.node; });
    if (joined && made != nullptr && rank != mine.node) {  // this process is the first of the host's node only
        release_shared(made);
        made = nullptr;
    }
    random_ = records[0].meeting;
    Layout layout;
    if (ready && spans_nodes_) {
        local_ranks_ = std::make_unique<shm::LocalRanks>();
        layout.local_index.assign(size_, shm::LocalRanks::kRemote);
        layout.node_of.reserve(size_);
        for (std::uint32_t other = 0; other < size_; ++other) {
            const auto node = static_cast<std::uint32_t>(records[other].node);
            if (node == other) {
                if (records[other].node == mine.node) layout.node = static_cast<std::uint32_t>(layout.leaders.size());
                layout.leaders.push_back(other);
            }
            layout.node_of.push_back(static_cast<std::uint32_t>(
                std::lower_bound(layout.leaders.begin(), layout.leaders.end(), node) - layout.leaders.begin()));
            if (records[other].node != mine.node) continue;
            layout.local_index[other] = local_size();
            local_ranks_->rank_at.push_back(other);
        }
        local_ranks_->local_index = layout.local_index;
    }
    // If one process cannot reach the others, the whole team falls back to the host.
    int visibility = kNone;
    if (ready) {
        processes_.reserve(local_size());
        for (std::uint32_t at = 0; at < local_size(); ++at)
            processes_.push_back(known_process(records[rank_at(at)].arena));
        visibility = first_hidden(0) < local_size() ? kHidden : map_shared(records[leader()].shared_offset);
        int network = visibility;
        if (spans_nodes_) error = agree_on_provider(comm, atomics, 0, network);
        if (error == MPI_SUCCESS && network == kNoNetwork) visibility = kNoNetwork;
    }
    if (error == MPI_SUCCESS) error = host::least(comm, visibility, visibility);
    if (error == MPI_SUCCESS && visibility == kHidden) {
        std::vector<std::uint64_t> meetings;
        for (const TeamRecord& record : records)
            meetings.push_back(record.meeting);
        error = pass_arenas(comm, meetings, records[leader()].shared_offset, visibility);
    }
    const bool shares_table = error == MPI_SUCCESS && visibility == kAll && spans_nodes_;
    if (shares_table) error = exchange_network(comm, layout, atomics, visibility);
    if (error != MPI_SUCCESS || visibility != kAll) {
        if (shares_table)
            leave();  // other processes may still read the process table
        else if (made != nullptr)
            release_shared(made);
        shared_ = nullptr;
        local_ranks_.reset();
        if (error != MPI_SUCCESS) return error;
        // An error, as where the memory of a window has no room: the host serves what libosc cannot.
        if (no_memory || visibility == kNoMemory) {
            why = "a process has no memory or addresses left for libosc's shared state (ulimit -v)";
            return MPI_ERR_NO_MEM;
        }
        if (joined && visibility != kNoNetwork) {
            if (rank == 0)
                base::warn_for_group(
                    "processes of one machine cannot map each other's memory; the host MPI's nodes count as nodes");
            processes_.clear();
            return exchange(comm, loads, atomics, false, why);
        }
        if (ready && visibility == kNoNetwork) error = name_network_failure(comm);
        if (not_served_.empty())
            not_served_ = !ready         ? "a process has no shared memory (memfd), descriptors or communicators left"
                          : spans_nodes_ ? "a process cannot use the network, or map the shared memory of another"
                                         : "a process cannot map the shared memory of another";
        return error;
    }
    choose_waits();
    return MPI_SUCCESS;
}

void Team::choose_waits() {
    std::vector<base::CoreAllowance> cores;
    cores.reserve(local_size());
    for (std::uint32_t at = 0; at < local_size(); ++at)
        cores.push_back(at == local_index(me_) ? shm::Arena::mine().cores() : processes_[at]->arena.cores());
    const std::string text = host::set_wait_policy(base::core_sharing(cores));
    if (me_ == leader() && base::verbose("strategy"))
        base::say("%u of %u processes on this node; %s", local_size(), size_, text.c_str());
}

Team::~Team() {
    if (group_ != MPI_GROUP_NULL) {
        int finalized = 0;
        host::real().Finalized(&finalized);
        if (!finalized) host::real().Group_free(&group_);
    }
    if (shared_ != nullptr) leave();
}

void Team::leave() {
    forget_network();
    if (me_ == leader()) {
        const std::lock_guard lock(g_mutex);
        leaving().emplace_back(shared_, local_size());
    }
    shared_->detached.fetch_add(1, std::memory_order_acq_rel);
}

void Team::release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Team::release_keyval() {
    g_keyvals[0] = g_keyvals[1] = MPI_KEYVAL_INVALID;
}

std::shared_ptr<shm::PeerArena> Team::arena_at(const shm::ArenaAddress& address) {
    const std::shared_ptr<Process> process = known_process(address);
    return {process, &process->arena};
}

bool Team::alive(std::uint32_t rank) {
    if (rank >= size_ || rank == me_ || shared_ == nullptr) return true;
    if (local_index(rank) != shm::LocalRanks::kRemote) return process(rank).arena.owner_lives();
    if (job_ == nullptr) return true;  // before the processes have exchanged their network addresses
    net::Connection* peer = net::NetworkStack::mine().connections.connect(job_->addresses[rank]);
    // Libfabric may refuse the address of a process that lives: operations on it then fail, and nothing else does.
    return peer == nullptr || net::NetworkStack::mine().messenger.alive(*peer);
}

int Team::dead_in_collective() {
    return find_dead(Asked::Share);
}

// Every process of the node looks at the node's processes, and each at its share of the others.
int Team::find_dead(Asked asked) {
    if (shared_ == nullptr) return -1;
    if (const int dead = shared_->dead.load(std::memory_order_relaxed); dead >= 0) return dead;
    std::uint32_t others = 0;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
        const bool is_local = local_index(rank) != shm::LocalRanks::kRemote;
        if (!is_local && others++ % local_size() != local_index(me_) && asked == Asked::Share) continue;
        if (alive(rank)) continue;
        shared_->dead.store(static_cast<int>(rank), std::memory_order_relaxed);
        return static_cast<int>(rank);
    }
    return -1;
}

}  // namespace osc
