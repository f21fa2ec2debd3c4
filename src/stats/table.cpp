// The report as a table on stderr, for persons.
#include <cstdarg>
#include <cstdio>

#include "base/log.h"
#include "stats/report.h"

namespace osc::stats {
namespace {

class Lines {
  public:
    void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        char line[1024];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        text_.append("libosc: ").append(line).append("\n");
    }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

std::string amount(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    auto value = static_cast<double>(bytes);
    for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
        value /= 1024;
    return base::format("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

// A number of nanoseconds in a column of milliseconds; "-" if no call was timed.
std::string milliseconds(std::uint64_t nanoseconds, std::uint64_t timed) {
    return timed != 0 ? base::format("%.3f", static_cast<double>(nanoseconds) / 1e6) : "-";
}

unsigned long long wide(std::uint64_t value) {
    return value;
}

std::string sizes(const WindowReport& window, Kind kind, DataPath path) {
    std::string text;
    for (std::size_t size = 0; size < kSizes; ++size) {
        const std::uint64_t count = window.value(index_of(kind, path, size));
        if (count == 0) continue;
        if (!text.empty()) text += ", ";
        text += std::to_string(count);
        text += size + 1 < kSizes ? " to " + amount(largest_of(size)) : " larger";
    }
    return text;
}

void add_window(Lines& lines, const WindowReport& window) {
    const bool is_one = window.id != kHostServed && window.id != kFurther;
    const std::string how = window.name.empty() || !is_one ? "" : ", " + window.made_by;
    const std::string size = is_one ? std::string(", ").append(std::to_string(window.processes)) + " processes" : "";
    lines.add("%s%s%s: %llu operations, %s", window.title().c_str(), how.c_str(), size.c_str(),
              wide(window.operations()), amount(window.bytes()).c_str());
    const auto row = [&lines](const std::string& call, const std::string& count, const std::string& path,
                              const std::string& kib, const std::string& time, const std::string& wait,
                              const std::string& sizes) {
        lines.add("    %-22s %12s  %-10s %12s %12s %12s%s%s", call.c_str(), count.c_str(), path.c_str(), kib.c_str(),
                  time.c_str(), wait.c_str(), sizes.empty() ? "" : "  ", sizes.c_str());
    };
    row("call", "count", "path", "KiB", "time/ms", "wait/ms", "sizes");
    for (const Kind kind : kAll<Kind>)
        for (const DataPath path : kAll<DataPath>) {
            if (window.of(kind, path) == 0) continue;
            const std::string kib = base::format("%.1f", static_cast<double>(window.of(kind, path, kBytes)) / 1024);
            const std::uint64_t timed = window.of(kind, path, kTimedOperations);
            row(name_of(kind), std::to_string(window.of(kind, path)), name_of(path), kib,
                milliseconds(window.of(kind, path, kOperationNs), timed),
                milliseconds(window.of(kind, path, kOperationWaiting), timed), sizes(window, kind, path));
        }
    for (const Sync sync : kAll<Sync>) {
        const std::uint64_t calls = window.value(sync, kCallsMade);
        const std::uint64_t timed = window.value(sync, kTimedCalls);
        if (calls == 0) continue;
        row(name_of(sync), std::to_string(calls), "", "", milliseconds(window.value(sync, kNanoseconds), timed),
            milliseconds(window.value(sync, kWaiting), timed), "");
    }
    if (const std::uint64_t contended = window.value(Other::LockContended); contended != 0)
        lines.add("    locks: %llu found taken, %llu handed over", wide(contended),
                  wide(window.value(Other::LockHandOvers)));
    for (const Member& member : window.members)
        if (const std::uint64_t last = member.value(index_of(Other::FenceLast)); last != 0 && window.processes > 1)
            lines.add("    rank %u came last to %llu fences", member.rank, wide(last));
    if (!window.fence.empty())
        lines.add("    strategies: fences %s; start and complete %s; locks %s", window.fence.c_str(),
                  window.pscw.c_str(), window.lock.c_str());
}

}  // namespace

std::string table_of(const Report& report, std::span<const Finding> findings, std::span<const char* const> names) {
    Lines lines;
    lines.add("statistics (OSC_STATS) of %u processes: sums over them. -: no call was timed", report.processes);
    if (report.reporting < report.processes)
        lines.add("a process died: these are the statistics of %u of them", report.reporting);
    for (const WindowReport& window : report.windows)
        add_window(lines, window);
    std::string counters;
    for (std::size_t i = 0; i < names.size() && i < report.totals.size(); ++i)
        if (report.totals[i] != 0)
            counters.append(" ").append(names[i]).append("=") += std::to_string(report.totals[i]);
    if (!counters.empty()) lines.add("at the end (osc_info --counters):%s", counters.c_str());
    for (const Finding& finding : findings) {
        lines.add("advice: %s: %s", finding.window.c_str(), finding.text.c_str());
        lines.add("        %s", finding.remedy.c_str());
    }
    return lines.take();
}

}  // namespace osc::stats
