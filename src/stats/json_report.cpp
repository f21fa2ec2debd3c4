// The report as JSON, for programs. Groups without operations or calls are left out.
#include <nlohmann/json.hpp>

#include "stats/report.h"

namespace osc::stats {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;  // of the format; it grows when the meaning of a key changes

double seconds(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

ordered_json sizes_of(const WindowReport& window, Kind kind, DataPath path) {
    ordered_json sizes = ordered_json::object();
    for (std::size_t size = 0; size < kSizes; ++size)
        if (const std::uint64_t count = window.value(index_of(kind, path, size)); count != 0)
            sizes[name_of_size(size)] = count;
    return sizes;
}

ordered_json paths_of(const WindowReport& window, Kind kind) {
    ordered_json paths = ordered_json::object();
    for (const DataPath path : kAll<DataPath>) {
        if (window.of(kind, path) == 0) continue;
        paths[name_of(path)] = {{"operations", window.of(kind, path)},
                                {"bytes", window.of(kind, path, kBytes)},
                                {"timed_operations", window.of(kind, path, kTimedOperations)},
                                {"seconds", seconds(window.of(kind, path, kOperationNs))},
                                {"waiting_seconds", seconds(window.of(kind, path, kOperationWaiting))},
                                {"sizes", sizes_of(window, kind, path)}};
    }
    return paths;
}

ordered_json kinds_of(const WindowReport& window) {
    ordered_json kinds = ordered_json::object();
    for (const Kind kind : kAll<Kind>) {
        if (window.of_kind(kind) == 0) continue;
        kinds[name_of(kind)] = {{"operations", window.of_kind(kind)},
                                {"bytes", window.of_kind(kind, kBytes)},
                                {"paths", paths_of(window, kind)}};
    }
    return kinds;
}

ordered_json paths_of(const WindowReport& window) {
    ordered_json paths = ordered_json::object();
    for (const DataPath path : kAll<DataPath>) {
        if (window.of_path(path) == 0) continue;
        paths[name_of(path)] = {{"operations", window.of_path(path)}, {"bytes", window.of_path(path, kBytes)}};
    }
    return paths;
}

ordered_json synchronisation_of(const WindowReport& window) {
    ordered_json calls = ordered_json::object();
    for (const Sync sync : kAll<Sync>) {
        if (window.value(sync, kCallsMade) == 0) continue;
        calls[name_of(sync)] = {{"calls", window.value(sync, kCallsMade)},
                                {"timed_calls", window.value(sync, kTimedCalls)},
                                {"seconds", seconds(window.value(sync, kNanoseconds))},
                                {"waiting_seconds", seconds(window.value(sync, kWaiting))}};
    }
    return calls;
}

// By what a wait was for, then by the rank in the window: "any" if it was for no single one, "others" for those whose
// waits were short.
ordered_json waits_of(const Member& member) {
    ordered_json waits = ordered_json::object();
    for (const Waited& waited : member.waits)
        waits[name_of(waited.what)][waited.peer == kNoPeer         ? "any"
                                    : waited.peer == kFurtherPeers ? "others"
                                                                   : std::to_string(waited.peer)] = seconds(waited.ns);
    return waits;
}

ordered_json ranks_of(const WindowReport& window) {
    ordered_json ranks = ordered_json::array();
    for (const Member& member : window.members)
        ranks.push_back(
            {{"rank", member.rank},
             {"world_rank", member.world_rank},
             {"operations", member.operations()},
             {"bytes", member.bytes()},
             {"lifetime_seconds", seconds(member.value(index_of(Other::Lifetime)))},
             {"operations_seconds", seconds(member.of_operations(kOperationNs))},
             {"operations_waiting_seconds", seconds(member.of_operations(kOperationWaiting))},
             {"synchronisation_seconds", seconds(member.sum(kFirstSync, kFirstOther, kSyncFields, kNanoseconds))},
             {"waiting_seconds", seconds(member.sum(kFirstSync, kFirstOther, kSyncFields, kWaiting))},
             {"fence_waiting_seconds", seconds(member.waiting(Sync::Win_fence))},
             {"fences_last", member.value(index_of(Other::FenceLast))},
             {"waits", waits_of(member)}});
    return ranks;
}

ordered_json json_of(const WindowReport& window) {
    return {{"name", window.name},
            {"title", window.title()},
            {"made_by", window.made_by},
            {"processes", window.processes},
            {"own_bytes", window.value(Other::OwnBytes)},
            {"strategies", {{"fence", window.fence}, {"pscw", window.pscw}, {"lock", window.lock}}},
            {"operations", window.operations()},
            {"bytes", window.bytes()},
            {"kinds", kinds_of(window)},
            {"paths", paths_of(window)},
            {"operations_waiting_seconds", seconds(window.operations_waiting())},
            {"synchronisation", synchronisation_of(window)},
            {"locks",
             {{"contended", window.value(Other::LockContended)}, {"handed_over", window.value(Other::LockHandOvers)}}},
            {"ranks", ranks_of(window)}};
}

}  // namespace

std::string json_of(const Report& report, std::span<const Finding> findings, std::span<const char* const> names) {
    ordered_json counters = ordered_json::object();
    for (std::size_t i = 0; i < names.size() && i < report.totals.size(); ++i)
        counters[names[i]] = report.totals[i];
    ordered_json windows = ordered_json::array();
    for (const WindowReport& window : report.windows)
        windows.push_back(json_of(window));
    ordered_json advice = ordered_json::array();
    for (const Finding& finding : findings)
        advice.push_back({{"window", finding.window}, {"finding", finding.text}, {"remedy", finding.remedy}});
    const ordered_json json = {{"version", kVersion},           {"processes", report.processes},
                               {"reporting", report.reporting}, {"counters", std::move(counters)},
                               {"windows", std::move(windows)}, {"advice", std::move(advice)}};
    // Bytes of a window's name that are not UTF-8 become U+FFFD.
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace osc::stats
