// The processes of a communicator as libosc knows them: where their arenas are, whether they live, and the little that
// they share to create windows. One Team per parent communicator, kept as its attribute and by every window made from
// it (the user may free the communicator first). On one node a team needs no communicator of its own: everything after
// the first exchange goes through shared memory.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sync/lock.h"
#include "transport/net/far.h"
#include "transport/shm/arena.h"
#include "transport/shm/control.h"

namespace osc {

/// What a team shares, in the arena of its first process.
struct TeamShared {
    shm::Barrier barrier;                            // creation of windows
    alignas(64) std::atomic<std::uint64_t> slot{0};  // offset of the slot being created; 0: its creator failed
    std::atomic<std::uint64_t> unmapped{0};          // number of the last creation that somebody could not map
    std::atomic<std::uint32_t> detached{0};          // processes that will not touch this again
    shm::Doorbell departures;                        // of windows, whose own memory must not be touched after it
    std::atomic<std::uint64_t> book{0};              // offset of the team's net::Book; 0: there is none
};

/// A process of this machine, known by its arena's token; shared by all teams.
struct Process {
    explicit Process(const shm::ArenaAddress& address) : arena(address) {}
    shm::PeerArena arena;
    std::atomic<int> cma{-1};  // whether process_vm_* reaches it: -1 not yet probed
};

class Team final : public sync::Liveness {
  public:
    /// The team of `comm`, made on the first call; collective over `comm` then. MPI_SUCCESS, or an error class with
    /// `why` set, the same class on all processes. The caller owns one reference. `loads`: for a window whose memory
    /// all load and store, which made-up nodes (OSC_NODES) are no obstacle to. `atomics`: this process wants the
    /// network to have them, if this opens it.
    static int of(MPI_Comm comm, bool loads, bool atomics, Team*& team, const char*& why);

    /// The largest of what the processes of `comm`, this team's, give, for each of the numbers; collective. A host
    /// error code; MPI_ERR_OTHER too if one of them has died.
    int largest(MPI_Comm comm, std::span<int> values);

    /// Called at MPI_Finalize: no team is made after it.
    static void release_keyval();

    void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
    void release();

    std::uint32_t size() const { return size_; }
    std::uint32_t me() const { return me_; }
    MPI_Group group() const { return group_; }
    TeamShared& shared() const { return *shared_; }
    /// Of a member on this node, like the next.
    Process& process(std::uint32_t rank) const { return *processes_[place(rank)]; }
    /// The arena of a member, for holders that may outlive the team.
    std::shared_ptr<shm::PeerArena> arena(std::uint32_t rank) const {
        return {processes_[place(rank)], &process(rank).arena};
    }
    /// The arena of any process of this machine; for the agent.
    static std::shared_ptr<shm::PeerArena> arena_at(const shm::ArenaAddress& address);

    /// The first process of this node, and how many of the team are on it.
    std::uint32_t leader() const { return places_ != nullptr ? places_->rank_at[0] : 0; }
    std::uint32_t mates() const {
        return places_ != nullptr ? static_cast<std::uint32_t>(places_->rank_at.size()) : size_;
    }
    /// Who is on this node, and how the others are reached; null if all are here.
    const shm::Places* places() const { return places_.get(); }
    const net::Job* job() const { return job_.get(); }
    /// Of messages between them; all zero if all are on one node.
    const sync::Costs& costs() const { return costs_; }
    /// The number of a window on all its processes: never given twice in the job.
    std::uint64_t window_id(std::uint64_t creation) const;

    /// Null if libosc serves windows of this team; else why the host does, in a few words.
    const char* not_served() const { return not_served_.empty() ? nullptr : not_served_.c_str(); }

    /// Whether its processes are on more than one node, so that they cannot have common memory.
    bool spans_nodes() const { return spans_nodes_; }

    /// Numbers the team's creations of windows from 1, alike on all processes: creations are collective.
    std::uint64_t next_creation() { return ++creations_; }
    std::uint64_t creations() const { return creations_; }

    /// Maps a piece of a member's arena (this process's own included); null with errno if that fails.
    std::byte* map(std::uint32_t rank, std::uint64_t offset, std::size_t bytes) const;
    void unmap(std::uint32_t rank, std::uint64_t offset, std::byte* address, std::size_t bytes) const;

    /// Whether process_vm_* reaches the memory of `rank`; probed once per process.
    bool cma_reaches(std::uint32_t rank) const;
    bool cma_reaches_all() const;

    bool alive(std::uint32_t rank) override;
    /// A member that has died, or -1.
    int any_dead();

  private:
    /// How far a process has got with the others; the least counts for all.
    enum Reach : int {
        kNoNetwork,  // the team cannot be served: no network
        kNone,       // nor: a process cannot map the memory of another one
        kHidden,     // some arenas are not to be seen in /proc
        kAll,
    };
    /// Who is where, until the team's book has it.
    struct Layout {
        std::vector<std::uint32_t> node_of, place_of, leaders;  // see net::Book
        std::uint32_t node = 0;                                 // this process's
    };

    Team() = default;
    ~Team();
    /// `joins`: the host's nodes that are on one machine become one node, if their processes can map each other's
    /// memory; the host's nodes otherwise.
    int exchange(MPI_Comm comm, bool loads, bool atomics, bool joins, const char*& why);
    bool open_network(bool loopback, bool atomics);
    int exchange_network(MPI_Comm comm, const Layout& layout, int& reach);
    bool write_book(const Layout& layout, std::span<const net::Card> cards);
    bool read_book(const Layout& layout);
    int measure_network(MPI_Comm comm);
    void forget_network();
    void leave();
    /// A member's number on this node; shm::Places::kElsewhere if it is on another one.
    std::uint32_t place(std::uint32_t rank) const { return places_ != nullptr ? places_->place_of[rank] : rank; }
    std::uint32_t rank_at(std::uint32_t place) const { return places_ != nullptr ? places_->rank_at[place] : place; }
    /// The place of the first member of this node, from `from` on, whose arena is out of reach; mates() if there is
    /// none.
    std::uint32_t first_hidden(std::uint32_t from) const;
    int map_shared(std::uint64_t offset);
    int pass_arenas(MPI_Comm comm, const std::vector<std::uint64_t>& meetings, std::uint64_t shared_offset, int& reach);

    std::atomic<int> references_{1};
    std::uint32_t size_ = 0;
    std::uint32_t me_ = 0;
    MPI_Group group_ = MPI_GROUP_NULL;
    std::vector<std::shared_ptr<Process>> processes_;  // of this node, by place
    TeamShared* shared_ = nullptr;
    std::unique_ptr<shm::Places> places_;
    std::unique_ptr<net::Job> job_;
    sync::Costs costs_;
    std::uint64_t random_ = 0;  // the same on all processes
    std::string not_served_;
    bool spans_nodes_ = false;
    std::uint64_t creations_ = 0;
};

}  // namespace osc
