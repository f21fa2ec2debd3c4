// Notes of waits, and the decision when a wait is reported.
// Build: osc_core
#include "shm/activity.h"

#include <cstring>

#include "base/clock.h"
#include "base/helper_thread.h"

namespace osc::shm {
namespace {

Activity g_unshared;
std::atomic<Activity*> g_mine{&g_unshared};
std::atomic<ReportWait> g_report{nullptr};
std::atomic<std::int64_t> g_limit{0};
std::atomic<std::uint32_t> g_demands{0};
std::atomic<std::uint32_t> g_sleeping{0};  // threads in watched sleeps
std::atomic<bool> g_noted{false};          // a thread has the process's note
std::atomic<bool> g_threaded{false};

}  // namespace

constinit thread_local const WaitScope* WaitScope::t_innermost = nullptr;

WaitNote Activity::note() const {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
        const std::uint64_t before = version_.load(std::memory_order_acquire);
        std::uint64_t copy[kWords];
        for (std::size_t word = 0; word < kWords; ++word)
            copy[word] = words_[word].load(std::memory_order_acquire);
        if (before % 2 != 0 || version_.load(std::memory_order_relaxed) != before) continue;
        WaitNote note;
        std::memcpy(&note, copy, sizeof note);
        note.call[sizeof note.call - 1] = '\0';
        return note;
    }
    return {};
}

void Activity::write(const WaitNote& note) {
    std::uint64_t copy[kWords];
    std::memcpy(copy, &note, sizeof note);
    version_.fetch_add(1, std::memory_order_acq_rel);
    for (std::size_t word = 0; word < kWords; ++word)
        words_[word].store(copy[word], std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
}

Activity& my_activity() {
    return *g_mine.load(std::memory_order_relaxed);
}

void use_activity(Activity& shared) {
    g_mine.store(&shared, std::memory_order_release);
}

WaitScope::WaitScope(WaitKind kind, std::uint64_t window, std::uint32_t rank, std::uint32_t target,
                     std::uint32_t barriers)
    : kind_(kind), rank_(rank), target_(target), barriers_(barriers), window_(window), before_(t_innermost) {
    t_innermost = this;
}

void watch_waits(ReportWait report, std::int64_t limit_ns) {
    g_limit.store(limit_ns, std::memory_order_relaxed);
    g_report.store(report, std::memory_order_release);
}

bool demand_reports() {
    g_demands.fetch_add(1, std::memory_order_relaxed);
    return g_sleeping.load(std::memory_order_relaxed) != 0;
}

void set_threaded(bool threaded) {
    g_threaded.store(threaded, std::memory_order_relaxed);
}

void note_finalize() {
    if (g_report.load(std::memory_order_relaxed) == nullptr || g_noted.exchange(true, std::memory_order_acquire))
        return;
    WaitNote note{.since = now_ns(), .kind = WaitKind::Finalize};
    std::strncpy(note.call, "MPI_Finalize", sizeof note.call - 1);
    my_activity().write(note);
}

WaitNote WaitWatch::describe() const {
    WaitNote note{.since = since_, .kind = WaitKind::Other, .threads = g_threaded.load(std::memory_order_relaxed)};
    std::strncpy(note.call, t_call, sizeof note.call - 1);
    if (const WaitScope* const scope = WaitScope::t_innermost; scope != nullptr) {
        note.kind = scope->kind_;
        note.window = scope->window_;
        note.rank = scope->rank_;
        note.target = scope->target_;
        note.barriers = scope->barriers_;
    }
    return note;
}

void WaitWatch::begin() {
    since_ = now_ns();
    demands_ = g_demands.load(std::memory_order_relaxed);
    g_sleeping.fetch_add(1, std::memory_order_relaxed);
    noted_ = !g_noted.exchange(true, std::memory_order_acquire);
    if (noted_) my_activity().write(describe());
}

void WaitWatch::look() {
    const ReportWait report = g_report.load(std::memory_order_acquire);
    if (report == nullptr || base::t_helper_thread) return;
    if (since_ == 0) return begin();
    const std::uint32_t demands = g_demands.load(std::memory_order_relaxed);
    const bool late = !reported_ && now_ns() - since_ >= g_limit.load(std::memory_order_relaxed);
    if (!late && demands == demands_) return;
    reported_ = reported_ || late;
    demands_ = demands;
    report(describe());
}

void WaitWatch::end() const {
    g_sleeping.fetch_sub(1, std::memory_order_relaxed);
    if (!noted_) return;
    my_activity().write({});
    g_noted.store(false, std::memory_order_release);
}

}  // namespace osc::shm
