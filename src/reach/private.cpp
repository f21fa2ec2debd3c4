// Chooses between a thread that waits, process_vm_* and the agent, for each operation.
// Build: -O3
#include "reach/private.h"

#include <algorithm>
#include <utility>

namespace osc::reach {

bool Private::prefers_message(const Target& target, const op::Call& call) {
    // The system takes 0.5 to 2 us for a call and 150 to 350 ns for each piece, twice for an accumulate; a thread of
    // the owner that waits answers in as much time, the owner's agent in some 10 us.
    constexpr std::size_t kManyPieces = 64;
    constexpr std::size_t kLongPiece = 1024;  // bytes
    if (target.rank == origin_.me || target.control().mailbox == 0) return false;
    net::AgentRoute* const route = route_to(target);
    const bool attended = route != nullptr && net::is_attended(route->box->attended.load(std::memory_order_relaxed));
    const bool moves = call.kind == op::OpKind::Put || call.kind == op::OpKind::Get;
    if (attended && !moves) return true;
    const op::Layout& layout = *call.target.layout;
    const std::size_t pieces = layout.data().blocks() * call.target.count;
    const std::size_t bytes = layout.size() * call.target.count;
    if (pieces < (attended ? 1 : kManyPieces) || bytes / pieces > kLongPiece) return false;
    if (attended) return true;
    if (layout.data().one_piece(call.target.count)) return false;
    if (call.kind != op::OpKind::Get) return true;
    // A get reads the gaps.
    op::Bounds bounds;
    if (!layout.bounds(call.target.count, bounds)) return false;
    const auto span = static_cast<std::size_t>(bounds.hi - bounds.lo);
    constexpr std::size_t kLongSpan = std::size_t{256} << 10;
    constexpr std::size_t kSparse = 8;  // gaps per data
    return span >= kLongSpan && span / kSparse >= bytes;
}

Private::Carrier::Carrier(Private& way, Target& target, std::uint64_t base, const op::Call* sent)
    : path_(stats::DataPath::ProcessVm) {
    const pid_t pid = way.pid_of(target.rank);
    if (pid != 0 && sent == nullptr) {
        fault_ = way.await_updates(target);
        cross_.emplace(way.place_of(target, pid, base));
        return;
    }
    path_ = stats::DataPath::Agent;
    waits_.emplace(shm::WaitKind::Operations, way.window_, way.origin_.me, target.rank);
    // A fault of an earlier operation is reported first.
    if (way.pending_.incomplete.load(std::memory_order_acquire) != 0) fault_ = way.await_agents(net::kNoRank);
    net::AgentRoute* route = nullptr;
    if (fault_ == Fault::None) fault_ = way.connect(target, route);
    way.asks_agents_.store(true, std::memory_order_relaxed);
    // An accumulate that goes by process_vm_* next must find this one done.
    const bool awaits = pid != 0 && sent->kind != op::OpKind::Put;
    if (fault_ == Fault::None)
        agent_.emplace(net::Outbox::mine(), *route, target.control().served, base, target.rank,
                       awaits ? nullptr : &way.pending_);
}

Outcome Private::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    Carrier carrier(*this, target, target.control().base, prefers_message(target, call) ? &call : nullptr);
    if (carrier.fault() != Fault::None) return carrier.outcome(carrier.fault());
    return carrier.outcome(op::execute(call, what, start, carrier.transport()));
}

Outcome Private::simple_outside(Target& target, const op::Simple& what, bool prepared, std::uint64_t first,
                                std::uint64_t end) {
    const shm::ControlBlock& block = target.control();
    std::int64_t at = 0;
    if (what.disp < 0 || __builtin_mul_overflow(what.disp, static_cast<std::int64_t>(target.unit), &at))
        return kNotServed;
    const auto offset = static_cast<std::uint64_t>(at);
    if (what.bytes > block.size || offset > block.size - what.bytes) return kNotServed;
    if (offset < end && offset + what.bytes > first) return kNotServed;
    return simple_at(target, what, prepared, block.base + offset, offset);
}

Outcome Private::simple_at(Target& target, const op::Simple& what, bool prepared, std::uint64_t address,
                           std::uint64_t offset) {
    if (!prepared) return kNotServed;
    const pid_t pid = pid_of(target.rank);
    if (pid != 0 && join(target, what, pid, address, offset))
        return {.in_flight = true, .path = stats::DataPath::ProcessVm};
    if (target.is_in_run()) return kNotServed;
    if (ask(target, what, offset)) return {.path = stats::DataPath::Agent};
    if (pid == 0 || !what.is_transfer()) return kNotServed;
    const bool is_put = what.kind == op::OpKind::Put;
    void* const here = is_put ? const_cast<void*>(what.origin) : what.result;
    const int error =
        cma::transfer(is_put ? cma::Direction::Write : cma::Direction::Read, pid, address, here, what.bytes);
    return {.served = error == 0, .path = stats::DataPath::ProcessVm};  // perform() reports the error
}

Fault Private::take_death() {
    const std::uint32_t dead = dead_.exchange(0, std::memory_order_relaxed);
    if (dead == 0) return Fault::None;
    origin_.incomplete.fetch_sub(1, std::memory_order_relaxed);
    return base::fail(Fault::Dead, "rank %u died, and its memory with it", dead - 1);
}

// Adds the operation to the batch of a long run.
bool Private::join(Target& target, const op::Simple& what, pid_t pid, std::uint64_t address, std::uint64_t offset) {
    const bool is_put = what.kind == op::OpKind::Put;
    const bool fits = what.is_transfer() ? what.bytes <= (is_put ? cma::Collected::kMostPut : cma::Collected::kMostGet)
                                         : is_batchable(what);
    const bool awaits_result = what.has_request && what.result != nullptr;
    if (!fits || awaits_result || (!run_.goes_on() && !run_.look(false))) return false;
    if (!run_.is_long()) target.unmapped_run = false;
    if (!run_.lengthen()) return false;
    const auto disp = static_cast<std::int64_t>(offset);
    Peer* const peer = peer_of_run(target, what, address - offset);
    if (peer == nullptr) {
        if (const Fault fault = await_updates(target); fault != Fault::None) {
            origin_.incomplete.fetch_add(1, std::memory_order_relaxed);
            run_.note(fault);  // the next completion reports it
        }
        target.unmapped_run = true;
        run_.batch().unmapped(target.local_index, place_of(target, pid, address - offset)).add(what, disp);
        return true;
    }
    target.unmapped_run = true;
    if (is_put) {
        peer->messages->move(true, disp, const_cast<void*>(what.origin), what.bytes);
        return true;
    }
    peer->messages->update(*what.how, disp, what.origin, what.result, 1);
    peer->sent_updates = true;
    sent_updates_.store(true, std::memory_order_relaxed);
    if (what.result != nullptr) {
        send(*std::ranges::find(in_messages_, peer));
        peer->run = 0;
    }
    return true;
}

// The process whose messages take an operation of the run; null: the batch does. The first operation of a run on a
// target decides for all but gets, so that its updates keep their order.
Private::Peer* Private::peer_of_run(const Target& target, const op::Simple& what, std::uint64_t base) {
    if (what.kind == op::OpKind::Get) return nullptr;
    net::AgentRoute* const route = route_to(target);
    if (peers_ == nullptr) return nullptr;  // no process has been asked
    Peer& peer = peers_[target.local_index];
    if (peer.messages) return &peer;
    const bool is_first = std::exchange(peer.run, run_.number()) != run_.number();
    if (!is_first || route == nullptr || what.result != nullptr) return nullptr;
    if (!net::is_attended(route->box->attended.load(std::memory_order_relaxed))) return nullptr;
    const auto place = std::ranges::find(in_messages_, nullptr);
    if (place == in_messages_.end() || !net::Outbox::mine().keep()) return nullptr;
    *place = &peer;
    asks_agents_.store(true, std::memory_order_relaxed);
    origin_.incomplete.fetch_add(1, std::memory_order_relaxed);
    peer.messages.emplace(net::Outbox::mine(), *route, target.control().served, base, target.rank, &pending_);
    return &peer;
}

// Sends what a process's messages have taken, and ends that.
void Private::send(Peer*& place) {
    run_.note(place->messages->finish());
    place->messages.reset();
    net::Outbox::mine().keep_no_more();
    place = nullptr;
}

// Before updates of a target by process_vm_*: awaits those that messages have taken.
Fault Private::await_updates(const Target& target) {
    if (!sent_updates_.load(std::memory_order_relaxed)) return Fault::None;
    Peer& peer = peers_[target.local_index];
    if (!std::exchange(peer.sent_updates, false)) return Fault::None;
    if (peer.messages) send(*std::ranges::find(in_messages_, &peer));
    return await_agents(target.rank);
}

// Has a thread of the target that waits execute the operation: sooner than by a call of the system, or two for an
// update. False if nothing is done; then perform() reports what is wrong, if anything is. Accumulates that the agent
// may still have come first.
bool Private::ask(const Target& target, const op::Simple& what, std::uint64_t offset) {
    constexpr std::size_t kMost = net::kQuickBody - sizeof(net::Record);
    if (what.bytes > kMost || pending_.incomplete.load(std::memory_order_acquire) != 0) return false;
    net::AgentRoute* const route = route_to(target);
    if (route == nullptr) return false;
    net::Record record{.opcode = net::Opcode::Put,
                       .bytes = static_cast<std::uint32_t>(what.bytes),
                       .disp = static_cast<std::int64_t>(offset)};
    const void* compare = nullptr;
    if (what.kind == op::OpKind::Get) {
        record.opcode = net::Opcode::Get;
    } else if (!what.is_transfer()) {
        compare = what.how->compare;
        record.basic = what.how->basic;
        record.op = what.how->op;
        record.opcode = compare != nullptr       ? net::Opcode::CompareAndSwap
                        : what.result != nullptr ? net::Opcode::UpdateReturn
                                                 : net::Opcode::Update;
    }
    return net::Outbox::ask(*route, target.control().served, record, what.origin, compare, what.result) ==
           net::Status::Done;
}

// The route to the target's agent; null before some operations, because to make it costs as much as dozens, and if it
// cannot be made.
net::AgentRoute* Private::route_to(const Target& target) {
    constexpr std::uint32_t kCalls = 3;
    if (target.rank == origin_.me || target.control().mailbox == 0) return nullptr;
    std::call_once(peers_made_,
                   [this] { peers_ = std::make_unique<Peer[]>(origin_.controls.local_count(origin_.size)); });
    Peer& peer = peers_[target.local_index];
    net::AgentRoute* route = peer.route.load(std::memory_order_acquire);
    if (route != nullptr || peer.calls.load(std::memory_order_relaxed) > kCalls) return route;
    if (peer.calls.fetch_add(1, std::memory_order_relaxed) != kCalls || connect(target, route) != Fault::None)
        return nullptr;
    peer.route.store(route, std::memory_order_release);
    return route;
}

// By the target's agent. Every process may come to its memory by another way: the agent takes the same stripes.
std::unique_ptr<Transport> Private::open_detour(const cma::Place& place) {
    struct Way final : Transport {
        Way(Private& way, const cma::Place& place, net::AgentRoute& route)
            : waits(shm::WaitKind::Operations, way.window_, way.origin_.me, place.rank),
              agent(net::Outbox::mine(), route, place.stripes.target.served, place.base, place.rank) {}
        void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override {
            agent.move(write, disp, memory, bytes);
        }
        void update(const Update& how, std::int64_t disp, const void* origin, void* result,
                    std::size_t count) override {
            agent.update(how, disp, origin, result, count);
        }
        Fault finish() override { return agent.finish(); }

        shm::WaitScope waits;
        net::AgentTransport agent;
    };
    net::AgentRoute* route = nullptr;
    if (connect(place.rank, place.stripes.target.mailbox, route) != Fault::None || route == nullptr) return nullptr;
    node_.lose_pid(place.rank);
    return std::make_unique<Way>(*this, place, *route);
}

Fault Private::connect(std::uint32_t rank, std::uint64_t mailbox, net::AgentRoute*& route) {
    const Fault fault =
        mailbox != 0
            ? net::Outbox::mine().connect(node_.arena(rank), mailbox, route)
            : base::fail(Fault::Other,
                         "the memory of rank %u is not mapped here, process_vm_readv does not reach it, and no "
                         "agent was started for the window",
                         rank);
    return fault == Fault::None ? fault : not_mapped(origin_.liveness, rank, fault);
}

}  // namespace osc::reach
