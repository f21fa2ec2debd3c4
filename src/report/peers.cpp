#include "report/peers.h"

#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/clock.h"
#include "net/network_stack.h"

namespace osc::report {
namespace {

constexpr std::int64_t kSecondAfter = 400'000'000;  // ns
constexpr std::int64_t kGiveUpAfter = 1'500'000'000;

constexpr std::int64_t kLookUp = 200'000'000;  // ns for the answer of a keeper of addresses

// The connection to a process of another node; null if there is none.
net::Connection* find(Window& window, std::uint32_t rank) {
    net::NetworkStack& network = net::NetworkStack::mine();
    net::Connection* peer = nullptr;
    const std::int64_t began = now_ns();
    while (network.directory.find(*window.team.job(), rank, peer) == net::Directory::Found::Asked &&
           now_ns() - began < kLookUp) {
        network.engine.poll();
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
    return peer;
}

// A reply may come after its report has been printed, so the reply keeps itself alive.
class Reply final : public net::ReplyHandler {
  public:
    static std::shared_ptr<Reply> to(Window& window, std::uint32_t rank, const net::InspectQuestion& question) {
        net::NetworkStack& network = net::NetworkStack::mine();
        net::Connection* peer = find(window, rank);
        if (peer == nullptr || peer->ended()) return nullptr;
        auto reply = std::make_shared<Reply>();
        reply->self_ = reply;
        const struct {
            net::Record record{.opcode = net::Opcode::Inspect};
            net::InspectQuestion question;
        } body{.question = question};
        net::Message* message = network.sender.claim(&body, sizeof body);
        network.messenger.request(*peer, net::FrameKind::Query, window.core.id, window.core.me, message, *reply);
        return reply;
    }

    std::optional<net::Inspection> take() const {
        if (!has_come_.load(std::memory_order_acquire)) return std::nullopt;
        return found_;
    }

  private:
    void answered(net::Status status, const std::byte* data, std::size_t bytes) override {
        const std::shared_ptr<Reply> keep = std::move(self_);
        if (status != net::Status::Done || bytes < sizeof found_) return;
        std::memcpy(&found_, data, sizeof found_);
        found_.view.wait.call[sizeof found_.view.wait.call - 1] = '\0';
        if (found_.view.wait.kind != shm::WaitKind::None) found_.view.wait.since = now_ns() - found_.view.wait.since;
        has_come_.store(true, std::memory_order_release);
    }

    std::shared_ptr<Reply> self_;
    net::Inspection found_;
    std::atomic<bool> has_come_{false};
};

constexpr std::int64_t kBetween = 10'000'000;   // ns between two views of a process
constexpr std::int64_t kSettled = 300'000'000;  // ns after which views without any change are believed
constexpr int kConnectMs = 500;                 // for a node to answer a connection attempt
constexpr std::uint32_t kMostNodes = 64;        // asked for one wait
constexpr std::uint64_t kBusyTicks = 2;         // of processor time: the process has run between two views

// What one view shows by itself; Unknown if it takes another one.
Doing at_once(const shm::ProcessView& seen) {
    if (seen.state == 'X') return Doing::Ended;
    if (seen.state == 'T') return Doing::Stopped;
    if (seen.state == 't') return Doing::Traced;
    if (seen.wait.kind == shm::WaitKind::Finalize) return Doing::Finalizes;
    if (seen.wait.kind != shm::WaitKind::None) return Doing::Waits;
    return Doing::Unknown;
}

// What a process does that waits in no call of libosc. A process that polls inside the host shows it soon; one that has
// run meanwhile without such a poll computes.
Doing by_change(const shm::ProcessView& first, const shm::ProcessView& last, bool settled) {
    if (last.host_polls != first.host_polls) return Doing::InHost;
    const bool ran = last.cpu_ticks - first.cpu_ticks >= kBusyTicks;
    if (ran || (settled && last.state == 'R')) return last.counts_polls != 0 ? Doing::Computes : Doing::Runs;
    if (!settled) return Doing::Unknown;
    return last.state == 'S' ? Doing::Sleeps : last.state == 'D' ? Doing::SleepsOnDisk : Doing::Unknown;
}

}  // namespace

std::vector<std::optional<net::Inspection>> Peers::ask(Window& window, std::span<const Inquiry> inquiries) {
    const std::int64_t began = now_ns();
    const std::size_t count = inquiries.size();
    std::vector<std::optional<net::Inspection>> found(count);
    std::vector<std::shared_ptr<Reply>> replies(2 * count);
    for (std::size_t i = 0; i < count; ++i)
        replies[i] = Reply::to(window, inquiries[i].first, inquiries[i].question);
    bool asked_second = false;
    for (;;) {
        bool all = true;
        for (std::size_t i = 0; i < count; ++i) {
            for (const std::shared_ptr<Reply>& reply : {replies[i], replies[count + i]})
                if (!found[i] && reply != nullptr) found[i] = reply->take();
            all = all && found[i];
        }
        const std::int64_t spent = now_ns() - began;
        if (all || spent >= kGiveUpAfter) return found;
        if (!asked_second && spent >= kSecondAfter) {
            asked_second = true;
            for (std::size_t i = 0; i < count; ++i)
                if (!found[i] && inquiries[i].second != inquiries[i].first)
                    replies[count + i] = Reply::to(window, inquiries[i].second, inquiries[i].question);
        }
        net::NetworkStack::mine().engine.poll();
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

// The process itself is asked, and its neighbour if it does not answer soon; a process that has not answered is not
// asked again if it has a neighbour.
Peers::Inquiry Peers::inquiry(Window& window, std::uint32_t rank, const sync::WaitQuestion& wait) const {
    const std::uint32_t neighbour = window.team.job()->neighbour_of(rank);
    return {{wait, rank, 0}, silent_.contains({&window, rank}) ? neighbour : rank, neighbour};
}

// False if nobody says what the process does.
bool Peers::view(Window& window, std::uint32_t rank, shm::ProcessView& seen) {
    if (window.core.is_local(rank)) {
        seen = window.process_view(rank);
        return true;
    }
    const Inquiry one = inquiry(window, rank, {});
    if (one.first == rank && silent_.contains({&window, rank})) return false;
    const auto found = ask(window, {&one, 1});
    if (!found[0]) return false;
    seen = found[0]->view;
    return true;
}

Findings Peers::look_at(Window& window, std::uint32_t rank, std::int64_t limit_ns) {
    const std::int64_t began = now_ns();
    shm::ProcessView first;
    Findings found;
    for (bool again = false; view(window, rank, found.view); again = true) {
        if (!again) first = found.view;
        const std::int64_t spent = now_ns() - began;
        found.doing = at_once(found.view);
        if (found.doing == Doing::Unknown) found.doing = by_change(first, found.view, spent >= kSettled);
        if (found.doing != Doing::Unknown || spent >= limit_ns) return found;
        const timespec pause{0, kBetween};
        ::nanosleep(&pause, nullptr);
    }
    silent_.insert({&window, rank});
    const net::Connection* const peer = find(window, rank);
    const progress::SocketAddress lifeline = peer != nullptr ? peer->lifeline : progress::SocketAddress{};
    const progress::Reached reached = progress::reach(lifeline, kConnectMs);
    found.doing = reached == progress::Reached::Accepted  ? Doing::Silent
                  : reached == progress::Reached::Refused ? Doing::Ended
                                                          : Doing::Unreachable;
    return found;
}

// A process that does not answer keeps the wait from being explained, and perhaps from ending.
void Peers::ask_all(Window& window, const std::vector<Inquiry>& inquiries, sync::Awaited& awaited) {
    const auto found = ask(window, inquiries);
    for (std::size_t i = 0; i < inquiries.size(); ++i) {
        if (!found[i]) {
            silent_.insert({&window, inquiries[i].question.subject});
            awaited.add(inquiries[i].question.subject, sync::Relation::HasNotAnswered);
            continue;
        }
        for (std::uint32_t entry = 0; entry < found[i]->awaited.count && entry < sync::Awaited::kMost; ++entry)
            if (const auto& [rank, relation] = found[i]->awaited.ranks[entry];
                rank < window.core.size && relation <= sync::Relation::MayNotify)
                awaited.add(rank, relation);
        awaited.others += found[i]->awaited.others;
    }
}

sync::Awaited Peers::find_awaited(Window& window, const shm::WaitNote& note) {
    const sync::WaitQuestion wait{note.kind, note.rank, note.target, note.barriers};
    sync::Awaited awaited;
    if (note.rank >= window.core.size) return awaited;
    const net::Job* const job = window.team.job();
    const bool at_target = note.kind == shm::WaitKind::Lock || note.kind == shm::WaitKind::Operations;
    const bool has_target = at_target || note.kind == shm::WaitKind::Post || note.kind == shm::WaitKind::TargetFence;
    const bool here = note.target == window.core.me;
    const bool spans = job != nullptr && has_target && note.target < window.core.size;
    // Between nodes only the target knows which requests wait for its lock.
    const bool remote =
        spans && !here && (!window.core.is_local(note.target) || (at_target && !window.core.is_local(note.rank)));
    if (at_target && spans && here)
        net::NetworkStack::mine().messenger.find_awaited(window.core.id, wait, awaited);
    else if (!remote)
        sync::find_awaited(window.core.controls, window.core.size, wait, awaited);
    if (job == nullptr) return awaited;
    switch (note.kind) {
        case shm::WaitKind::Lock:
        case shm::WaitKind::Operations:
        case shm::WaitKind::Post:
        case shm::WaitKind::TargetFence:
            if (remote) ask_all(window, {inquiry(window, note.target, wait)}, awaited);
            break;
        case shm::WaitKind::Completes:
        case shm::WaitKind::Barrier:
        case shm::WaitKind::Closes:
        case shm::WaitKind::Notification: {
            // One process of each other node answers for all of them.
            std::vector<Inquiry> nodes;
            for (std::uint32_t node = 0; node < job->leaders.size() && nodes.size() < kMostNodes; ++node)
                if (node != job->node) nodes.push_back(inquiry(window, job->leaders[node], wait));
            ask_all(window, nodes, awaited);
            break;
        }
        default:
            break;
    }
    return awaited;
}

}  // namespace osc::report
