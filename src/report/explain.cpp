// The text of a report: what the wait is for, and, from process to process, what keeps those busy that it is for. The
// walk ends at processes that do not wait inside libosc; if it meets a process of its path again, it has found a
// deadlock.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "host/host.h"
#include "report/peers.h"
#include "report/report.h"
#include "window/checker.h"

namespace osc::report {
namespace {

using base::format;
using shm::WaitKind;
using shm::WaitNote;
using sync::Relation;

constexpr std::int64_t kBudget = 1'500'000'000;  // ns for one report
constexpr std::int64_t kPerProcess = 400'000'000;
constexpr std::size_t kMostProcesses = 32;

// The window of a note, if this process is in it and no other thread can free it.
Window* find_window(const WaitNote& note, const Window* own) {
    Window* found = nullptr;
    visit_windows([&](Window& window) {
        if (window.core.id == note.window && note.window != 0 &&
            (&window == own || own == nullptr || !window.core.threaded))
            found = &window;
    });
    return found;
}

std::string name_of(Window& window) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    host::real().Win_get_name(window.handle, name, &length);
    return length > 0 ? format("window \"%.100s\"", name) : format("window %#llx", abi::printable(window.handle));
}

std::string seconds(std::int64_t ns) {
    return format("%.1f s", static_cast<double>(ns) / 1e9);
}

std::string purpose(const WaitNote& note) {
    const bool of_every = note.target == shm::kEveryTarget;
    const bool of_any = std::string_view(note.call) == "OSC_Win_wait_any_notify";
    if (note.kind == WaitKind::Lock) return format("the lock of rank %u", note.target);
    if (note.kind == WaitKind::Post) return format("the post of rank %u", note.target);
    if (note.kind == WaitKind::Completes) return "MPI_Win_complete of its origins";
    if (note.kind == WaitKind::Barrier) return "the other processes to enter it";
    if (note.kind == WaitKind::TargetFence) return format("rank %u to enter the fence", note.target);
    if (note.kind == WaitKind::Closes) return "the ends of other nodes' operations";
    if (note.kind == WaitKind::Operations && of_every) return "its operations to complete";
    if (note.kind == WaitKind::Operations) return format("its operations at rank %u to complete", note.target);
    if (note.kind == WaitKind::Notification)
        return format("its notification counter %u%s to reach %u", note.target, of_any ? " or a later one" : "",
                      note.barriers);
    return note.kind == WaitKind::Creation ? "the other processes of the communicator" : "other processes";
}

// By Relation: its text, that of the process itself, and its weight. In a cycle the relation with the greatest weight
// names the mistake.
struct RelationText {
    const char* text;
    const char* of_self;
    int weight;
};
constexpr RelationText kRelations[] = {
    {"holds the lock exclusively", "holds the lock exclusively itself", 0},
    {"holds the lock shared", "holds the lock shared itself", 0},
    {"has not called MPI_Win_post", nullptr, 4},
    {"has not called MPI_Win_complete", nullptr, 3},
    {"has not called MPI_Win_start and MPI_Win_complete", nullptr, 3},
    {"has not entered it", nullptr, 2},
    {"awaits the other nodes", nullptr, 2},
    {"has not answered", nullptr, 1},
    {"may notify it", nullptr, 0},
};
static_assert(std::size(kRelations) == static_cast<std::size_t>(Relation::MayNotify) + 1);

const RelationText& text_of(Relation relation) {
    return kRelations[static_cast<std::size_t>(relation)];
}

int weight(Relation relation) {
    return text_of(relation).weight;
}

// What a wait that cannot end is called.
const char* mistake(Relation relation) {
    constexpr const char* kNames[] = {"a cycle of locks", "a cycle of waits",
                                      "a fence or free that only some processes have entered",
                                      "a post without its complete", "a start without its post"};
    return kNames[weight(relation)];
}

// By Doing.
constexpr const char* kDoings[] = {
    "",
    "it is inside MPI_Finalize",
    "it is inside the host MPI, outside libosc",
    "it computes outside MPI",
    "it runs outside libosc: it computes, or is inside the host MPI",
    "it sleeps in a system call outside MPI",
    "it is in an uninterruptible system call (a disk or a file server) outside MPI",
    "it is stopped by a signal (SIGSTOP); SIGCONT continues it",
    "it is stopped by a debugger",
    "it is dead",
    ("it does not answer, but its node does: it is stopped, its network thread gets no core, or the adapters' link is "
     "down"),
    "neither it nor its node answers: the node is down, or the network is cut",
    "the system does not show what it does",
};
static_assert(std::size(kDoings) == static_cast<std::size_t>(Doing::Unknown) + 1);

struct Step {  // of the path from this process to the one that the walk is at
    std::uint64_t identity;
    std::uint32_t rank;
    WaitNote wait;
    Relation relation;  // of the next one to it
};

class Walk {
  public:
    explicit Walk(const Window* own) : own_(own) {}

    /// Appends to `lines` what the last process of the path waits for.
    void explain(std::vector<std::string>& lines);
    std::vector<Step> path;
    std::string unmatched;  // the line of a deadlock that a post or start without its partner is; "" if none

  private:
    std::string describe(const Findings& found, std::uint32_t rank) const;
    std::string state(const Findings& found);
    void say_cycle(std::size_t from, std::vector<std::string>& lines);
    void say_deadlock(Relation named, const std::string& what, bool certain, std::vector<std::string>& lines);

    const Window* const own_;
    const std::int64_t until_ = now_ns() + kBudget;
    std::vector<std::uint64_t> seen_;
    Peers peers_;
};

std::string Walk::state(const Findings& found) {
    if (found.doing != Doing::Waits) return kDoings[static_cast<std::size_t>(found.doing)];
    const WaitNote& wait = found.view.wait;
    Window* const window = find_window(wait, own_);
    return format("it waits in %s for %s%s%s, %s so far", wait.call, purpose(wait).c_str(),
                  window != nullptr ? " in " : "", window != nullptr ? name_of(*window).c_str() : "",
                  seconds(now_ns() - wait.since).c_str());
}

void Walk::say_deadlock(Relation named, const std::string& what, bool certain, std::vector<std::string>& lines) {
    lines.push_back(format("deadlock, %s: %s", mistake(named), what.c_str()));
    if (certain && unmatched.empty() && weight(named) >= weight(Relation::HasNotStarted)) unmatched = lines.back();
}

void Walk::say_cycle(std::size_t from, std::vector<std::string>& lines) {
    Relation named = Relation::HoldsExclusive;
    bool threads = false;
    std::string chain;
    for (std::size_t i = from; i < path.size(); ++i) {
        const Step& step = path[i];
        threads = threads || step.wait.threads != 0;
        if (weight(step.relation) > weight(named)) named = step.relation;
        chain += i == from ? format("rank %u waits for ", step.rank) : format("rank %u, which waits for ", step.rank);
    }
    chain += format("rank %u", path[from].rank);
    if (threads) chain += " (unless another thread of one of them ends it)";
    say_deadlock(named, chain, !threads, lines);
}

// Whether an origin of the exposure epoch that `target` waits in has completed it: it waits for the target's next post.
bool is_ahead(const WaitNote& origin, const WaitNote& target) {
    return target.kind == WaitKind::Completes && origin.kind == WaitKind::Post && origin.window == target.window &&
           origin.target == target.rank;
}

void Walk::explain(std::vector<std::string>& lines) {
    const Step last = path.back();
    Window* const window = find_window(last.wait, own_);
    if (window == nullptr) return;
    const sync::Awaited awaited = peers_.find_awaited(*window, last.wait);
    const std::string indent(2 * path.size(), ' ');
    for (std::uint32_t i = 0; i < awaited.count; ++i) {
        const auto [rank, relation] = awaited.ranks[i];
        path.back().relation = relation;
        const Findings found = peers_.look_at(*window, rank, std::min(kPerProcess, until_ - now_ns()));
        const bool is_self = found.view.identity == path.front().identity;
        if (is_ahead(is_self ? path.front().wait : found.view.wait, last.wait)) continue;
        const bool waits = found.doing == Doing::Waits;
        const std::string pid = found.view.pid > 0 ? format(" (pid %d)", found.view.pid) : "";
        const RelationText& texts = text_of(relation);
        const char* const how = rank == last.rank && texts.of_self != nullptr ? texts.of_self : texts.text;
        lines.push_back(indent + format("rank %u%s %s: ", rank, pid.c_str(), how) +
                        (is_self ? "this process" : state(found)));
        const auto before = std::find_if(path.begin(), path.end(), [&](const Step& step) {
            return step.identity == found.view.identity && step.identity != 0;
        });
        // A notification may come from any process, so a cycle of such waits is no deadlock as long as others run.
        if (relation == Relation::MayNotify) continue;
        if (before != path.end()) {
            say_cycle(static_cast<std::size_t>(before - path.begin()), lines);
            continue;
        }
        if (found.doing == Doing::Finalizes)
            say_deadlock(relation, format("rank %u has called MPI_Finalize", rank), true, lines);
        const bool known = std::find(seen_.begin(), seen_.end(), found.view.identity) != seen_.end();
        if (!waits || known || seen_.size() >= kMostProcesses) continue;
        seen_.push_back(found.view.identity);
        path.push_back({found.view.identity, rank, found.view.wait, relation});
        explain(lines);
        path.pop_back();
    }
    if (awaited.others > 0) lines.push_back(indent + format("and %u more processes", awaited.others));
}

// The value of the counter that this process waits for.
std::string value_of(const WaitNote& note, const Window* window) {
    if (note.kind != WaitKind::Notification || window == nullptr) return "";
    sync::NotifyBoard* const board = window->notifications.own();
    if (board == nullptr || note.target >= board->count.load(std::memory_order_acquire)) return "";
    const std::uint64_t value = board->counter(note.target).load(std::memory_order_relaxed);
    return format(" (it is %llu)", static_cast<unsigned long long>(value));
}

}  // namespace

void explain(const WaitNote& note) {
    Window* const window = find_window(note, nullptr);
    std::vector<std::string> lines;
    lines.push_back(
        format("%s has waited %s for %s", note.call, seconds(now_ns() - note.since).c_str(), purpose(note).c_str()) +
        value_of(note, window) +
        (window != nullptr ? format(" in %s, where this process is rank %u", name_of(*window).c_str(), note.rank)
                           : ""));
    Walk walk(window);
    walk.path.push_back(
        {shm::my_activity().identity.load(std::memory_order_relaxed), note.rank, note, Relation::HasNotAnswered});
    walk.explain(lines);
    for (const std::string& line : lines)
        base::say("%s", line.c_str());
    // OSC_CHECK: it is a mistake of the program, with a call site.
    if (window != nullptr && window->core.ledger != nullptr && !walk.unmatched.empty())
        g_checker->deadlock(*window, note.call, walk.unmatched);
}

}  // namespace osc::report
