// The host's collectives by which a window is made. MPICH's: reductions of a few bytes by recursive doubling, gathers
// by recursive doubling or Bruck's algorithm while the whole is small, round a ring when it is large.
#include <algorithm>
#include <utility>
#include <vector>

#include "net/network_stack.h"
#include "protocols.h"

namespace simulation {
namespace {

constexpr std::size_t kTeamCard = sizeof(osc::shm::ArenaAddress) + 32;  // src/window/team.cpp
constexpr std::size_t kRingFrom = 524288;  // bytes of a whole gather (MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE)

// A row of collectives that each process goes through.
struct Stage {
    enum Kind : std::uint8_t { Reduce, Gather, Meet, Work } kind;
    std::size_t bytes = 0;  // of each process
    double ns = 0;
};

// What is left of a process's way through one collective, as rounds of sending to one and hearing from one. Processes
// beyond a power of two are stood for by a neighbour in a reduction.
struct Round {
    Process to;
    Process from;
    std::size_t bytes;
};
constexpr Process kNoProcess = ~Process{0};

class Rows final : public Protocol {
  public:
    Rows(Engine& engine, const Job& job, std::vector<Stage> stages)
        : engine_(engine), job_(job), stages_(std::move(stages)), states_(job.processes), nodes_(job.nodes()) {}

    void begin(Process process) override { go_on(process); }

    void arrived(const Message& message) override {
        State& state = states_[message.to];
        if (message.kind == kPing) return go_on(message.to);
        state.came.push_back(message.number);
        go_on(message.to);
    }

  private:
    enum Kind : std::uint8_t { kStep, kPing };
    struct State {
        std::uint32_t stage = 0;
        std::uint32_t round = 0;
        bool has_sent = false;
        std::vector<std::uint64_t> came;  // rounds of others' that it has heard of
    };
    struct Node {
        std::uint32_t here = 0;
        double latest = 0;
    };

    static std::uint32_t below(std::uint32_t processes) {  // the largest power of two that is not above it
        std::uint32_t power = 1;
        while (power * 2 <= processes)
            power *= 2;
        return power;
    }

    // The given round of a stage for a process; false if there is none.
    bool round_of(const Stage& stage, Process me, std::uint32_t number, Round& round) const {
        const std::uint32_t all = job_.processes;
        if (stage.kind == Stage::Gather) {
            const std::uint32_t distance = std::uint32_t{1} << number;
            if (distance >= all) return false;
            const std::uint32_t blocks = std::min(distance, all - distance);
            round = {(me + all - distance) % all, (me + distance) % all, stage.bytes * blocks};
            return true;
        }
        const std::uint32_t power = below(all);
        const std::uint32_t more = all - power;  // the first 2 * more stand for each other in pairs
        if (more > 0 && me < 2 * more) {
            if (me % 2 == 0) {  // is stood for
                round = number == 0 ? Round{me + 1, kNoProcess, stage.bytes} : Round{kNoProcess, me + 1, stage.bytes};
                return number < 2;
            }
            if (number == 0) {
                round = {kNoProcess, me - 1, stage.bytes};
                return true;
            }
            --number;
        }
        const Process place = more > 0 ? (me < 2 * more ? me / 2 : me - more) : me;
        const std::uint32_t distance = std::uint32_t{1} << number;
        if (distance < power) {
            const Process other = place ^ distance;
            const Process peer = other < more ? other * 2 + 1 : other + more;
            round = {peer, peer, stage.bytes};
            return true;
        }
        if (distance == power && more > 0 && me < 2 * more) {
            round = {me - 1, kNoProcess, stage.bytes};
            return true;
        }
        return false;
    }

    void go_on(Process process) {
        State& state = states_[process];
        while (state.stage < stages_.size()) {
            const Stage& stage = stages_[state.stage];
            if (stage.kind == Stage::Work) {
                engine_.work(process, stage.ns);
            } else if (stage.kind == Stage::Gather && stage.bytes * job_.processes >= kRingFrom) {
                // As many steps as processes, all with the same time, so they are not simulated one by one.
                const Costs& host = engine_.machine().host;
                const double step = host.send + host.way + host.receive + host.byte * static_cast<double>(stage.bytes);
                engine_.work(process, step * (job_.processes - 1));
            } else if (stage.kind == Stage::Meet) {
                // Messages of processes in later stages may arrive while this one waits here.
                if (std::exchange(state.has_sent, true) || !meet(process)) return;
                state.has_sent = false;
            } else {
                Round round{};
                while (round_of(stage, process, state.round, round)) {
                    if (!std::exchange(state.has_sent, true) && round.to != kNoProcess) send(process, round);
                    if (round.from != kNoProcess && !take(state, key(state, round.from))) return;
                    state.has_sent = false;
                    ++state.round;
                }
                state.round = 0;
            }
            ++state.stage;
        }
    }

    std::uint64_t key(const State& state, Process from) const { return std::uint64_t{state.stage} << 32 | from; }

    static bool take(State& state, std::uint64_t key) {
        const auto found = std::find(state.came.begin(), state.came.end(), key);
        if (found == state.came.end()) return false;
        state.came.erase(found);
        return true;
    }

    void send(Process process, const Round& round) {
        const bool near = job_.node_of(process) == job_.node_of(round.to);
        engine_.send({round.to, process, near ? By::Near : By::Host, kStep, 0, 0, key(states_[process], process)},
                     round.bytes);
    }

    // The others of the node go on by themselves; the last one here sends them on.
    bool meet(Process process) {
        const std::uint32_t number = job_.node_of(process);
        Node& node = nodes_[number];
        node.latest = node.here == 0 ? engine_.time(process) : std::max(node.latest, engine_.time(process));
        if (++node.here < job_.local_size(number)) return false;
        node.here = 0;
        const Process first = job_.leader(number);
        for (Process peer = first; peer < first + job_.local_size(number); ++peer) {
            engine_.until(peer, node.latest + engine_.machine().meeting(job_.local_size(number)));
            if (peer == process) continue;
            ++states_[peer].stage;
            states_[peer].has_sent = false;
            engine_.send({peer, peer, By::Itself, kPing, 0, 0, 0});
        }
        return true;
    }

    Engine& engine_;
    const Job& job_;
    const std::vector<Stage> stages_;
    std::vector<State> states_;
    std::vector<Node> nodes_;
};

Outcome run(const Machine& machine, const Job& job, const std::vector<Stage>& once) {
    std::vector<Stage> all;
    for (std::uint32_t i = 0; i < job.repeats; ++i)
        all.insert(all.end(), once.begin(), once.end());
    Engine engine(machine, job.processes);
    Rows protocol(engine, job, all);
    engine.run(protocol);
    return {engine.end() / job.repeats, 0};
}

// create_window() of src/window/create.cpp.
std::vector<Stage> of_window(const Machine& machine) {
    return {{Stage::Meet}, {Stage::Meet},      {Stage::Reduce, 8}, {Stage::Work, 0, machine.window},
            {Stage::Meet}, {Stage::Reduce, 20}};
}

// Team::exchange() of src/window/team.cpp and exchange_network() of team_network.cpp before it: the host's
// MPI_Comm_split_type, both exchanges of addresses with an agreement behind the first and two behind the second, and
// the slowest measurement.
std::vector<Stage> of_first_window(const Machine& machine) {
    std::vector<Stage> stages(static_cast<std::size_t>(machine.splits + 0.5), {Stage::Reduce, 8});
    const Stage exchange[] = {
        {Stage::Gather, kTeamCard}, {Stage::Reduce, 4}, {Stage::Gather, sizeof(osc::net::ProcessAddress)},
        {Stage::Reduce, 4},         {Stage::Reduce, 4}, {Stage::Reduce, 8}};
    stages.insert(stages.end(), std::begin(exchange), std::end(exchange));
    const std::vector<Stage> window = of_window(machine);
    stages.insert(stages.end(), window.begin(), window.end());
    return stages;
}

}  // namespace

Outcome first_window(const Machine& machine, const Job& job) {
    return run(machine, job, of_first_window(machine));
}

Outcome window(const Machine& machine, const Job& job) {
    return run(machine, job, of_window(machine));
}

}  // namespace simulation
