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
#include "sync/dissemination.h"
#include "window/mates.h"
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

// The first process of a node that OSC_DEBUG=fake_nodes makes up.
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
        making.said.resize(kUnionWords + (static_cast<std::size_t>(size) + 63) / 64);
        making.room.resize(static_cast<std::size_t>(size) + 1);
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
        if (team != nullptr) team->release();  // NOLINT(clang-analyzer-cplusplus.NewDelete): the second reference
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
    const bool made_up = makes_up_nodes(making);
    const bool by_host = abi::simulates_nodes() && !made_up;
    int error = exchange(making, by_host);
    // Processes that are hidden from each other may be on several nodes by the host MPI.
    const bool are_hidden = making.visibility == kNone || making.visibility == kHidden;
    if (error == MPI_SUCCESS && are_hidden && !by_host && !made_up) {
        error = exchange(making, true);
        if (rank == 0 && making.visibility == kAll)
            base::warn_for_group(
                "processes of one machine cannot map each other's memory; the host MPI's nodes count as nodes");
    }
    if (error != MPI_SUCCESS || making.visibility != kAll) return give_up(making, error, why);
    static_cast<void>(base::attempt([&] { choose_waits(); }));
    return MPI_SUCCESS;
}

// If one process cannot reach the others, the whole team falls back to the host. No process that fails leaves the
// others alone: it takes part in the next agreement on the visibility.
int Team::exchange(Making& making, bool by_host) {
    int error = find_nodes(making, by_host);
    if (error != MPI_SUCCESS) {
        if (making.made != nullptr) release_shared(std::exchange(making.made, nullptr));
        return error;
    }
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

// The nodes, in steps that grow with the logarithm of the processes: mates find each other and exchange records, the
// union says which processes are the first ones, and these exchange what their mates say.
int Team::find_nodes(Making& making, bool by_host) {
    Fault fault = find_mates(making, by_host);
    if (fault == Fault::None) {
        const int error = gather_mates(making, by_host, fault);
        if (error != MPI_SUCCESS) return error;
    }
    making.all.clear();
    std::ranges::fill(making.said, 0);
    auto& all = *reinterpret_cast<Union*>(making.said.data());
    const std::span<std::uint64_t> firsts = std::span(making.said).subspan(kUnionWords);
    all.unready = fault != Fault::None ? 1 : 0;
    all.no_memory = fault == Fault::NoMem ? 1 : 0;
    all.atomics = making.atomics ? 1 : 0;
    if (me_ == 0)
        all = {all.unready, all.no_memory, all.atomics, base::random64(), {base::random64(), base::random64()}};
    if (making.leads_mates()) firsts[me_ / 64] |= std::uint64_t{1} << me_ % 64;
    const int error = host::unite(making.comm, std::as_writable_bytes(std::span(making.said)));
    if (error != MPI_SUCCESS) return error;
    making.ready = all.unready == 0;
    making.no_memory = all.no_memory != 0;
    making.atomics = all.atomics != 0;
    random_ = all.random;
    name_ = {all.name.token ^ me_, all.name.secret};
    std::uint32_t groups = 0;
    for (const std::uint64_t word : firsts)
        groups += static_cast<std::uint32_t>(std::popcount(word));
    spans_nodes_ = groups > 1;
    return making.ready && spans_nodes_ ? compare_machines(making, groups) : MPI_SUCCESS;
}

// Makes the communicator of this process's mates.
Fault Team::find_mates(Making& making, bool by_host) const {
    const host::Real& mpi = host::real();
    if (making.mates != MPI_COMM_NULL) mpi.Comm_free(&making.mates);
    if (making.own == MPI_COMM_NULL && mpi.Comm_create(making.comm, group_, &making.own) != MPI_SUCCESS) {
        making.own = MPI_COMM_NULL;
        return Fault::Other;
    }
    int error = MPI_SUCCESS;
    if (by_host) {
        error = mpi.Comm_split_type(making.own, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &making.mates);
    } else {
        const std::uint64_t number =
            makes_up_nodes(making)
                ? static_cast<std::uint64_t>(made_up_node(static_cast<int>(me_), static_cast<int>(size_)))
                : shm::host_number();
        error = find_equals(making.own, number, making.room);
        if (error == MPI_SUCCESS && making.room[0] == 0) return Fault::NoMem;
        MPI_Group group = MPI_GROUP_NULL;
        if (error == MPI_SUCCESS) error = mpi.Group_incl(group_, making.room[0], &making.room[1], &group);
        if (error == MPI_SUCCESS) error = mpi.Comm_create_group(making.own, group, kMakesMates, &making.mates);
        if (group != MPI_GROUP_NULL) mpi.Group_free(&group);
    }
    if (error == MPI_SUCCESS) return Fault::None;
    making.mates = MPI_COMM_NULL;
    return Fault::Other;
}

// Whether OSC_DEBUG=fake_nodes makes up the nodes of the team.
bool Team::makes_up_nodes(const Making& making) const {
    return std::min<long>(base::values().fake_nodes, size_) > 1 && !making.loads;
}

// The records of this process's mates. `fault`: why the process cannot take part.
int Team::gather_mates(Making& making, bool by_host, Fault& fault) {
    const host::Real& mpi = host::real();
    int local = 0;
    int place = 0;
    mpi.Comm_size(making.mates, &local);
    mpi.Comm_rank(making.mates, &place);
    making.place = static_cast<std::uint32_t>(place);
    Record mine{};
    mine.rank = static_cast<std::int32_t>(me_);
    mine.machine = by_host || makes_up_nodes(making) ? 0 : shm::machine_number();
    fault = base::attempt([&] {
        making.records.resize(static_cast<std::size_t>(local));
        making.mate_ranks.resize(making.records.size());
        making.addresses.resize(making.records.size());
        return introduce(making, mine);
    });
    int can = 0;
    int error = host::least(making.mates, fault == Fault::None ? 1 : 0, can);
    if (error != MPI_SUCCESS || can == 0) return error;
    error = host::gather(making.mates, mine, making.records.data());
    for (std::size_t at = 0; at < making.records.size(); ++at) {
        making.records[at].node = making.records[0].rank;
        making.mate_ranks[at] = static_cast<std::uint32_t>(making.records[at].rank);
    }
    return error;
}

// What this process says of itself. The first process of a node makes the node's shared state.
Fault Team::introduce(Making& making, Record& mine) {
    cma::allow_peers();
    mine.meeting = base::random64();
    shm::Arena& arena = shm::Arena::mine();
    const auto failed = [] { return errno == ENOMEM ? Fault::NoMem : Fault::Other; };
    if (!arena.open()) return failed();
    if (host::self_comm(making.comm) == MPI_COMM_NULL) return Fault::Other;
    if (making.leads_mates()) {
        const shm::ArenaBlock piece = arena.allocate(sizeof(TeamShared), alignof(TeamShared), true);
        if (!piece) return failed();
        making.made = new (piece.address) TeamShared;
        mine.shared_offset = piece.offset;
    }
    mine.arena = arena.address();
    return Fault::None;
}

// False in `making.ready` if a process has no memory for the next step.
int Team::agree_on_memory(Making& making, Fault fault) {
    int can = 0;
    const int error = host::least(making.comm, fault == Fault::None ? 1 : 0, can);
    making.ready = can != 0;
    making.no_memory = making.no_memory || can == 0;
    return error;
}

// The first processes exchange the machines of their mates.
int Team::compare_machines(Making& making, std::uint32_t groups) {
    const Fault fault = base::attempt([&] {
        making.firsts.clear();
        making.firsts.reserve(groups);
        for (std::uint32_t rank = 0; rank < size_; ++rank)
            if ((making.said[kUnionWords + rank / 64] >> rank % 64 & 1) != 0) making.firsts.push_back(rank);
        if (making.leads_mates()) making.parts.resize(groups);
    });
    int error = agree_on_memory(making, fault);
    if (error != MPI_SUCCESS || !making.ready) return error;
    making.group = static_cast<std::uint32_t>(std::ranges::lower_bound(making.firsts, making.mate_ranks[0]) -
                                              making.firsts.begin());
    int apart = 1;
    if (making.leads_mates()) {
        // The number of no machine says that the node's processes are on several.
        const bool mixed = std::ranges::any_of(
            making.records, [&](const Record& record) { return record.machine != making.records[0].machine; });
        making.parts[0] = mixed ? ~std::uint64_t{0} : making.records[0].machine;
        making.part_words = 1;
        error = gather_parts(making);
        if (error != MPI_SUCCESS) return error;
        std::ranges::sort(making.parts);
        const auto known = std::ranges::upper_bound(making.parts, std::uint64_t{0});
        const bool equal = std::adjacent_find(known, making.parts.end()) != making.parts.end();
        apart = equal || making.parts.back() == ~std::uint64_t{0} ? 0 : 1;
    }
    error = host::least(making.mates, apart, apart);
    return error == MPI_SUCCESS && apart == 0 ? find_machines(making) : error;
}

// Groups may be of one machine: all processes exchange their records.
int Team::find_machines(Making& making) {
    std::vector<std::int32_t> by_machine;
    int error = agree_on_memory(making, base::attempt([&] {
                                    making.all.resize(size_);
                                    by_machine.resize(size_);
                                }));
    if (error != MPI_SUCCESS || !making.ready) return error;
    error = host::gather(making.comm, making.records[making.place], making.all.data());
    if (error == MPI_SUCCESS) join_nodes(std::span(making.all), std::span(by_machine));
    return error;
}

// The first processes exchange parts of equal length, by Bruck's algorithm: a process begins with
// its own, and ends with those of all, from its own on.
int Team::gather_parts(Making& making) {
    const host::Real& mpi = host::real();
    const sync::Dissemination among{making.group, static_cast<std::uint32_t>(making.firsts.size())};
    const auto rank_of = [&](std::uint32_t group) { return static_cast<int>(making.firsts[group]); };
    for (std::uint32_t distance = 1; distance < among.nodes; distance *= 2) {
        const auto words = static_cast<int>(among.blocks(distance) * making.part_words);
        MPI_Request received = MPI_REQUEST_NULL;
        MPI_Request sent = MPI_REQUEST_NULL;
        int error = mpi.Irecv(making.parts.data() + distance * making.part_words, words, MPI_UINT64_T,
                              rank_of(among.next(distance)), kParts, making.own, &received);
        if (error != MPI_SUCCESS) return error;
        error = mpi.Isend(making.parts.data(), words, MPI_UINT64_T, rank_of(among.before(distance)), kParts, making.own,
                          &sent);
        if (error == MPI_SUCCESS) error = host::wait(received);
        if (error == MPI_SUCCESS) error = host::wait(sent);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

// The nodes of a team that spans several, and the processes of this one.
void Team::lay_out(Making& making) {
    const auto first = [&](std::size_t rank) { return static_cast<std::uint32_t>(making.all[rank].node); };
    if (making.all.empty()) {
        making.leaders = making.firsts;
    } else {
        making.leaders.clear();
        making.records.clear();
        for (std::uint32_t rank = 0; rank < size_; ++rank) {
            if (first(rank) == rank) making.leaders.push_back(rank);
            if (first(rank) == first(me_)) making.records.push_back(making.all[rank]);
        }
    }
    const auto node_at = [&](std::uint32_t leader) {
        return static_cast<std::uint32_t>(std::ranges::lower_bound(making.leaders, leader) - making.leaders.begin());
    };
    making.node_of_group.clear();
    for (const std::uint32_t rank : making.firsts)
        making.node_of_group.push_back(node_at(making.all.empty() ? rank : first(rank)));
    spans_nodes_ = making.leaders.size() > 1;
    const auto leader = static_cast<std::uint32_t>(making.records[0].rank);
    if (making.made != nullptr && me_ != leader)
        release_shared(std::exchange(making.made, nullptr));  // this process is the first of its mates only
    if (spans_nodes_) {
        making.node = node_at(leader);
        local_ranks_ = std::make_unique<shm::LocalRanks>();
        for (const Record& record : making.records)
            local_ranks_->rank_at.push_back(static_cast<std::uint32_t>(record.rank));
        OSC_ASSERT(std::ranges::is_sorted(local_ranks_->rank_at));
    }
    processes_.reserve(making.records.size());
    for (const Record& record : making.records)
        processes_.push_back(known_process(record.arena));
}

// Opens the arenas of this node's processes, and maps their shared state.
int Team::reach_node(const Making& making) {
    if (first_hidden(0) < local_size()) return kHidden;
    shared_ = reinterpret_cast<TeamShared*>(map(leader(), making.records[0].shared_offset, sizeof(TeamShared)));
    if (shared_ != nullptr) return kAll;
    return errno == ENOMEM ? kNoMemory : kNone;
}

// A process that cannot open an arena asks its owner for it, one owner after the other. All processes listen before any
// of them asks, so a failed connection is final. All answer until a reduction has ended, which each process enters when
// it has all arenas.
int Team::pass_arenas(Making& making) {
    shm::FdExchange passing(making.records[local_index(me_)].meeting);
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
        const shm::Fetched got = passing.fetch(making.records[at].meeting, processes_[at]->arena);
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

Team::Making::~Making() {
    for (MPI_Comm* const made_here : {&mates, &own})
        if (*made_here != MPI_COMM_NULL) host::real().Comm_free(made_here);
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
    return net::NetworkStack::mine().directory.alive(*job_, rank);
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
