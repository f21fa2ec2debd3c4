// What the figures of a job say against the program, with the remedy. Rules read counts; only those about waiting read
// times, and then as shares of the window's life.
#include <algorithm>

#include "base/log.h"
#include "stats/report.h"

namespace osc::stats {
namespace {

constexpr std::uint64_t kFew = 100;             // less traffic than this is nobody's bottleneck
constexpr std::uint64_t kShortLife = 10000000;  // ns over all processes: too short to judge waits

using Findings = std::vector<Finding>;

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(double share) {
    return base::format("%.0f %%", 100 * share);
}

std::string count(std::uint64_t number) {
    return std::to_string(number);
}

// The gain is an estimate: a load or store with its call takes some 20 ns, and 0.1 ns a byte.
void unshared_memory(const WindowReport& window, Findings& findings) {
    std::uint64_t operations = 0, bytes = 0, ns = 0;
    for (const DataPath path : {DataPath::ProcessVm, DataPath::Agent}) {
        operations += window.of_path(path);
        bytes += window.of_path(path, kBytes);
        for (const Kind kind : kAll<Kind>)
            ns += window.of(kind, path, kOperationNs);
    }
    const double part = share(operations, window.operations());
    if (operations < kFew || part < 0.1) return;
    std::string text = percent(part) + " of its operations were calls of the system, or messages to the target";
    std::string then = "then they are loads and stores";
    const double shared = 20 * static_cast<double>(operations) + 0.1 * static_cast<double>(bytes);
    if (static_cast<double>(ns) > 2 * shared) {
        text += base::format(", and took %.1f ms", static_cast<double>(ns) / 1e6);
        then += base::format(", which take some %.1f ms", shared / 1e6);
    }
    findings.push_back({window.title(), text,
                        "allocate its memory with MPI_Win_allocate, or with MPI_Alloc_mem before MPI_Win_create or "
                        "MPI_Win_attach, or set OSC_ADOPT=auto: " +
                            then});
}

void one_operation_per_lock(const WindowReport& window, Findings& findings) {
    const std::uint64_t locks = window.value(Sync::Win_lock, kCallsMade);
    const std::uint64_t all = window.operations();
    if (locks < kFew || all == 0 || share(all, locks) > 1.5) return;
    findings.push_back({window.title(),
                        base::format("%.1f operations per MPI_Win_lock (%llu locks)", share(all, locks),
                                     static_cast<unsigned long long>(locks)),
                        "call MPI_Win_lock_all once, and MPI_Win_flush where a result is needed, in place of a lock "
                        "around each element; atomics need no exclusive lock"});
}

void one_operation_per_round_trip(const WindowReport& window, Findings& findings) {
    const std::uint64_t remote = window.of_path(DataPath::Message) + window.of_path(DataPath::Direct);
    const std::uint64_t flushes =
        window.value(Sync::Win_flush, kCallsMade) + window.value(Sync::Win_flush_all, kCallsMade);
    if (remote < kFew || share(remote, window.operations()) < 0.5 || share(remote, flushes) > 1.5 || flushes == 0)
        return;
    findings.push_back(
        {window.title(),
         count(flushes) + " flushes for " + count(remote) + " operations between nodes: a round trip each",
         "call several operations before one MPI_Win_flush: they share messages"});
}

// The process for which the others wait: the one that came last most often, or else the one that waits least itself.
const Member* latecomer(const WindowReport& window) {
    const auto less_last = [](const Member& a, const Member& b) {
        return a.value(index_of(Other::FenceLast)) < b.value(index_of(Other::FenceLast));
    };
    const auto waits_less = [](const Member& a, const Member& b) {
        return a.waiting(Sync::Win_fence) < b.waiting(Sync::Win_fence);
    };
    const std::uint64_t fences = window.value(Other::FenceLast);
    const auto last = std::max_element(window.members.begin(), window.members.end(), less_last);
    if (fences > 0) return share(last->value(index_of(Other::FenceLast)), fences) > 0.5 ? &*last : nullptr;
    const auto least = std::min_element(window.members.begin(), window.members.end(), waits_less);
    const double mean = share(window.value(Sync::Win_fence, kWaiting), window.members.size());
    return static_cast<double>(least->waiting(Sync::Win_fence)) < mean / 2 ? &*least : nullptr;
}

void waits(const WindowReport& window, Findings& findings) {
    const std::uint64_t life = window.value(Other::Lifetime);
    if (life < kShortLife) return;
    const Member* const late = latecomer(window);
    // The share of the others, if they wait for one process.
    const std::uint64_t its_waiting = late != nullptr ? late->waiting(Sync::Win_fence) : 0;
    const std::uint64_t its_life = late != nullptr ? late->value(index_of(Other::Lifetime)) : 0;
    const std::uint64_t fences = window.value(Sync::Win_fence, kWaiting);
    if (const double part = share(fences - its_waiting, life - its_life); part > 0.3) {
        const std::string whom =
            late != nullptr ? "rank " + count(late->rank) : std::string("other processes, in turn");
        findings.push_back({window.title(), percent(part) + " of its time in MPI_Win_fence waiting for " + whom,
                            late != nullptr ? "give rank " + count(late->rank) +
                                                  " less to do between the fences, or synchronise neighbours only "
                                                  "(post, start, complete, wait)"
                                            : std::string("synchronise neighbours only (post, start, complete, wait), "
                                                          "or do more between two fences")});
    }
    const std::uint64_t exposure = window.value(Sync::Win_wait, kWaiting) + window.value(Sync::Win_start, kWaiting) +
                                   window.value(Sync::Win_complete, kWaiting);
    if (const double part = share(exposure, life); part > 0.3)
        findings.push_back(
            {window.title(), percent(part) + " of its time in MPI_Win_start, MPI_Win_complete and MPI_Win_wait waiting",
             "call MPI_Win_post earlier, compute between start and complete, and test with MPI_Win_test"});
    const std::uint64_t locking = window.value(Sync::Win_lock, kWaiting) + window.operations_waiting();
    const std::uint64_t locks = window.value(Sync::Win_lock, kCallsMade) + window.value(Sync::Win_lock_all, kCallsMade);
    const std::uint64_t contended = window.value(Other::LockContended);
    if (const double part = share(locking, life); part > 0.2 && contended >= kFew && locks > 0)
        findings.push_back({window.title(),
                            percent(part) + " of its time waiting for locks, " + count(contended) + " of them taken",
                            "hold locks for less long, ask for MPI_LOCK_SHARED, or update with MPI_Accumulate and "
                            "MPI_Fetch_and_op in a lock_all epoch, which need no lock of the window"});
}

void served_by_host(const WindowReport& window, Findings& findings) {
    if (const std::uint64_t host = window.of_path(DataPath::Host); host > 0)
        findings.push_back({window.title(), count(host) + " operations went to the host MPI",
                            "the line 'the host MPI serves this window, because ...' on stderr has the reason"});
}

void few_windows(const Report& report, Findings& findings) {
    const auto single = std::count_if(report.windows.begin(), report.windows.end(), [](const WindowReport& window) {
        return window.id != kHostServed && window.id != kFurther;
    });
    if (static_cast<std::uint64_t>(single) < kFew) return;
    findings.push_back({"the job", count(static_cast<std::uint64_t>(single)) + " windows or more were created",
                        "a creation is collective: keep windows, or attach memory to a dynamic one"});
}

}  // namespace

std::vector<Finding> advise(const Report& report) {
    Findings findings;
    for (const WindowReport& window : report.windows) {
        unshared_memory(window, findings);
        one_operation_per_lock(window, findings);
        one_operation_per_round_trip(window, findings);
        waits(window, findings);
        served_by_host(window, findings);
    }
    few_windows(report, findings);
    return findings;
}

}  // namespace osc::stats
