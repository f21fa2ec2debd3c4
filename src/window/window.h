// A window of this process: the part of its state that knows MPI. Its core is the part that epochs and strategies use.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "core/core.h"
#include "net/origin/completion.h"
#include "net/origin/lock_words.h"
#include "net/origin/provider_atomics.h"
#include "net/target/inspection.h"
#include "shm/regions.h"
#include "window/notify.h"
#include "window/team.h"

namespace osc {

namespace reach {
class Net;
class Private;
class Reach;
class Regions;
}  // namespace reach
namespace stats {
struct Record;
}

/// Info values in use, as MPI_Win_get_info reports them.
using InfoInUse = std::vector<std::pair<std::string, std::string>>;

/// How this process wants accumulates to travel between nodes.
enum class AtomicsWish { Messages, Auto, Provider };

/// Makes the ways to targets' memory (window.cpp), and serves this process's memory to agents and other nodes
/// (serve.cpp, atomics.cpp): all depend on one flavour, base and net_.
class Window final : public Members, public net::Neighbours {
  public:
    /// A window of the processes of `owner`; takes over one reference to `owner`.
    explicit Window(Team& owner);
    ~Window();

    /// What a process of this node does. Thread-safe.
    shm::ProcessView process_view(std::uint32_t rank) override {
        return rank == core.me ? shm::view_of_self() : shm::view_of(team.process(rank).arena);
    }
    bool alive(std::uint32_t rank) override { return team.alive(rank); }
    int dead_in_collective() override { return team.dead_in_collective(); }
    void describe(Target& target, const shm::ControlBlock& block) override;

    /// The number of notification counters of a target on another node, which answers.
    Fault ask_counters(std::uint32_t rank, std::uint32_t& count);

    /// Maps a piece of the arena of `rank`, a process of this node, until the window ends. Later calls give the same
    /// mapping. Null with errno if that fails. Thread-safe.
    std::byte* map(std::uint32_t rank, std::uint64_t offset, std::size_t length);

    /// Makes the ways to the targets of this node; `flavor` is known.
    void make_ways();
    /// A process of this node has died, and what XPMEM attached of its memory is gone: its memory is private from now
    /// on, and the next call that completes operations reports the death. Called by a thread inside an operation.
    void lose(const shm::Permit& permit);
    /// Makes the window's strategies. `fences`: the number of the fence strategy, on which all processes have agreed.
    void choose_strategies(MPI_Info hints, int fences);

    /// The strategies' names, with the reason where a strategy gives one.
    struct StrategyTexts {
        std::string fence, pscw, lock;
    };
    StrategyTexts strategy_texts() const;
    /// For OSC_VERBOSE=strategy, by rank 0.
    void say_strategies() const;

    /// Starts this process's agent, which gathers and scatters many pieces sooner than process_vm_*, if the window
    /// exposes memory of its own; sets the bits of AgentNeed that hold for this process. Before the control table's
    /// first barrier: other processes may send messages after it.
    void offer_agent();
    /// Called between two barriers of the table if agents are needed: starts it where it does not serve the window yet.
    Fault serve_by_agent();
    /// Exposes this process's memory to other nodes, and makes the RemoteSync to them; before the creation's last
    /// agreement. `wants_two_level`: some process asks for two-level locks.
    void serve_network(bool wants_two_level);
    /// Whether this process has no lock words for the two-level scheme.
    bool lacks_lock_words() const;
    /// Chooses the lock scheme, the same on all processes. `lacking`: some process lacks lock words.
    void choose_lock_scheme(bool wants_two_level, bool lacking);
    /// The mechanism of accumulates. Each process states its part; the largest numbers of all processes decide.
    struct AtomicsAgreement {
        int refusal = 0;  // not 0: some process refuses the provider's atomics, this one for AtomicsRefusal
        int sum = 0;      // AtomicsTable::sum(), and its complement: all processes' tables are equal if both agree
        int complement = 0;
        int any_op = 0;  // 1: some process has not promised accumulate_ops
    };
    AtomicsAgreement state_atomics(AtomicsWish wish);
    /// `checks` is known.
    void choose_atomics(AtomicsWish wish, const AtomicsAgreement& agreed);
    /// Bytes of this process for the window's bookkeeping.
    std::size_t own_bytes() const;
    /// Makes the window's record of statistics and its entry in the timeline, if OSC_STATS and OSC_TRACE ask for them;
    /// during the creation.
    void open_statistics();
    /// Gives both what is known now: the window's name and its strategies. After the creation.
    void describe_statistics();
    /// Detaches a region of a dynamic window: no process reads or writes it after the call.
    Fault detach(const void* region);
    /// Makes the agent and the network refuse messages for this window, and waits until none is being executed.
    void end_service();

    Core core;
    Team& team;
    MPI_Win handle = MPI_WIN_NULL;  // of a host window without memory, made for its handle
    int flavor = 0;

    // The values of the predefined attributes, which are pointers to these.
    void* base = nullptr;
    std::byte* program_view = nullptr;  // the program's own mapping of that memory, if it has one (OSC_CHECK=2)
    void* shown_base() const { return program_view != nullptr ? program_view : base; }
    MPI_Aint bytes = 0;
    MPI_Aint unit = 1;
    int shown_unit = 1;  // the attribute is an int: INT_MAX stands for a unit above it
    int model = MPI_WIN_UNIFIED;

    void* owned = nullptr;             // piece of this process's arena that free releases
    std::byte* segment = nullptr;      // contiguous shared windows: all memory, mapped here
    std::uint64_t segment_offset = 0;  // in rank 0's arena
    std::string adoption = "off";      // the window's osc_adopt
    std::string kept_private;          // why memory given to MPI_Win_create is not shared, or not all of it
    bool promised_ops = false;         // the program set accumulate_ops
    bool departed = false;             // a free failed after this process had counted its departure
    InfoInUse info;
    Notifications notifications;
    std::unique_ptr<shm::RegionTable> regions;  // dynamic windows: this process's attached regions

  private:
    const char* unfit_for_two_level() const;
    std::string atomics_refusal() const;
    /// The description of this process's memory for both channels.
    net::ExposedWindow exposed();
    struct Mapping {
        std::uint32_t rank;
        std::uint64_t offset;
        std::byte* address;
        std::size_t bytes;
    };

    std::unique_ptr<net::RemoteWindow> net_;  // windows that span nodes
    bool is_on_network_ = false;              // the messenger serves requests of other nodes
    std::unique_ptr<net::LockWords> lock_words_;
    std::unique_ptr<sync::TwoLevel> locks_;  // uses lock_words_
    net::AtomicsTable atomics_;
    int atomics_refusal_ = 0;  // why this process refuses the provider's atomics: AtomicsRefusal
    fabric::Exposed exposed_;
    std::unique_ptr<net::Leases> leases_;  // dynamic windows: regions that origins have cached
    stats::Record* record_ = nullptr;
    std::uint64_t served_ = 0;  // the agent's number for this window; 0: not served
    std::mutex mapped_mutex_;
    std::vector<Mapping> mapped_;
    std::vector<std::unique_ptr<reach::Reach>> ways_;  // to targets of this node; core.reaches refers to them
    reach::Private* private_way_ = nullptr;            // one of them
    reach::Regions* regions_way_ = nullptr;            // another, in dynamic windows
    std::unique_ptr<reach::Net> net_way_;              // uses net_
    std::unique_ptr<reach::Net> accumulate_way_;       // in windows that use the provider's atomics: their way
};

/// Enters a window under its handle; the fast paths find it after serve_fast_paths() only, which takes no memory.
void register_window(MPI_Win handle, Window* window);
void serve_fast_paths(MPI_Win handle, Window* window);
void unregister_window(MPI_Win handle);
/// Calls visit(window) for every registered window, in no particular order. Thread-safe: no window is registered or
/// unregistered until the last call has returned, and a window is destroyed only after unregister_window(), so each one
/// outlives its visit. `visit` must not keep the reference, call the host MPI, or register or unregister a window.
void visit_windows(base::FunctionRef<void(Window&)> visit);
/// Every live window, for MPI_Finalize: no other thread may free a window then.
std::vector<Window*> live_windows();

}  // namespace osc
