// Encodes the records of a process and adds up those of a job.
#include "stats/report.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

namespace osc::stats {

using nlohmann::json;
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Waited, what, peer, ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Member, rank, values, waits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WindowReport, id, processes, name, made_by, fence, pscw, lock, members)

namespace {

// The peers for which a process has waited longest: the report of many processes stays small.
constexpr std::size_t kPeersReported = 16;

template <class Each>
std::uint64_t sum_of(const WindowReport& window, Each&& each) {
    std::uint64_t sum = 0;
    for (const Member& member : window.members)
        sum += each(member);
    return sum;
}

}  // namespace

std::vector<Waited> WaitTable::longest(std::size_t most) const {
    std::vector<Waited> all;
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(all),
                 [](const Waited& entry) { return entry.ns != 0; });
    std::stable_sort(all.begin(), all.end(), [](const Waited& a, const Waited& b) { return a.ns > b.ns; });
    auto further = further_;
    for (; all.size() > most; all.pop_back())
        further[static_cast<std::size_t>(all.back().what)] += all.back().ns;
    for (const Wait what : kAll<Wait>)
        if (const std::uint64_t ns = further[static_cast<std::size_t>(what)]; ns != 0)
            all.push_back({what, kFurtherPeers, ns});
    return all;
}

std::uint64_t Member::value(std::size_t index) const {
    const auto found = std::lower_bound(values.begin(), values.end(), index,
                                        [](const auto& entry, std::size_t wanted) { return entry.first < wanted; });
    return found != values.end() && found->first == index ? found->second : 0;
}

std::uint64_t Member::sum(std::size_t first, std::size_t last, std::size_t step, std::size_t field) const {
    std::uint64_t total = 0;
    for (const auto& [index, value] : values)
        if (index >= first && index < last && (index - first) % step == field) total += value;
    return total;
}

std::uint64_t WindowReport::value(std::size_t index) const {
    return sum_of(*this, [&](const Member& member) { return member.value(index); });
}

std::uint64_t WindowReport::operations() const {
    return sum_of(*this, [](const Member& member) { return member.operations(); });
}

std::uint64_t WindowReport::bytes() const {
    return sum_of(*this, [](const Member& member) { return member.bytes(); });
}

std::uint64_t WindowReport::of(Kind kind, DataPath path, OperationField field) const {
    const std::size_t first = index_of(kind, path, 0);
    return sum_of(*this, [&](const Member& member) {
        return member.sum(first, first + kSizes * kOperationFields, kOperationFields, field);
    });
}

std::uint64_t WindowReport::of_kind(Kind kind, OperationField field) const {
    std::uint64_t total = 0;
    for (const DataPath path : kAll<DataPath>)
        total += of(kind, path, field);
    return total;
}

std::uint64_t WindowReport::of_path(DataPath path, OperationField field) const {
    std::uint64_t total = 0;
    for (const Kind kind : kAll<Kind>)
        total += of(kind, path, field);
    return total;
}

std::uint64_t WindowReport::operations_waiting() const {
    return sum_of(*this, [](const Member& member) { return member.of_operations(kOperationWaiting); });
}

std::string WindowReport::title() const {
    if (!name.empty()) return "window '" + name + "'";
    if (id == kHostServed || id == kFurther) return made_by;
    return std::string("window ").append(std::to_string(number)) + " (" + made_by + ")";
}

// Padded: the host's counts are ints, and words are fewer than bytes.
std::vector<std::uint8_t> encode(std::span<const std::uint64_t> totals) {
    std::vector<WindowReport> windows;
    visit([&](const Record& record) {
        Member member;
        member.rank = record.rank;
        member.waits = record.waits.longest(kPeersReported);
        for (std::uint32_t i = 0; i < kValues; ++i)
            if (record.value(i) != 0) member.values.emplace_back(i, record.value(i));
        windows.push_back({record.id,
                           record.processes,
                           record.name,
                           record.made_by,
                           record.fence,
                           record.pscw,
                           record.lock,
                           {std::move(member)}});
    });
    std::vector<std::uint8_t> bytes =
        json::to_cbor({{"totals", std::vector(totals.begin(), totals.end())}, {"windows", windows}});
    bytes.resize((bytes.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t) * sizeof(std::uint64_t));
    return bytes;
}

void add(Report& report, std::uint32_t world_rank, std::span<const std::uint8_t> bytes) {
    const json got = json::from_cbor(bytes.begin(), bytes.end(), false, false);
    ++report.reporting;
    if (got.is_discarded()) return;
    const auto totals = got["totals"].get<std::vector<std::uint64_t>>();
    report.totals.resize(std::max(report.totals.size(), totals.size()));
    std::transform(totals.begin(), totals.end(), report.totals.begin(), report.totals.begin(), std::plus<>());
    for (WindowReport& here : got["windows"].get<std::vector<WindowReport>>()) {
        Member member = std::move(here.members.front());
        member.world_rank = world_rank;
        here.members.clear();
        const auto known = std::find_if(report.windows.begin(), report.windows.end(),
                                        [&](const WindowReport& window) { return window.id == here.id; });
        if (known == report.windows.end()) {
            here.members.push_back(std::move(member));
            report.windows.push_back(std::move(here));
            continue;
        }
        const bool is_lowest = std::all_of(known->members.begin(), known->members.end(),
                                           [&](const Member& other) { return member.rank < other.rank; });
        if (is_lowest) {
            here.members = std::move(known->members);
            *known = std::move(here);
        }
        known->members.push_back(std::move(member));
    }
}

void finish(Report& report) {
    const auto is_shared = [](const WindowReport& window) { return window.id == kFurther || window.id == kHostServed; };
    std::stable_partition(report.windows.begin(), report.windows.end(),
                          [&](const WindowReport& window) { return !is_shared(window); });
    std::size_t number = 0;
    for (WindowReport& window : report.windows) {
        window.number = ++number;
        if (!is_shared(window))
            std::sort(window.members.begin(), window.members.end(),
                      [](const Member& a, const Member& b) { return a.rank < b.rank; });
    }
}

}  // namespace osc::stats
