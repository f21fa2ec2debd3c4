// The report as JSON, for programs. Groups without operations or calls are left out.
#include "stats/json.h"
#include "stats/report.h"

namespace osc::stats {
namespace {

constexpr int kVersion = 1;  // of the format; it grows when the meaning of a key changes

std::string size_name(std::size_t size) {
    return size + 1 < kSizes ? std::string("to_").append(std::to_string(largest_of(size))) : "more";
}

void write_sizes(Json& json, const WindowReport& window, Kind kind, DataPath path) {
    json.key("sizes").begin_object();
    for (std::size_t size = 0; size < kSizes; ++size)
        if (const std::uint64_t count = window.value(index_of(kind, path, size)); count != 0)
            json.key(size_name(size)).value(count);
    json.end_object();
}

void write_operations(Json& json, const WindowReport& window) {
    json.key("operations").value(window.operations());
    json.key("bytes").value(window.bytes());
    json.key("kinds").begin_object();
    for (std::size_t k = 0; k < kKinds; ++k) {
        const auto kind = static_cast<Kind>(k);
        if (window.of_kind(kind) == 0) continue;
        json.key(name_of(kind)).begin_object();
        json.key("operations").value(window.of_kind(kind));
        json.key("bytes").value(window.of_kind(kind, kBytes));
        json.key("paths").begin_object();
        for (std::size_t p = 0; p < kPaths; ++p) {
            const auto path = static_cast<DataPath>(p);
            if (window.of(kind, path) == 0) continue;
            json.key(name_of(path)).begin_object();
            json.key("operations").value(window.of(kind, path));
            json.key("bytes").value(window.of(kind, path, kBytes));
            json.key("timed_operations").value(window.of(kind, path, kTimedOperations));
            json.key("seconds").seconds(window.of(kind, path, kOperationNs));
            json.key("waiting_seconds").seconds(window.of(kind, path, kOperationWaiting));
            write_sizes(json, window, kind, path);
            json.end_object();
        }
        json.end_object().end_object();
    }
    json.end_object();
    json.key("paths").begin_object();
    for (std::size_t p = 0; p < kPaths; ++p) {
        const auto path = static_cast<DataPath>(p);
        if (window.of_path(path) == 0) continue;
        json.key(name_of(path)).begin_object();
        json.key("operations").value(window.of_path(path));
        json.key("bytes").value(window.of_path(path, kBytes));
        json.end_object();
    }
    json.end_object();
    json.key("operations_waiting_seconds").seconds(window.operations_waiting());
}

void write_synchronisation(Json& json, const WindowReport& window) {
    json.key("synchronisation").begin_object();
    for (std::size_t s = 0; s < kSyncs; ++s) {
        const auto sync = static_cast<Sync>(s);
        if (window.value(sync, kCallsMade) == 0) continue;
        json.key(name_of(sync)).begin_object();
        json.key("calls").value(window.value(sync, kCallsMade));
        json.key("timed_calls").value(window.value(sync, kTimedCalls));
        json.key("seconds").seconds(window.value(sync, kNanoseconds));
        json.key("waiting_seconds").seconds(window.value(sync, kWaiting));
        json.end_object();
    }
    json.end_object();
    json.key("locks").begin_object();
    json.key("contended").value(window.value(Other::LockContended));
    json.key("handed_over").value(window.value(Other::LockHandOvers));
    json.end_object();
}

void write_ranks(Json& json, const WindowReport& window) {
    json.key("ranks").begin_array();
    for (const Member& member : window.members) {
        json.begin_object();
        json.key("rank").value(std::uint64_t{member.rank});
        json.key("world_rank").value(std::uint64_t{member.world_rank});
        json.key("operations").value(member.operations());
        json.key("bytes").value(member.bytes());
        json.key("lifetime_seconds").seconds(member.value(index_of(Other::Lifetime)));
        json.key("synchronisation_seconds").seconds(member.sum(kFirstSync, kFirstOther, kSyncFields, kNanoseconds));
        json.key("waiting_seconds").seconds(member.sum(kFirstSync, kFirstOther, kSyncFields, kWaiting));
        json.key("fence_waiting_seconds").seconds(member.waiting(Sync::Win_fence));
        json.key("fences_last").value(member.value(index_of(Other::FenceLast)));
        json.end_object();
    }
    json.end_array();
}

void write_window(Json& json, const WindowReport& window) {
    json.begin_object();
    json.key("name").value(window.name);
    json.key("title").value(window.title());
    json.key("made_by").value(window.made_by);
    json.key("processes").value(std::uint64_t{window.processes});
    json.key("own_bytes").value(window.value(Other::OwnBytes));
    json.key("strategies").begin_object();
    json.key("fence").value(window.fence);
    json.key("pscw").value(window.pscw);
    json.key("lock").value(window.lock);
    json.end_object();
    write_operations(json, window);
    write_synchronisation(json, window);
    write_ranks(json, window);
    json.end_object();
}

}  // namespace

std::string json_of(const Report& report, std::span<const Finding> findings, std::span<const char* const> names) {
    Json json;
    json.begin_object();
    json.key("version").value(std::uint64_t{kVersion});
    json.key("processes").value(std::uint64_t{report.processes});
    json.key("reporting").value(std::uint64_t{report.reporting});
    json.key("counters").begin_object();
    for (std::size_t i = 0; i < names.size() && i < report.totals.size(); ++i)
        json.key(names[i]).value(report.totals[i]);
    json.end_object();
    json.key("windows").begin_array();
    for (const WindowReport& window : report.windows)
        write_window(json, window);
    json.end_array();
    json.key("advice").begin_array();
    for (const Finding& finding : findings) {
        json.begin_object();
        json.key("window").value(finding.window);
        json.key("finding").value(finding.text);
        json.key("remedy").value(finding.remedy);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    return json.text() + '\n';
}

}  // namespace osc::stats
