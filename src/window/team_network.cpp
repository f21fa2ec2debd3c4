// A team that spans nodes: chooses a provider by proof, opens the network, exchanges the processes' addresses, and
// measures the costs of messages.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "abi/abi.h"
#include "base/log.h"
#include "base/options.h"
#include "base/warn.h"
#include "host/host.h"
#include "sync/dissemination.h"
#include "window/mates.h"
#include "window/team.h"

namespace osc {
namespace {

// Providers over sockets take a descriptor for each process that this one exchanges messages with.
constexpr std::uint32_t kMostConnections = 14;
constexpr std::uint32_t kSpareDescriptors = 2;

// Whether this process had descriptors for connections to so many processes when it opened the network. Later a
// connection that gets none fails the operations that need it.
bool may_connect(std::uint32_t processes, std::string& why) {
    static std::atomic<bool> could{false};
    if (could.load(std::memory_order_relaxed)) return true;
    const std::uint32_t wanted = std::min(processes, kMostConnections) + kSpareDescriptors;
    std::vector<int> opened;
    while (opened.size() < wanted) {
        const int one = ::eventfd(0, EFD_CLOEXEC);
        if (one < 0) break;
        opened.push_back(one);
    }
    for (const int one : opened)
        ::close(one);
    could.store(opened.size() == wanted, std::memory_order_relaxed);
    if (opened.size() < wanted) why = "no descriptors are left for connections (ulimit -n)";
    return opened.size() == wanted;
}

}  // namespace

// Opens the network with the first provider from `from` on, unless it is open.
bool Team::open_network(bool atomics, int from) {
    const base::Values& options = base::values();
    const bool loopback = options.fake_nodes > 1;
    fabric::Wishes wishes{options.ofi_provider.c_str(), options.ofi_iface.c_str(), loopback, atomics};
    wishes.from = from;
    wishes.processes = size_;
    wishes.peers = size_ - local_size();
    wishes.prefers_atomics = atomics || options.lock_scheme == "two_level" || options.atomics == "provider";
    std::string why;
    if (net::NetworkStack::mine().open(wishes, static_cast<int>(options.peer_timeout * 1000), name_, why) &&
        may_connect(wishes.peers, why) && (why = net::NetworkStack::mine().endpoint().refuses(wishes.peers)).empty()) {
        const fabric::Endpoint& endpoint = net::NetworkStack::mine().endpoint();
        if (endpoint.passed_over()[0] != '\0') base::warn_for_group("not used: %s", endpoint.passed_over());
        return true;
    }
    not_served_ = "the network cannot be used: " + why;
    return false;
}

// All processes take the provider that the least fortunate one can have; each opens its best one first. A network that
// an earlier team has opened and proven stays.
int Team::agree_on_provider(MPI_Comm comm, bool atomics, int from, int& visibility) {
    constexpr int kNoProvider = 1 << 20;
    for (bool can_change = true;;) {
        int mine = kNoProvider;
        const Fault fault = base::attempt([&] {
            if (can_change && open_network(atomics, from)) mine = net::NetworkStack::mine().endpoint().preference();
        });
        struct {
            int highest, minus_lowest, no_memory;
        } all{mine, -mine, fault != Fault::None ? 1 : 0};
        if (const int error = largest(comm, all); error != MPI_SUCCESS) return error;
        if (all.no_memory != 0)
            visibility = kNoMemory;
        else if (all.highest == kNoProvider)
            visibility = kNoNetwork;
        if (visibility != kAll || all.highest == -all.minus_lowest) return MPI_SUCCESS;
        from = all.highest;
        if (mine == all.highest) continue;
        can_change = renew_network();
        if (!can_change)
            not_served_ = "the network cannot be used: another process lacks the provider that this one uses";
    }
}

// False if other teams use the network.
bool Team::renew_network() {
    if (net::NetworkStack::mine().is_proven()) return false;
    net::NetworkStack::renew();
    return true;
}

// Rank 0 reports windows that the host serves, and the reason if its own network fails. Else the lowest rank whose
// network fails reports the reason.
int Team::name_network_failure(MPI_Comm comm) {
    const auto rank = static_cast<int>(me_);
    int first = 0;
    const int error = host::least(comm, not_served_.empty() ? static_cast<int>(size_) : rank, first);
    if (error == MPI_SUCCESS && first == rank && rank != 0) base::warn_for_group("%s", not_served_.c_str());
    return error;
}

// Tries providers until one wakes all processes; if none does, the first one serves.
int Team::exchange_network(Making& making) {
    int& visibility = making.visibility;
    net::NetworkStack* network = nullptr;
    bool wakes = false;
    for (bool last = false; !wakes;) {
        int error = exchange_addresses(making);
        if (error != MPI_SUCCESS || visibility != kAll) return error;
        network = &net::NetworkStack::mine();
        error = prove_waking(making, wakes);
        if (error != MPI_SUCCESS || visibility != kAll) return error;
        if (wakes || last) break;
        const std::string deaf = network->endpoint().provider();
        const int next = network->endpoint().preference() + 1;
        forget_network();
        static_cast<void>(renew_network());
        error = agree_on_provider(making.comm, making.atomics, next, visibility);
        last = error == MPI_SUCCESS && visibility == kNoNetwork;
        if (last) {
            visibility = kAll;
            not_served_.clear();
            error = agree_on_provider(making.comm, making.atomics, 0, visibility);
        }
        if (error != MPI_SUCCESS || visibility != kAll) return error;
        if (me_ == 0)
            base::warn_for_job("%s: messages do not reach a sleeping process; windows between nodes use %s%s",
                               deaf.c_str(), net::NetworkStack::mine().endpoint().provider(),
                               last ? ", because no other provider can be used" : "");
    }
    network->set_proven();
    const fabric::Endpoint& endpoint = network->endpoint();
    if (base::verbose("windows") && me_ == 0)
        base::say("%s; registrations of transfers: %s", endpoint.provider(), endpoint.registration().c_str());
    if (base::verbose("windows") && endpoint.flaw()[0] != '\0')
        base::say("%s: %s; messages carry all data", endpoint.provider(), endpoint.flaw());
    host::hook_polls([] { net::NetworkStack::mine().engine.host_polls(); });
    return measure_network(making);
}

// The first processes of neighbouring nodes ask each other in turn. All processes ask if one of them has to, and none
// does if one of them cannot connect to its neighbour.
int Team::prove_waking(Making& making, bool& wakes) {
    net::NetworkStack& network = net::NetworkStack::mine();
    const auto nodes = static_cast<std::uint32_t>(job_->leaders.size());
    const std::uint32_t node = job_->node;
    net::Connection* before = nullptr;  // the processes of the nodes before and behind this one; null: not asked
    net::Connection* behind = nullptr;
    const auto connect = [&](std::uint32_t to, net::Connection*& made) {
        made = network.connections.connect(first_address(to));
        return made != nullptr;
    };
    // Node 0 and node 1 ask each other, so do nodes 2 and 3. The last one of an odd number is asked by the one before
    // it.
    const bool first = node % 2 == 0 && node + 1 < nodes;
    const bool last = node + 1 == nodes || node + 2 == nodes;
    bool reaches = true;
    Fault fault = base::attempt([&] {
        if (me_ == leader() && (first || (node % 2 == 1 && nodes % 2 == 1 && last)))
            reaches = connect(node + 1, behind);
        if (me_ == leader() && !first) reaches = connect(node - 1, before) && reaches;
    });
    struct {
        int unproven, unreachable, no_memory;
    } some{network.is_proven() ? 0 : 1, reaches ? 0 : 1, fault != Fault::None ? 1 : 0};
    const auto agree = [&] {
        const int error = largest(making.comm, some);
        wakes = some.unproven == 0;
        if (some.no_memory != 0) making.visibility = kNoMemory;
        return error;
    };
    const int error = agree();
    if (error != MPI_SUCCESS || wakes || some.unreachable != 0 || some.no_memory != 0) return error;
    bool woke = true;
    fault = base::attempt([&] {
        if (before == nullptr && behind != nullptr) {
            woke = network.ask_sleeper(*behind);
            network.sleep_for(*behind);
        } else if (before != nullptr) {
            network.sleep_for(*before);
            if (node % 2 == 1) woke = network.ask_sleeper(*before);
            if (behind != nullptr) woke = network.ask_sleeper(*behind) && woke;
        }
    });
    some = {woke ? 0 : 1, 0, fault != Fault::None ? 1 : 0};
    return agree();
}

// Mates exchange their addresses, the first processes exchange parts of them, and each node keeps these in one table.
// All processes know rank 0's address and in which bytes the others differ.
int Team::exchange_addresses(Making& making) {
    net::ProcessAddress mine = net::NetworkStack::mine().address();
    mine.token ^= me_;
    net::ProcessAddress zero = mine;
    MPI_Request request = MPI_REQUEST_NULL;
    int error = host::real().Ibcast(&zero, sizeof zero, MPI_BYTE, 0, making.comm, &request);
    if (error == MPI_SUCCESS) error = host::wait(request);
    if (error == MPI_SUCCESS) error = host::gather(making.mates, mine, making.addresses.data());
    if (error != MPI_SUCCESS) return error;
    net::AddressDifferences differences(mine, zero, making.addresses[0]);
    error = host::unite(making.comm, std::as_writable_bytes(std::span(&differences, 1)));
    if (error != MPI_SUCCESS) return error;
    const net::AddressForm form(zero, differences);
    struct {
        int part, others;  // bytes
    } most{static_cast<int>(form.part_bytes(making.mate_ranks)),
           static_cast<int>(form.others_bytes(making.mate_ranks.size()))};
    error = largest(making.comm, most);
    if (error != MPI_SUCCESS) return error;
    const auto others = static_cast<std::size_t>(most.others);
    const bool sends_others = form.sends_others(others);
    making.table = {size_, static_cast<std::uint32_t>(making.leaders.size()),
                    static_cast<std::uint32_t>(making.firsts.size()),
                    static_cast<std::size_t>(most.part) + (sends_others ? others : 0), sends_others ? 0 : others};
    const auto agree = [&](Fault fault) {
        const int seen = fault == Fault::None ? kAll : fault == Fault::NoMem ? kNoMemory : kNone;
        error = host::least(making.comm, seen, making.visibility);
        return error == MPI_SUCCESS && making.visibility == kAll;
    };
    if (!agree(base::attempt([&] { return make_table(making, form, others); }))) return error;
    if (making.leads_mates()) {
        form.write_part(making.mate_ranks, making.addresses, sends_others,
                        reinterpret_cast<std::byte*>(making.parts.data()));
        error = gather_parts(making);
        if (error == MPI_SUCCESS && making.table.others_bytes > 0) error = pass_others(making);
        if (error != MPI_SUCCESS) return error;
        if (me_ == leader()) write_table(making, form);
        making.parts = {};
    }
    // All processes load the table before any of them sends: a message of an unknown process is dropped.
    if (agree(Fault::None) && agree(base::attempt([&] { return read_table(making, form); })))
        job_->admitted.store(true);
    return error;
}

// What the exchange of addresses needs in this process. `others`: bytes of the most others.
Fault Team::make_table(Making& making, const net::AddressForm& form, std::size_t others) {
    if (making.leads_mates()) {
        making.own_others.resize(others);
        form.write_others(making.addresses, making.own_others.data());
        making.part_words = making.table.part_bytes / sizeof(std::uint64_t);
        making.parts.resize(making.firsts.size() * making.part_words);
        making.others_before.resize(others);
    }
    if (me_ != leader()) return Fault::None;
    // A table of a provider that was given up; since then all processes have agreed on another one.
    if (const std::uint64_t before = shared_->process_table.exchange(0, std::memory_order_relaxed); before != 0)
        shm::Arena::mine().release(shm::Arena::mine().at(before));
    const shm::ArenaBlock piece =
        shm::Arena::mine().allocate(net::ProcessTable::bytes(making.table, form), alignof(net::ProcessAddress), true);
    if (!piece) return Fault::NoMem;
    shared_->process_table.store(piece.offset, std::memory_order_relaxed);
    return Fault::None;
}

// The first processes pass the others of their parts on: see net/directory.h.
int Team::pass_others(Making& making) {
    const host::Real& mpi = host::real();
    const sync::Dissemination among{making.group, static_cast<std::uint32_t>(making.firsts.size())};
    const auto bytes = static_cast<int>(making.own_others.size());
    const auto rank_of = [&](std::uint32_t group) { return static_cast<int>(making.firsts[group]); };
    MPI_Request received = MPI_REQUEST_NULL;
    MPI_Request sent = MPI_REQUEST_NULL;
    int error = mpi.Irecv(making.others_before.data(), bytes, MPI_BYTE, rank_of(among.before(1)), kParts, making.own,
                          &received);
    if (error == MPI_SUCCESS)
        error = mpi.Isend(making.own_others.data(), bytes, MPI_BYTE, rank_of(among.next(1)), kParts, making.own, &sent);
    if (error == MPI_SUCCESS) error = host::wait(received);
    if (error == MPI_SUCCESS) error = host::wait(sent);
    return error;
}

void Team::write_table(const Making& making, const net::AddressForm& form) {
    const std::uint64_t offset = shared_->process_table.load(std::memory_order_relaxed);
    net::ProcessTable table = net::ProcessTable::at(shm::Arena::mine().at(offset), making.table, form);
    std::ranges::copy(making.leaders, table.leaders.begin());
    // The gathered ones begin with this process's.
    const std::span<const std::byte> gathered = std::as_bytes(std::span(making.parts));
    const std::size_t before = (making.firsts.size() - making.group) * making.table.part_bytes;
    std::ranges::rotate_copy(gathered, gathered.begin() + static_cast<std::ptrdiff_t>(before), table.parts.begin());
    for (std::uint32_t part = 0; part < table.size.parts; ++part)
        table.enter(part, making.firsts[part], making.node_of_group[part]);
    shared_->process_table.store(offset, std::memory_order_release);
}

// Maps the node's process table and registers its processes.
Fault Team::read_table(const Making& making, const net::AddressForm& form) {
    const std::uint64_t offset = shared_->process_table.load(std::memory_order_acquire);
    auto job = std::make_unique<net::Job>();
    std::byte* const memory = map(leader(), offset, net::ProcessTable::bytes(making.table, form));
    if (memory == nullptr) return Fault::Other;
    job_ = std::move(job);
    static_cast<net::ProcessTable&>(*job_) = net::ProcessTable::at(memory, making.table, form);
    job_->number = random_;
    job_->node = making.node;
    job_->me = me_;
    job_->liveness = this;
    if (making.leads_mates() && making.table.others_bytes > 0) {
        const sync::Dissemination among{making.group, making.table.parts};
        job_->learn(making.group, making.own_others);
        job_->learn(among.before(1), making.others_before);
    }
    net::NetworkStack::mine().connections.admit(*job_);
    return Fault::None;
}

net::ProcessAddress Team::first_address(std::uint32_t node) const {
    return job_->first_address(job_->place_of(job_->leaders[node]).part);
}

// The first process of each node measures the way to the next node's, and the slowest counts, so that all go by the
// same figures. In ns, and ns for 1,024 bytes, as integers. It also connects to the lifeline there: a firewall that
// refuses such connections must not look like a death.
int Team::measure_network(Making& making) {
    constexpr int kConnectMs = 3000;
    struct {
        int way, kilobyte, no_lifeline, no_memory;
    } slowest{};
    net::NetworkStack& network = net::NetworkStack::mine();
    const auto nodes = static_cast<std::uint32_t>(job_->leaders.size());
    if (me_ == leader() && base::attempt([&] {
                               const net::ProcessAddress next = first_address((job_->node + 1) % nodes);
                               const sync::Costs cost = network.measure(next);
                               slowest.way = static_cast<int>(cost.way);
                               slowest.kilobyte = static_cast<int>(cost.byte * 1024);
                               const bool accepted =
                                   progress::reach(next.lifeline, kConnectMs) == progress::Reached::Accepted;
                               slowest.no_lifeline = accepted ? 0 : 1;
                           }) != Fault::None)
        slowest.no_memory = 1;
    const int error = largest(making.comm, slowest);
    if (slowest.no_memory != 0) making.visibility = kNoMemory;
    if (slowest.no_lifeline != 0) {
        network.connections.ignore_lifelines();
        if (me_ == 0)
            base::warn_for_group(
                "no TCP connections between the nodes over IPv4 (no address, or a firewall): a process that does not "
                "answer for the seconds of OSC_DEBUG=peer_timeout counts as dead, even if it is stopped or behind a "
                "long transfer; "
                "OSC_OFI_IFACE names another interface");
    }
    // std::bit_width returns int in C++20 as published, and its argument's type in libstdc++ before GCC 13.
    const auto rounds = static_cast<std::uint32_t>(std::bit_width(nodes - 1));
    costs_ = {static_cast<double>(slowest.way), static_cast<double>(slowest.kilobyte) / 1024, rounds};
    return error;
}

void Team::forget_network() {
    if (job_ == nullptr) return;
    net::NetworkStack::mine().connections.dismiss(*job_);
    job_->end_look_ups();
    const std::uint64_t offset = shared_->process_table.load(std::memory_order_relaxed);
    unmap(leader(), offset, job_->memory, net::ProcessTable::bytes(job_->size, job_->form));
    job_.reset();
}

}  // namespace osc
