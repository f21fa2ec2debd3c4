// The processes of a communicator: their arenas, their liveness, and the shared state for creating windows. There is
// one Team per parent communicator. The communicator's attribute and every window made from it refer to the team,
// because the user may free the communicator first. On one node a team needs no communicator of its own: after the
// first exchange its processes use shared memory only.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "net/origin/remote_window.h"
#include "reach/reach.h"
#include "shm/arena.h"
#include "shm/control.h"
#include "sync/lock.h"

namespace osc {

namespace shm {
class FdExchange;
}

/// The shared state of a team's processes on one node, in the arena of the first of them.
struct TeamShared {
    shm::Barrier barrier;  // creation of windows
    alignas(64) std::atomic<std::uint64_t> controls{
        0};                                       // offset of the control table being created; 0: its creator failed
    std::atomic<std::uint64_t> unmapped{0};       // number of the last creation that a process could not map
    std::atomic<std::uint32_t> detached{0};       // processes that no longer use this object
    shm::Doorbell departures;                     // rings when a process departs from a window
    std::atomic<std::uint64_t> process_table{0};  // offset of the team's net::ProcessTable; 0: none
    std::atomic<int> dead{-1};                    // a member that a process of this node has found dead
    // Of the owner alone, when its team has ended: the next such object, and how many processes must detach.
    TeamShared* next_left = nullptr;
    std::uint32_t users = 0;
};

/// A process of this machine, identified by its arena's token; all teams share it.
struct Process {
    explicit Process(const shm::ArenaAddress& address) : arena(address) {}
    shm::PeerArena arena;
    std::atomic<int> cma{-1};  // whether process_vm_* reaches it: -1 not yet probed
};

/// Its public functions answer from what one collective creation has agreed, or map what it has found; the private ones
/// are the steps of that creation (team.cpp, team_network.cpp).
class Team final : public sync::Liveness, public reach::Node {
  public:
    /// The team of `comm`, made on the first call; collective over `comm` then. MPI_SUCCESS, or an error class with
    /// `why` set, the same class on all processes. The caller owns one reference. `loads`: for a window whose memory
    /// all processes load and store, where OSC_DEBUG=fake_nodes does not apply. `atomics`: this process asks for the
    /// network's atomics, if the call opens the network.
    static int of(MPI_Comm comm, bool loads, bool atomics, Team*& team, const char*& why);

    /// Replaces each value by its maximum over the processes of `comm`, the team's communicator; collective. A host
    /// error code; MPI_ERR_OTHER also if a process has died. Takes no memory.
    int largest(MPI_Comm comm, std::span<int> values);
    /// The same for a struct of ints.
    template <class Values>
    int largest(MPI_Comm comm, Values& values) {
        static_assert(std::is_standard_layout_v<Values> && alignof(Values) == alignof(int));
        // NOLINTNEXTLINE(bugprone-sizeof-expression): Values may be of one int
        return largest(comm, std::span(reinterpret_cast<int*>(&values), sizeof values / sizeof(int)));
    }

    /// Called when MPI ends. The next team makes the keys anew.
    static void release_keyval();

    void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
    void release();

    std::uint32_t size() const { return size_; }
    std::uint32_t me() const { return me_; }
    MPI_Group group() const { return group_; }
    TeamShared& shared() const { return *shared_; }
    /// Only for a member on this node.
    Process& process(std::uint32_t rank) const { return *processes_[local_index(rank)]; }
    shm::PeerArena& arena_of(std::uint32_t rank) const override { return process(rank).arena; }
    /// The arena of a member on this node, for users that may outlive the team.
    std::shared_ptr<shm::PeerArena> arena(std::uint32_t rank) const override {
        return {processes_[local_index(rank)], &process(rank).arena};
    }
    /// The arena of any process of this machine; for the agent.
    static std::shared_ptr<shm::PeerArena> arena_at(const shm::ArenaAddress& address);

    /// The rank of the first process of this node, and the number of the team's processes on this node.
    std::uint32_t leader() const { return local_ranks_ != nullptr ? local_ranks_->rank_at[0] : 0; }
    std::uint32_t local_size() const {
        return local_ranks_ != nullptr ? static_cast<std::uint32_t>(local_ranks_->rank_at.size()) : size_;
    }
    /// The ranks on this node, and the addresses of all processes; null if all are on this node.
    const shm::LocalRanks* local_ranks() const { return local_ranks_.get(); }
    net::Job* job() const { return job_.get(); }
    /// Costs of messages between nodes; all zero if all processes are on one node.
    const sync::Costs& costs() const { return costs_; }
    /// A number for a window, equal on all its processes and unique in the job.
    std::uint64_t window_id(std::uint64_t creation) const;

    /// Null if libosc serves windows of this team; else the reason why the host does.
    const char* not_served() const { return not_served_.empty() ? nullptr : not_served_.c_str(); }

    /// Whether its processes are on more than one node and cannot share memory.
    bool spans_nodes() const { return spans_nodes_; }

    /// Counts the team's window creations from 1; equal on all processes, because creations are collective.
    std::uint64_t next_creation() { return ++creations_; }

    /// Maps a piece of a member's arena (this process's own included); null with errno if that fails.
    std::byte* map(std::uint32_t rank, std::uint64_t offset, std::size_t bytes) const override;
    void unmap(std::uint32_t rank, std::uint64_t offset, std::byte* address, std::size_t bytes) const override;

    /// Whether process_vm_* reaches the memory of `rank`; probed once per process.
    bool cma_reaches(std::uint32_t rank) const;
    bool cma_reaches_all() const;
    pid_t pid_of(std::uint32_t rank) const override {
        return cma_reaches(rank) ? process(rank).arena.address().pid : 0;
    }
    void lose_pid(std::uint32_t rank) const override { process(rank).cma.store(0, std::memory_order_relaxed); }

    bool alive(std::uint32_t rank) override;
    int dead_in_collective() override;

  private:
    /// Whether a process can reach the others; the least value of all processes counts.
    enum Visibility : int {
        kNoMemory,   // the team cannot be made: a process has no memory or addresses for the shared state
        kNoNetwork,  // the team cannot be served: a process cannot use the network
        kNone,       // the team cannot be served: a process cannot map the memory of another one
        kHidden,     // a process cannot open all arenas through /proc
        kAll,
    };
    /// What a process says of itself to the others of its node.
    struct Record {
        shm::ArenaAddress arena;
        std::uint64_t shared_offset;  // of the TeamShared; the one of the node's first process counts
        std::uint64_t machine;        // see shm::machine_number; 0: not compared
        std::uint64_t meeting;        // random: number of this process's FdExchange for this team
        std::int32_t rank;
        std::int32_t node;  // the first process of its node; see join_nodes
    };
    /// What the processes of all nodes say together: the union of what each says. The set of the processes that are
    /// the first ones of their mates follows it.
    struct Union {
        std::uint64_t unready;    // not 0: a process cannot take part
        std::uint64_t no_memory;  // because it has no memory
        std::uint64_t atomics;    // a process asks for the network's atomics
        std::uint64_t random;     // rank 0's, as the next one
        net::ProcessName name;    // see Team::name_
    };
    static constexpr std::size_t kUnionWords = sizeof(Union) / sizeof(std::uint64_t);
    /// One making of a team. Each process allocates what the collective calls need before the processes agree that all
    /// of them can. *Mates* are the processes of one host's name, or of what the host MPI takes for a node; a node has
    /// one group of mates, or several.
    struct Making {
        MPI_Comm comm;
        bool loads;
        bool atomics;                         // after the union: some process asks for them
        std::vector<std::uint64_t> said{};    // the Union and the set
        std::vector<int> room{};              // see find_equals()
        MPI_Comm own = MPI_COMM_NULL;         // of the same processes: the program may receive any message of its own
        MPI_Comm mates = MPI_COMM_NULL;       // of this process's mates
        std::uint32_t group = 0;              // index of this process's mates among all groups
        std::uint32_t place = 0;              // of this process in it
        std::vector<std::uint32_t> firsts{};  // by group: the first process
        std::vector<std::uint32_t> mate_ranks{};       // of this process's mates
        std::vector<net::ProcessAddress> addresses{};  // the same
        std::vector<std::uint64_t> parts{};            // see gather_parts()
        std::size_t part_words = 0;
        std::vector<Record> records{};  // of this node's processes
        std::vector<Record> all{};      // of all processes, if groups may be of one machine
        TeamShared* made = nullptr;     // by this process
        bool ready = true;              // all processes can take part
        bool no_memory = false;         // a process has no memory for its arena
        int visibility = kNone;         // of all processes
        // Of a team that spans nodes; see net::ProcessTable.
        std::vector<std::uint32_t> leaders{};
        std::vector<std::uint32_t> node_of_group{};  // by group
        std::uint32_t node = 0;                      // index of this process's node
        net::ProcessTable::Size table{};
        std::vector<std::byte> own_others{};  // and those of the part before; see net/directory.h
        std::vector<std::byte> others_before{};

        bool leads_mates() const { return place == 0; }
        ~Making();
    };

    /// The processes of other nodes that a look for dead ones asks.
    enum class Asked { Share, All };

    Team() = default;
    ~Team();
    /// A member that has died, or -1.
    int find_dead(Asked asked);
    /// Makes the team, or finds why the host must serve it. Sets `why` for faults that are no errors of the host.
    int make(Making& making, const char*& why);
    /// The steps. `by_host`: mates are found by the host MPI, and are a node. Else by the host's name, and those of one
    /// machine become one node.
    int exchange(Making& making, bool by_host);
    int find_nodes(Making& making, bool by_host);
    bool makes_up_nodes(const Making& making) const;
    Fault find_mates(Making& making, bool by_host) const;
    int gather_mates(Making& making, bool by_host, Fault& fault);
    Fault introduce(Making& making, Record& mine);
    int compare_machines(Making& making, std::uint32_t groups);
    int find_machines(Making& making);
    static int agree_on_memory(Making& making, Fault fault);
    static int gather_parts(Making& making);
    void lay_out(Making& making);
    int reach_node(const Making& making);
    int pass_arenas(Making& making);
    bool fetch_arenas(const Making& making, shm::FdExchange& passing);
    int give_up(Making& making, int error, const char*& why);
    void choose_waits();
    /// The steps of a team that spans nodes: all processes agree on a provider, exchange their addresses, and prove
    /// that the provider wakes them; see team_network.cpp.
    int agree_on_provider(MPI_Comm comm, bool atomics, int from, int& visibility);
    bool open_network(bool atomics, int from);
    static bool renew_network();
    int name_network_failure(MPI_Comm comm);
    int exchange_network(Making& making);
    int exchange_addresses(Making& making);
    static int pass_others(Making& making);
    int prove_waking(Making& making, bool& wakes);
    Fault make_table(Making& making, const net::AddressForm& form, std::size_t others);
    void write_table(const Making& making, const net::AddressForm& form);
    Fault read_table(const Making& making, const net::AddressForm& form);
    net::ProcessAddress first_address(std::uint32_t node) const;
    int measure_network(Making& making);
    void forget_network();
    void leave();
    /// A member's index on this node; shm::LocalRanks::kRemote if it is on another one.
    std::uint32_t local_index(std::uint32_t rank) const {
        return local_ranks_ != nullptr ? local_ranks_->index_of(rank) : rank;
    }
    std::uint32_t rank_at(std::uint32_t index) const {
        return local_ranks_ != nullptr ? local_ranks_->rank_at[index] : index;
    }
    /// The local index of the first member, from `from` on, whose arena this process cannot open; local_size() if there
    /// is none.
    std::uint32_t first_hidden(std::uint32_t from) const;

    std::atomic<int> references_{1};
    std::uint32_t size_ = 0;
    std::uint32_t me_ = 0;
    MPI_Group group_ = MPI_GROUP_NULL;
    std::vector<std::shared_ptr<Process>> processes_;  // of this node, by local index
    TeamShared* shared_ = nullptr;
    std::unique_ptr<shm::LocalRanks> local_ranks_;
    std::unique_ptr<net::Job> job_;
    sync::Costs costs_;
    std::uint64_t random_ = 0;  // the same on all processes
    // This process's in a network that it opens for this team. The tokens are rank 0's random number with the rank in
    // its lowest bits changed, so they differ within a team in few bytes.
    net::ProcessName name_;
    std::string not_served_;
    bool spans_nodes_ = false;
    std::uint64_t creations_ = 0;
    static constexpr std::size_t kMostValues = 16;
    int values_[kMostValues] = {};  // see largest()
    bool is_lost_ = false;          // a reduction has not ended
};

/// The arguments of MPI_Comm_split_type.
struct Split {
    MPI_Comm comm;
    int type;
    int key;
    MPI_Info info;
};

/// MPI_Comm_split_type for shared memory: the host's result, or a larger communicator of all processes that can share
/// memory with libosc. Collective over the intracommunicator; all its processes call it, whatever their split type.
/// `grown`: the result has more processes than the host's. Returns an error code for which the error handler has run.
int split_type(const Split& split, MPI_Comm* result, bool& grown);

}  // namespace osc
