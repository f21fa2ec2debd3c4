// Making teams: one exchange over the user's communicator, agreed on by all of its processes.
#include "window/team.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "config/options.h"
#include "diag/log.h"
#include "host/host.h"
#include "transport/cma/cma.h"
#include "transport/shm/passing.h"

namespace osc {
namespace {

std::mutex g_mutex;
int g_keyval = MPI_KEYVAL_INVALID;

// What every process tells the others.
struct Card {
    shm::ArenaAddress arena;
    std::uint64_t shared_offset;  // of the TeamShared; rank 0's counts
    std::int32_t node_size;       // processes of the communicator on this node
    std::int32_t ready;           // whether this process can take part
    std::uint64_t meeting;        // random: where this process would hand out its arena, for this team only
};

// How far a process has got with the arenas of the others; the least counts for all.
enum Reach : int {
    kNone,    // the team cannot be served
    kHidden,  // some arenas are not to be seen in /proc
    kAll,
};

// For this long a process asks the others for their arenas: each of them answers as soon as it runs.
constexpr std::chrono::seconds kPatience{5};

int agree(MPI_Comm comm, int mine, int& least) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = host::real().Iallreduce(&mine, &least, 1, MPI_INT, MPI_MIN, comm, &request);
    return error == MPI_SUCCESS ? host::wait(request) : error;
}

std::shared_ptr<Process> known_process(const shm::ArenaAddress& address) {
    static auto* known = new std::map<std::uint64_t, std::weak_ptr<Process>>;
    const std::lock_guard lock(g_mutex);
    std::weak_ptr<Process>& entry = (*known)[address.token];
    std::shared_ptr<Process> process = entry.lock();
    if (process == nullptr) {
        process = std::make_shared<Process>(address);
        entry = process;
    }
    return process;
}

// Team areas whose other members have not all let go yet; freed by their owner when they have.
std::vector<std::pair<TeamShared*, std::uint32_t>>& leaving() {
    static auto* list = new std::vector<std::pair<TeamShared*, std::uint32_t>>;
    return *list;
}

void sweep_leaving() {
    const std::lock_guard lock(g_mutex);
    std::erase_if(leaving(), [](const auto& entry) {
        if (entry.first->detached.load(std::memory_order_acquire) < entry.second) return false;
        shm::Arena::mine().release(entry.first);
        return true;
    });
}

int drop_team(MPI_Comm, int, void* value, void*) {
    static_cast<Team*>(value)->release();
    return MPI_SUCCESS;
}

bool ensure_keyval() {
    const std::lock_guard lock(g_mutex);
    if (g_keyval != MPI_KEYVAL_INVALID) return true;
    return host::real().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &drop_team, &g_keyval, nullptr) == MPI_SUCCESS;
}

// Processes of `comm` that share a node with this one, as the host sees it.
int node_size(MPI_Comm comm) {
    if (config::values().nodes > 1) return 0;
    MPI_Comm node = MPI_COMM_NULL;
    int size = 0;
    if (host::real().Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS) return -1;
    host::real().Comm_size(node, &size);
    host::real().Comm_free(&node);
    return size;
}

}  // namespace

int Team::of(MPI_Comm comm, Team*& team, const char*& why) {
    why = "the host MPI cannot keep an attribute";
    if (!ensure_keyval()) return MPI_ERR_OTHER;
    void* value = nullptr;
    int found = 0;
    if (const int error = host::real().Comm_get_attr(comm, g_keyval, static_cast<void*>(&value), &found);
        error != MPI_SUCCESS)
        return error;
    if (found) {
        team = static_cast<Team*>(value);
        team->retain();
        return MPI_SUCCESS;
    }
    sweep_leaving();
    team = new Team;
    int error = team->exchange(comm, why);
    if (error == MPI_SUCCESS) {
        team->retain();  // for the attribute
        error = host::real().Comm_set_attr(comm, g_keyval, team);
        if (error != MPI_SUCCESS) team->release();
    }
    if (error != MPI_SUCCESS) {
        team->release();
        team = nullptr;
    }
    return error;
}

int Team::exchange(MPI_Comm comm, const char*& why) {
    const host::Real& mpi = host::real();
    int size = 0;
    int rank = 0;
    mpi.Comm_size(comm, &size);
    mpi.Comm_rank(comm, &rank);
    size_ = static_cast<std::uint32_t>(size);
    me_ = static_cast<std::uint32_t>(rank);
    mpi.Comm_group(comm, &group_);
    diag::set_rank(rank);
    cma::allow_peers();

    shm::Arena& arena = shm::Arena::mine();
    Card mine{};
    mine.node_size = node_size(comm);
    mine.meeting = shm::random64();
    mine.ready = arena.open() && host::self_comm(comm) != MPI_COMM_NULL && mine.node_size >= 0 ? 1 : 0;
    TeamShared* made = nullptr;
    if (mine.ready && rank == 0) {
        const shm::Piece piece = arena.allocate(sizeof(TeamShared), alignof(TeamShared), true);
        if (piece) {
            made = new (piece.address) TeamShared;
            mine.shared_offset = piece.offset;
        } else {
            mine.ready = 0;
        }
    }
    if (mine.ready) mine.arena = arena.address();

    std::vector<Card> cards(size_);
    MPI_Request request = MPI_REQUEST_NULL;
    int error = mpi.Iallgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, comm, &request);
    if (error == MPI_SUCCESS) error = host::wait(request);
    if (error != MPI_SUCCESS) {
        if (made != nullptr) arena.release(made);
        why = "the exchange over the communicator failed";
        return error;
    }
    bool ready = true;
    bool one_node = true;
    for (const Card& card : cards) {
        ready = ready && card.ready != 0;
        one_node = one_node && card.node_size == size;
    }
    if (ready && !one_node) {
        not_served_ = "its processes are not all on one node";
        spans_nodes_ = config::values().nodes <= 1;  // with OSC_NODES they only seem to be
        if (made != nullptr) arena.release(made);
        return MPI_SUCCESS;
    }
    // A process that cannot reach the others makes the whole team fall back, not only itself.
    int reach = kNone;
    if (ready) {
        processes_.reserve(size_);
        for (const Card& card : cards)
            processes_.push_back(known_process(card.arena));
        reach = first_hidden(0) < size_ ? kHidden : map_shared(cards[0].shared_offset);
    }
    error = agree(comm, reach, reach);
    if (error == MPI_SUCCESS && reach == kHidden) {
        std::vector<std::uint64_t> meetings;
        for (const Card& card : cards)
            meetings.push_back(card.meeting);
        error = pass_arenas(comm, meetings, cards[0].shared_offset, reach);
    }
    if (error != MPI_SUCCESS || reach != kAll) {
        if (made != nullptr) arena.release(made);
        shared_ = nullptr;
        if (error != MPI_SUCCESS) {
            why = "the exchange over the communicator failed";
            return error;
        }
        not_served_ = ready ? "a process cannot map the shared memory of another"
                            : "a process has no shared memory (memfd), descriptors or communicators left";
        return MPI_SUCCESS;
    }
    host::set_wait_policy(size);
    return MPI_SUCCESS;
}

std::uint32_t Team::first_hidden(std::uint32_t from) const {
    while (from < size_ && (from == me_ || processes_[from]->arena.reachable()))
        ++from;
    return from;
}

int Team::map_shared(std::uint64_t offset) {
    shared_ = reinterpret_cast<TeamShared*>(map(0, offset, sizeof(TeamShared)));
    return shared_ != nullptr ? kAll : kNone;
}

// Those who miss arenas ask their owners for them, one after the other. All listen before anybody asks, so that who
// finds nobody need not wait; and all answer until the last has what it needs, which a reduction tells.
int Team::pass_arenas(MPI_Comm comm, const std::vector<std::uint64_t>& meetings, std::uint64_t shared_offset,
                      int& reach) {
    shm::Passing passing(meetings[me_]);
    if (const int error = agree(comm, passing.listening() ? kAll : kNone, reach);
        error != MPI_SUCCESS || reach == kNone)
        return error;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    reach = kAll;
    for (std::uint32_t rank = first_hidden(0); rank < size_ && reach == kAll;) {
        passing.serve();
        host::progress();
        const shm::Fetched got = passing.fetch(meetings[rank], processes_[rank]->arena);
        if (got == shm::Fetched::Yes) {
            rank = first_hidden(rank);
        } else if (got == shm::Fetched::Never || std::chrono::steady_clock::now() > end) {
            reach = kNone;
        } else {
            ::sched_yield();
        }
    }
    passing.abandon();
    if (reach == kAll) reach = map_shared(shared_offset);
    const int mine = reach;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = host::real().Iallreduce(&mine, &reach, 1, MPI_INT, MPI_MIN, comm, &request);
    return error == MPI_SUCCESS ? host::wait(request, [&] { passing.serve(); }) : error;
}

Team::~Team() {
    if (group_ != MPI_GROUP_NULL) {
        int finalized = 0;
        host::real().Finalized(&finalized);
        if (!finalized) host::real().Group_free(&group_);
    }
    if (shared_ == nullptr) return;
    if (me_ == 0) {
        const std::lock_guard lock(g_mutex);
        leaving().emplace_back(shared_, size_);
    }
    shared_->detached.fetch_add(1, std::memory_order_acq_rel);
}

void Team::release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Team::release_keyval() {
    g_keyval = MPI_KEYVAL_INVALID;
}

std::byte* Team::map(std::uint32_t rank, std::uint64_t offset, std::size_t bytes) const {
    if (rank == me_) return shm::Arena::mine().at(offset);
    return processes_[rank]->arena.map(offset, bytes);
}

void Team::unmap(std::uint32_t rank, std::uint64_t offset, std::byte* address, std::size_t bytes) const {
    if (rank != me_) processes_[rank]->arena.unmap(offset, address, bytes);
}

bool Team::cma_reaches(std::uint32_t rank) const {
    if (config::values().cma == "off") return false;
    Process& process = *processes_[rank];
    int known = process.cma.load(std::memory_order_relaxed);
    if (known < 0) {
        const shm::ArenaAddress& address = process.arena.address();
        known = address.pid > 0 && cma::reachable(address.pid, address.probe, address.token) ? 1 : 0;
        process.cma.store(known, std::memory_order_relaxed);
    }
    return known != 0;
}

bool Team::cma_reaches_all() const {
    for (std::uint32_t rank = 0; rank < size_; ++rank)
        if (rank != me_ && !cma_reaches(rank)) return false;
    return true;
}

std::shared_ptr<shm::PeerArena> Team::arena_at(const shm::ArenaAddress& address) {
    const std::shared_ptr<Process> process = known_process(address);
    return {process, &process->arena};
}

bool Team::alive(std::uint32_t rank) {
    return rank >= size_ || rank == me_ || processes_[rank]->arena.owner_lives();
}

int Team::any_dead() {
    for (std::uint32_t rank = 0; rank < size_; ++rank)
        if (!alive(rank)) return static_cast<int>(rank);
    return -1;
}

}  // namespace osc
