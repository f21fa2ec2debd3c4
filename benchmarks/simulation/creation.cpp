// The collectives by which a window is made: the host's (MPICH's: reductions of little by recursive doubling, of much
// by recursive halving and doubling over the nodes' first processes, gathers of little by Bruck's algorithm), how the
// processes of a node find each other, and the gather of the nodes' first processes, by the library's own steps.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "protocols.h"
#include "shm/arena.h"
#include "sync/dissemination.h"

namespace simulation {
namespace {

// Records of src/window/team.h, in bytes.
constexpr std::size_t kRecord = sizeof(osc::shm::ArenaAddress) + 32;
constexpr std::size_t kUnion = 48;
constexpr std::size_t kContextIds = 260;  // that MPICH reduces for a communicator

// A row of collectives that each process goes through, with all others, with those of its node, or, for the first
// process of a node, with the other first ones.
struct Stage {
    enum Kind : std::uint8_t { Reduce, Halve, Gather, Meet, Work } kind;
    std::size_t bytes = 0;  // of each process
    enum Among : std::uint8_t { All, Node, Firsts } among = All;
    double ns = 0;  // of Work, in the first process of each node
};

// What a process does in a round of a collective: it sends to one, and goes on when it has heard from one.
struct Round {
    Process to;
    Process from;
    std::size_t bytes;
};
constexpr Process kNoProcess = ~Process{0};

// The rounds of a collective are the same in all processes, and a process has one message to wait for in each. So the
// times follow round by round, without events.
class Rows {
  public:
    Rows(const Machine& machine, const Job& job)
        : machine_(machine), job_(job), times_(job.processes), arrive_(times_) {}

    void run(const std::vector<Stage>& stages) {
        for (const Stage& stage : stages) {
            if (stage.kind == Stage::Meet)
                meet();
            else if (stage.kind == Stage::Work)
                work(stage);
            else
                for (std::uint32_t number = 0; number < rounds_of(stage); ++number)
                    go_round(stage, number);
        }
    }
    double end() const { return *std::max_element(times_.begin(), times_.end()); }

  private:
    // Of the largest group of processes.
    std::uint32_t rounds_of(const Stage& stage) const {
        const std::uint32_t all = stage.among == Stage::All    ? job_.processes
                                  : stage.among == Stage::Node ? job_.local_size(0)
                                                               : job_.nodes();
        const auto rounds = static_cast<std::uint32_t>(std::bit_width(all - 1));
        if (stage.kind == Stage::Gather) return rounds;
        const std::uint32_t paired = std::has_single_bit(all) ? 0 : 1;
        return stage.kind == Stage::Halve ? 2 * (rounds - paired) + 2 * paired : rounds + paired;
    }

    static Round round_of(const Stage& stage, const Job& job, Process process, std::uint32_t number) {
        const std::uint32_t node = job.node_of(process);
        const Process first = job.leader(node);
        Round round{kNoProcess, kNoProcess, 0};
        if (stage.among == Stage::All) return round_among(stage, job.processes, process, number);
        if (stage.among == Stage::Node) {
            round = round_among(stage, job.local_size(node), process - first, number);
            for (Process* const place : {&round.to, &round.from})
                if (*place != kNoProcess) *place += first;
        } else if (process == first) {
            round = round_among(stage, job.nodes(), node, number);
            for (Process* const place : {&round.to, &round.from})
                if (*place != kNoProcess) *place = job.leader(*place);
        }
        return round;
    }

    // The same among so many, by their places. In a reduction, of processes beyond a power of two the first ones stand
    // for each other in pairs: an even one sends to its neighbour before the first round, and hears from it behind the
    // last.
    static Round round_among(const Stage& stage, std::uint32_t all, Process me, std::uint32_t number) {
        constexpr Round kNothing{kNoProcess, kNoProcess, 0};
        if (stage.kind == Stage::Gather) {
            const osc::sync::Dissemination among{me, all};
            const std::uint32_t distance = std::uint32_t{1} << number;
            if (distance >= all) return kNothing;
            return {among.before(distance), among.next(distance), stage.bytes * among.blocks(distance)};
        }
        const std::uint32_t power = std::bit_floor(all);
        const std::uint32_t more = all - power;
        const bool paired = me < 2 * more;
        const auto doublings = static_cast<std::uint32_t>(std::bit_width(power)) - 1;
        const std::uint32_t rounds = stage.kind == Stage::Halve ? 2 * doublings : doublings;
        if (more > 0 && (number == 0 || number > rounds)) {
            if (!paired || number > rounds + 1) return kNothing;
            const bool sends = (me % 2 == 0) == (number == 0);
            return sends ? Round{me ^ 1, kNoProcess, stage.bytes} : Round{kNoProcess, me ^ 1, stage.bytes};
        }
        if (more > 0) --number;
        if (number >= rounds || (paired && me % 2 == 0)) return kNothing;
        // Halves, and then the same way back.
        std::size_t bytes = stage.bytes;
        if (stage.kind == Stage::Halve) {
            number = std::min(number, rounds - 1 - number);
            bytes >>= number + 1;
        }
        const Process other = (paired ? me / 2 : me - more) ^ std::uint32_t{1} << number;
        const Process peer = other < more ? other * 2 + 1 : other + more;
        return {peer, peer, bytes};
    }

    void go_round(const Stage& stage, std::uint32_t number) {
        const auto costs = [&](Process process, Process other) -> const Costs& {
            return job_.node_of(process) == job_.node_of(other) ? machine_.near : machine_.host;
        };
        for (Process process = 0; process < job_.processes; ++process) {
            const Round round = round_of(stage, job_, process, number);
            if (round.to == kNoProcess) continue;
            const Costs& cost = costs(process, round.to);
            times_[process] += cost.send;
            arrive_[process] = times_[process] + cost.way + cost.byte * static_cast<double>(round.bytes);
        }
        for (Process process = 0; process < job_.processes; ++process) {
            const Process from = round_of(stage, job_, process, number).from;
            if (from == kNoProcess) continue;
            times_[process] = std::max(times_[process], arrive_[from]) + costs(process, from).receive;
        }
    }

    void meet() {
        for (std::uint32_t node = 0; node < job_.nodes(); ++node) {
            const auto begin = times_.begin() + job_.leader(node);
            const auto end = begin + job_.local_size(node);
            std::fill(begin, end, *std::max_element(begin, end) + machine_.meeting(job_.local_size(node)));
        }
    }

    void work(const Stage& stage) {
        for (Process process = 0; process < job_.processes; ++process)
            if (stage.among == Stage::All || job_.leader(job_.node_of(process)) == process) times_[process] += stage.ns;
    }

    const Machine& machine_;
    const Job& job_;
    std::vector<double> times_;
    std::vector<double> arrive_;  // what each process has sent last
};

Outcome run(const Machine& machine, const Job& job, const std::vector<Stage>& once) {
    Rows rows(machine, job);
    for (std::uint32_t i = 0; i < job.repeats; ++i)
        rows.run(once);
    return {rows.end() / job.repeats, 0};
}

// create_window() of src/window/create.cpp.
std::vector<Stage> of_window(const Machine& machine) {
    return {{Stage::Meet}, {Stage::Meet},      {Stage::Reduce, 8}, {Stage::Work, 0, Stage::All, machine.window},
            {Stage::Meet}, {Stage::Reduce, 20}};
}

// The processes of node 0.
std::vector<std::uint32_t> first_ranks(const Job& job) {
    std::vector<std::uint32_t> ranks(job.local_size(0));
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
        ranks[rank] = rank;
    return ranks;
}

// Of a process whose network is TCP's and was opened for the team of all.
osc::net::ProcessAddress address_of(const Job& job, Process process) {
    osc::net::ProcessAddress address;
    address.token = 0x9e3779b97f4a7c15ull;  // without the rank
    const std::uint32_t host = 0x0a000000 + job.node_of(process);
    const std::uint32_t ports = process * 0x85ebca6bu;  // of the endpoint and of the lifeline
    address.address.size = 16;
    std::memcpy(address.address.bytes + 2, &ports, 2);
    std::memcpy(address.address.bytes + 4, &host, sizeof host);
    address.lifeline = {host, static_cast<std::uint16_t>(ports >> 16), 0};
    return address;
}

osc::net::AddressForm form_of(const Job& job) {
    osc::net::AddressDifferences all;
    const osc::net::ProcessAddress zero = address_of(job, 0);
    for (Process process = 0; process < job.processes; ++process) {
        const osc::net::AddressDifferences its(address_of(job, process), zero,
                                               address_of(job, job.leader(job.node_of(process))));
        for (std::size_t at = 0; at < all.in_team.size(); ++at) {
            all.in_team[at] |= its.in_team[at];
            all.in_node[at] |= its.in_node[at];
        }
    }
    return {zero, all};
}

osc::net::ProcessTable::Size table_size(const Job& job, const osc::net::AddressForm& form) {
    const std::vector<std::uint32_t> ranks = first_ranks(job);
    const std::size_t others = form.others_bytes(ranks.size());
    const bool sends = form.sends_others(others);
    return {job.processes, job.nodes(), job.nodes(), form.part_bytes(ranks) + (sends ? others : 0), sends ? 0 : others};
}

// A reduction of the host, with as many words as the nodes' first processes are or more.
void reduce(std::vector<Stage>& stages, const Job& job, std::size_t bytes) {
    constexpr std::size_t kLong = 2048;
    if (bytes <= kLong || bytes / sizeof(std::uint64_t) < job.nodes()) {
        stages.push_back({Stage::Reduce, bytes});
        return;
    }
    stages.push_back({Stage::Reduce, bytes, Stage::Node});
    stages.push_back({Stage::Halve, bytes, Stage::Firsts});
    stages.push_back({Stage::Reduce, 0, Stage::Node});
}

// find_equals() of src/window/mates.cpp: a process receives the questions of a node, which the host acknowledges, and
// sends as many answers.
void find_equals(std::vector<Stage>& stages, const Machine& machine, const Job& job) {
    const double mates = job.local_size(0);
    const double list = machine.host.byte * sizeof(int) * (mates + 1);
    stages.push_back({Stage::Work, 0, Stage::All, machine.host.way * (mates + 1)});
    stages.push_back({Stage::Reduce, 0});
    stages.push_back({Stage::Work, 0, Stage::All, (machine.host.way + list) * mates});
}

// Team::of(), Team::exchange() of src/window/team.cpp and exchange_network() of team_network.cpp, in their order; the
// host's broadcast and barrier as reductions.
std::vector<Stage> of_first_window(const Machine& machine, const Job& job) {
    using osc::net::ProcessAddress;
    std::vector<Stage> stages = {{Stage::Reduce, 56}};
    stages.insert(stages.end(), static_cast<std::size_t>(machine.creates + 0.5), {Stage::Reduce, kContextIds});
    find_equals(stages, machine, job);
    stages.push_back({Stage::Reduce, kContextIds, Stage::Node});
    stages.push_back({Stage::Reduce, 4, Stage::Node});
    stages.push_back({Stage::Gather, kRecord, Stage::Node});
    reduce(stages, job, kUnion + (job.processes + 63) / 64 * 8);
    const osc::net::AddressForm form = form_of(job);
    const std::size_t part = table_size(job, form).part_bytes;
    const Stage exchange[] = {{Stage::Reduce, 4},
                              {Stage::Gather, 8, Stage::Firsts},
                              {Stage::Reduce, 4, Stage::Node},
                              {Stage::Reduce, 4},
                              {Stage::Reduce, 12},
                              {Stage::Reduce, sizeof(ProcessAddress)},
                              {Stage::Gather, sizeof(ProcessAddress), Stage::Node},
                              {Stage::Reduce, 2 * sizeof(ProcessAddress)},
                              {Stage::Reduce, 8},
                              {Stage::Reduce, 4},
                              {Stage::Gather, part, Stage::Firsts},
                              {Stage::Work, 0, Stage::Firsts, machine.host.way},
                              {Stage::Work, 0, Stage::Firsts, machine.entry * job.nodes()},
                              {Stage::Reduce, 4},
                              {Stage::Reduce, 4},
                              {Stage::Reduce, 12},
                              {Stage::Reduce, 16}};
    stages.insert(stages.end(), std::begin(exchange), std::end(exchange));
    const std::vector<Stage> window = of_window(machine);
    stages.insert(stages.end(), window.begin(), window.end());
    return stages;
}

}  // namespace

std::size_t table_bytes(const Job& job) {
    const osc::net::AddressForm form = form_of(job);
    const osc::net::ProcessTable::Size size = table_size(job, form);
    return osc::net::ProcessTable::bytes(size, form) - size.parts * size.others_bytes;
}

// As Team::write_table() does it, with the first node's part for each.
double entry_ns(const Job& job) {
    const osc::net::AddressForm form = form_of(job);
    const std::vector<std::uint32_t> ranks = first_ranks(job);
    std::vector<osc::net::ProcessAddress> addresses;
    for (const std::uint32_t rank : ranks)
        addresses.push_back(address_of(job, rank));
    const osc::net::ProcessTable::Size size = table_size(job, form);
    std::vector<std::uint64_t> memory(osc::net::ProcessTable::bytes(size, form) / sizeof(std::uint64_t) + 1);
    osc::net::ProcessTable table = osc::net::ProcessTable::at(reinterpret_cast<std::byte*>(memory.data()), size, form);
    for (std::uint32_t node = 0; node < job.nodes(); ++node)
        form.write_part(ranks, addresses, size.others_bytes == 0, table.parts.data() + node * size.part_bytes);
    const std::vector<std::byte> parts(table.parts.begin(), table.parts.end());
    const auto begin = std::chrono::steady_clock::now();
    std::ranges::copy(parts, table.parts.begin());
    for (std::uint32_t node = 0; node < job.nodes(); ++node)
        table.enter(node, 0, node);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    return spent.count() / job.nodes();
}

Outcome first_window(const Machine& machine, const Job& job) {
    return run(machine, job, of_first_window(machine, job));
}

Outcome window(const Machine& machine, const Job& job) {
    return run(machine, job, of_window(machine));
}

}  // namespace simulation
