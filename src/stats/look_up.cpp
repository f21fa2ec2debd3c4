// Statistics by name, for osc_window_stat(): KIND, PATH and to_SIZE in this order, each of which may be left out, then
// operations or bytes, or without to_SIZE timed_operations, ns or waiting_ns; or SYNC.calls, SYNC.timed_calls, SYNC.ns,
// SYNC.waiting_ns; or one of kOthers.
// Build: osc_core_cold
#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/options.h"
#include "stats/report.h"

namespace osc::stats {
namespace {

struct Named {
    std::string_view name;
    Other what;
};
constexpr Named kOthers[] = {
    {"locks.contended", Other::LockContended},
    {"locks.handed_over", Other::LockHandOvers},
    {"fences_last", Other::FenceLast},
    {"own_bytes", Other::OwnBytes},
};
constexpr std::string_view kFields[] = {"calls", "timed_calls", "ns", "waiting_ns"};
static_assert(std::size(kFields) == kSyncFields);
constexpr std::string_view kTimes[] = {"timed_operations", "ns", "waiting_ns"};
static_assert(std::size(kTimes) == kTimeFields);

// The index of the first word of `rest` among `count` names, taken off it; -1 if it is none of them.
template <class Name>
int take(std::string_view& rest, std::size_t count, Name&& name) {
    std::string_view after = rest;
    const std::string_view word = base::next_word(after, '.');
    for (std::size_t i = 0; i < count; ++i) {
        if (word != name(i)) continue;
        rest = after;
        return static_cast<int>(i);
    }
    return -1;
}

template <class Enum>
int take(std::string_view& rest) {
    return take(rest, static_cast<std::size_t>(Enum::Count),
                [](std::size_t i) { return name_of(static_cast<Enum>(i)); });
}

bool fits(int wanted, std::size_t index) {
    return wanted < 0 || static_cast<std::size_t>(wanted) == index;
}

}  // namespace

bool look_up(const Counters& counters, const char* name, std::uint64_t& value) {
    std::string_view rest = name;
    for (const Named& other : kOthers)
        if (rest == other.name) {
            value = counters.value(index_of(other.what));
            return true;
        }
    if (const int sync = take<Sync>(rest); sync >= 0) {
        for (std::size_t field = 0; field < kSyncFields; ++field)
            if (rest == kFields[field]) {
                value = counters.value(index_of(static_cast<Sync>(sync), static_cast<SyncField>(field)));
                return true;
            }
        return false;
    }
    const int kind = take<Kind>(rest);
    const int path = take<DataPath>(rest);
    const int size = take(rest, kSizes, name_of_size);
    const auto* const time = std::find(std::begin(kTimes), std::end(kTimes), rest);
    const bool is_time = time != std::end(kTimes) && size < 0;
    if (rest != "operations" && rest != "bytes" && !is_time) return false;
    const OperationField field = rest == "bytes" ? kBytes : kOperations;
    value = 0;
    for (const Kind of : kAll<Kind>)
        for (const DataPath by : kAll<DataPath>) {
            if (!fits(kind, static_cast<std::size_t>(of)) || !fits(path, static_cast<std::size_t>(by))) continue;
            if (is_time) {
                value += counters.value(index_of(of, by, static_cast<TimeField>(time - std::begin(kTimes))));
                continue;
            }
            for (std::size_t s = 0; s < kSizes; ++s)
                if (fits(size, s)) value += counters.value(index_of(of, by, s, field));
        }
    return true;
}

}  // namespace osc::stats
