// Makes teams by one exchange over the user's communicator, and ends them: one file, because the steps of an exchange
// share the records of its processes.
#include "window/team.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "abi/abi.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/options.h"
#include "base/random.h"
#include "base/warn.h"
#include "host/host.h"
#include "local/cma.h"
#include "shm/fd_exchange.h"
#include "shm/machine.h"
#include "window/nodes.h"
#include "window/settings.h"

namespace osc {
namespace {

constexpr const char* kNoMemoryLeft = "a process has no memory or addresses left for libosc's shared state (ulimit -v)";

// A process asks the others for their arenas for at most this long; each answers as soon as it runs.
constexpr std::chrono::seconds kPatience{5};

std::mutex g_mutex;
int g_keyvals[2] = {MPI_KEYVAL_INVALID, MPI_KEYVAL_INVALID};  // for all teams, and for teams made with `loads`

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
TeamShared* g_left = nullptr;

void release_shared(TeamShared* shared) {
    shm::Arena& arena = shm::Arena::mine();
    if (const std::uint64_t table = shared->process_table.load(std::memory_order_relaxed); table != 0)
        arena.release(arena.at(table));
    arena.release(shared);
}

void sweep_left() {
    const std::lock_guard lock(g_mutex);
    for (TeamShared** at = &g_left; *at != nullptr;) {
        TeamShared* const shared = *at;
        if (shared->detached.load(std::memory_order_acquire) < shared->users) {
            at = &shared->next_left;
            continue;
        }
        *at = shared->next_left;
        release_shared(shared);
    }
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

// host::node_of() of a node that OSC_DEBUG=fake_nodes makes up.
int made_up_node(int rank, int size) {
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
    sweep_left();
    team = nullptr;
    Making making{.comm = comm, .loads = loads, .atomics = atomics};
    const Fault fault = base::attempt([&] {
        team = new Team;
        int size = 0;
        host::real().Comm_size(comm, &size);
        making.records.resize(static_cast<std::size_t>(size));
        making.by_machine.resize(static_cast<std::size_t>(size));
    });
    std::string differs;
    why = "the exchange over the communicator failed";
    int error = compare_settings(comm, fault == Fault::None, differs);
    if (error == MPI_ERR_NO_MEM) why = kNoMemoryLeft;
    if (error == MPI_SUCCESS && differs.empty())
        error = team->make(making, why);
    else if (error == MPI_SUCCESS)
        team->not_served_ = std::move(differs);
    if (error == MPI_SUCCESS) {
        team->retain();  // for the attribute
        error = host::real().Comm_set_attr(comm, keyval, team);
        if (error != MPI_SUCCESS) team->release();
    }
    if (error != MPI_SUCCESS) {
        if (team != nullptr) team->release();
        team = nullptr;
    }
    return error;
}

int Team::largest(MPI_Comm comm, std::span<int> values) {
    OSC_ASSERT(values.size() <= kMostValues);
    if (is_lost_) return MPI_ERR_OTHER;
    std::copy(values.begin(), values.end(), values_);
    MPI_Request request = MPI_REQUEST_NULL;
    int error = host::real().Iallreduce(MPI_IN_PLACE, values_, static_cast<int>(values.size()), MPI_INT, MPI_MAX, comm,
                                        &request);
    if (error != MPI_SUCCESS) return error;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Clock::time_point next = begin + std::chrono::milliseconds(100);
    error = host::wait(request, [&] {
        if (Clock::now() < next) return true;
        next = Clock::now() + std::chrono::milliseconds(100);
        // The host may have ended the reduction for another process of the node, which then looks at its share no more.
        is_lost_ = find_dead(Clock::now() - begin > std::chrono::seconds(10) ? Asked::All : Asked::Share) >= 0;
        return !is_lost_;
    });
    if (is_lost_) {
        retain();  // for ever: the host's reduction never ends and may still write to this object
        return MPI_ERR_OTHER;
    }
    std::copy_n(values_, values.size(), values.begin());
    return error;
}

std::uint64_t Team::window_id(std::uint64_t creation) const {
    // A bijection of the creation's number: numbers of one team never collide, numbers of two teams are random.
    return (random_ ^ creation) * 0x9e3779b97f4a7c15ull;
}

int Team::make(Making& making, const char*& why) {
    const host::Real& mpi = host::real();
    int size = 0;
    int rank = 0;
    mpi.Comm_size(making.comm, &size);
    mpi.Comm_rank(making.comm, &rank);
    size_ = static_cast<std::uint32_t>(size);
    me_ = static_cast<std::uint32_t>(rank);
    mpi.Comm_group(making.comm, &group_);
    base::set_rank(rank, size);
    int error = exchange(making, true);
    // Joined nodes may be those of processes that cannot map each other's memory.
    if (error == MPI_SUCCESS && making.joined && (making.visibility == kNone || making.visibility == kHidden)) {
        if (rank == 0)
            base::warn_for_group(
                "processes of one machine cannot map each other's memory; the host MPI's nodes count as nodes");
        error = exchange(making, false);
    }
    if (error != MPI_SUCCESS || making.visibility != kAll) return give_up(making, error, why);
    static_cast<void>(base::attempt([&] { choose_waits(); }));
    return MPI_SUCCESS;
}

// If one process cannot reach the others, the whole team falls back to the host. No process that fails leaves the
// others alone: it takes part in the next agreement on the visibility.
int Team::exchange(Making& making, bool joins) {
    const Record mine = introduce(making, joins);
    int error = host::gather(making.comm, mine, making.records.data());
    if (error != MPI_SUCCESS) {
        if (making.made != nullptr) release_shared(std::exchange(making.made, nullptr));
        return error;
    }
    read_records(making);
    making.visibility = kNone;
    if (making.ready) {
        if (base::attempt([&] {
                lay_out(making);
                making.visibility = reach_node(making);
            }) != Fault::None)
            making.visibility = kNoMemory;
    } else if (making.no_memory) {
        making.visibility = kNoMemory;
    }
    error = host::least(making.comm, making.visibility, making.visibility);
    if (error == MPI_SUCCESS && making.visibility == kHidden) error = pass_arenas(making);
    if (error == MPI_SUCCESS && making.visibility == kAll && spans_nodes_)
        error = agree_on_provider(making.comm, making.atomics, 0, making.visibility);
    if (error == MPI_SUCCESS && making.visibility == kAll && spans_nodes_) {
        error = exchange_network(making);
        if (error == MPI_SUCCESS && making.visibility == kAll) return MPI_SUCCESS;
        leave();  // other processes may still read the process table
        making.made = nullptr;
    }
    if (error == MPI_SUCCESS && making.visibility == kAll) return MPI_SUCCESS;
    if (making.made != nullptr) release_shared(std::exchange(making.made, nullptr));
    shared_ = nullptr;
    local_ranks_.reset();
    processes_.clear();
    return error;
}

// What this process says of itself. The first process of a node makes the node's shared state.
Team::Record Team::introduce(Making& making, bool joins) {
    cma::allow_peers();
    const auto rank = static_cast<int>(me_);
    Record mine{};
    const bool made_up = std::min<long>(base::values().fake_nodes, size_) > 1 && !making.loads;
    mine.node = made_up ? made_up_node(rank, static_cast<int>(size_)) : host::node_of(making.comm, rank);
    mine.machine = joins && !made_up && !abi::simulates_nodes() ? shm::machine_number() : 0;
    mine.atomics = making.atomics ? 1 : 0;
    mine.meeting = base::random64();
    shm::Arena& arena = shm::Arena::mine();
    if (base::attempt([&] {
            if (!arena.open()) {
                mine.error = errno;
                return;
            }
            if (host::self_comm(making.comm) == MPI_COMM_NULL || mine.node < 0) return;
            if (rank == mine.node) {
                const shm::ArenaBlock piece = arena.allocate(sizeof(TeamShared), alignof(TeamShared), true);
                if (!piece) {
                    mine.error = errno;
                    return;
                }
                making.made = new (piece.address) TeamShared;
                mine.shared_offset = piece.offset;
            }
            mine.arena = arena.address();
            mine.ready = 1;
        }) != Fault::None)
        mine.error = ENOMEM;
    return mine;
}

void Team::read_records(Making& making) {
    making.ready = true;
    for (const Record& record : making.records) {
        making.ready = making.ready && record.ready != 0;
        making.no_memory = making.no_memory || record.error == ENOMEM;
        making.atomics = making.atomics || record.atomics != 0;
    }
    making.joined = making.ready && join_nodes(std::span(making.records), std::span(making.by_machine));
    const std::int32_t node = making.records[me_].node;
    spans_nodes_ = std::any_of(making.records.begin(), making.records.end(),
                               [&](const Record& record) { return record.node != node; });
    if (making.joined && making.made != nullptr && static_cast<int>(me_) != node)
        release_shared(std::exchange(making.made, nullptr));  // this process is the first of the host's node only
    random_ = making.records[0].meeting;
}

// The nodes of a team that spans several, and the processes of this one.
void Team::lay_out(Making& making) {
    making.leaders.clear();
    making.node_of.clear();
    const std::int32_t mine = making.records[me_].node;
    if (spans_nodes_) {
        local_ranks_ = std::make_unique<shm::LocalRanks>();
        making.addresses.resize(size_);
        making.local_index.assign(size_, shm::LocalRanks::kRemote);
        making.node_of.reserve(size_);
        for (std::uint32_t other = 0; other < size_; ++other) {
            const auto node = static_cast<std::uint32_t>(making.records[other].node);
            if (node == other) {
                if (making.records[other].node == mine) making.node = static_cast<std::uint32_t>(making.leaders.size());
                making.leaders.push_back(other);
            }
            making.node_of.push_back(static_cast<std::uint32_t>(
                std::lower_bound(making.leaders.begin(), making.leaders.end(), node) - making.leaders.begin()));
            if (making.records[other].node != mine) continue;
            making.local_index[other] = local_size();
            local_ranks_->rank_at.push_back(other);
        }
        local_ranks_->local_index = making.local_index;
    }
    processes_.reserve(local_size());
    for (std::uint32_t at = 0; at < local_size(); ++at)
        processes_.push_back(known_process(making.records[rank_at(at)].arena));
}

// Opens the arenas of this node's processes, and maps their shared state.
int Team::reach_node(const Making& making) {
    if (first_hidden(0) < local_size()) return kHidden;
    shared_ = reinterpret_cast<TeamShared*>(map(leader(), making.records[leader()].shared_offset, sizeof(TeamShared)));
    if (shared_ != nullptr) return kAll;
    return errno == ENOMEM ? kNoMemory : kNone;
}

// A process that cannot open an arena asks its owner for it, one owner after the other. All processes listen before any
// of them asks, so a failed connection is final. All answer until a reduction has ended, which each process enters when
// it has all arenas.
int Team::pass_arenas(Making& making) {
    shm::FdExchange passing(making.records[me_].meeting);
    if (const int error = host::least(making.comm, passing.listening() ? kAll : kNone, making.visibility);
        error != MPI_SUCCESS || making.visibility == kNone)
        return error;
    int mine = kNoMemory;
    static_cast<void>(base::attempt([&] { mine = fetch_arenas(making, passing) ? reach_node(making) : kNone; }));
    passing.abandon();
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = host::real().Iallreduce(&mine, &making.visibility, 1, MPI_INT, MPI_MIN, making.comm, &request);
    if (error != MPI_SUCCESS) return error;
    return host::wait(request, [&] {
        passing.serve();
        return true;
    });
}

bool Team::fetch_arenas(const Making& making, shm::FdExchange& passing) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (std::uint32_t at = first_hidden(0); at < local_size();) {
        passing.serve();
        host::progress();
        const shm::Fetched got = passing.fetch(making.records[rank_at(at)].meeting, processes_[at]->arena);
        if (got == shm::Fetched::Yes)
            at = first_hidden(at);
        else if (got == shm::Fetched::Never || std::chrono::steady_clock::now() > end)
            return false;
        else
            ::sched_yield();
    }
    return true;
}

// An error, as where the memory of a window has no room; but the host serves what libosc cannot.
int Team::give_up(Making& making, int error, const char*& why) {
    if (error != MPI_SUCCESS) return error;
    if (making.no_memory || making.visibility == kNoMemory) {
        why = kNoMemoryLeft;
        return MPI_ERR_NO_MEM;
    }
    if (making.ready && making.visibility == kNoNetwork) error = name_network_failure(making.comm);
    if (not_served_.empty())
        not_served_ = !making.ready  ? "a process has no shared memory (memfd), descriptors or communicators left"
                      : spans_nodes_ ? "a process cannot use the network, or map the shared memory of another"
                                     : "a process cannot map the shared memory of another";
    return error;
}

std::uint32_t Team::first_hidden(std::uint32_t from) const {
    while (from < local_size() && (rank_at(from) == me_ || processes_[from]->arena.reachable()))
        ++from;
    return from;
}

void Team::choose_waits() {
    std::vector<base::CoreAllowance> cores;
    cores.reserve(local_size());
    for (std::uint32_t at = 0; at < local_size(); ++at)
        cores.push_back(at == local_index(me_) ? shm::Arena::mine().cores() : processes_[at]->arena.cores());
    // The node's processes outside this communicator use cores too: the same ones, if the launcher binds no process.
    const base::CoreAllowance& mine = shm::Arena::mine().cores();
    const int all = mine.is_bound() ? 0 : base::launcher::size_on_node();
    while (cores.size() < static_cast<std::size_t>(all))
        cores.push_back(mine);
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
        shared_->users = local_size();
        shared_->next_left = std::exchange(g_left, shared_);
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

std::byte* Team::map(std::uint32_t rank, std::uint64_t offset, std::size_t bytes) const {
    if (rank == me_) return shm::Arena::mine().at(offset);
    return process(rank).arena.map(offset, bytes);
}

void Team::unmap(std::uint32_t rank, std::uint64_t offset, std::byte* address, std::size_t bytes) const {
    if (rank != me_) process(rank).arena.unmap(offset, address, bytes);
}

bool Team::cma_reaches(std::uint32_t rank) const {
    if (base::values().cma == "off") return false;
    Process& process = this->process(rank);
    int known = process.cma.load(std::memory_order_relaxed);
    if (known < 0) {
        const shm::ArenaAddress& address = process.arena.address();
        known = address.pid > 0 && cma::reachable(address.pid, address.probe, address.token) ? 1 : 0;
        process.cma.store(known, std::memory_order_relaxed);
    }
    return known != 0;
}

bool Team::cma_reaches_all() const {
    for (std::uint32_t at = 0; at < local_size(); ++at)
        if (rank_at(at) != me_ && !cma_reaches(rank_at(at))) return false;
    return true;
}

}  // namespace osc
