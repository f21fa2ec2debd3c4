// Encodes the records of a process and adds up those of a job.
#include "stats/report.h"

#include <algorithm>
#include <cstring>

namespace osc::stats {
namespace {

void put_text(std::vector<std::uint64_t>& words, const std::string& text) {
    words.push_back(text.size());
    for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + at, std::min(text.size() - at, sizeof word));
        words.push_back(word);
    }
}

// Reads what encode() wrote; 0 behind the end.
class Reader {
  public:
    explicit Reader(std::span<const std::uint64_t> words) : words_(words) {}
    std::uint64_t next() { return at_ < words_.size() ? words_[at_++] : 0; }
    std::string text() {
        std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(next(), left() * sizeof(std::uint64_t))),
                         '\0');
        for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
            const std::uint64_t word = next();
            std::memcpy(text.data() + at, &word, std::min(text.size() - at, sizeof word));
        }
        return text;
    }
    /// The length of a list.
    std::size_t length() { return static_cast<std::size_t>(std::min<std::uint64_t>(next(), left())); }

  private:
    std::size_t left() const { return words_.size() - at_; }
    std::span<const std::uint64_t> words_;
    std::size_t at_ = 0;
};

void encode(std::vector<std::uint64_t>& words, const Record& record) {
    words.insert(words.end(), {record.id, record.rank, record.processes});
    for (const std::string* text : {&record.name, &record.made_by, &record.fence, &record.pscw, &record.lock})
        put_text(words, *text);
    const std::size_t length = words.size();
    words.push_back(0);
    for (std::size_t i = 0; i < kValues; ++i) {
        if (record.value(i) == 0) continue;
        words.insert(words.end(), {i, record.value(i)});
        ++words[length];
    }
}

template <class Each>
std::uint64_t sum_of(const WindowReport& window, Each&& each) {
    std::uint64_t sum = 0;
    for (const Member& member : window.members)
        sum += each(member);
    return sum;
}

}  // namespace

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
    return sum_of(
        *this, [](const Member& member) { return member.sum(kFirstTime, kFirstSync, kTimeFields, kOperationWaiting); });
}

std::string WindowReport::title() const {
    if (!name.empty()) return "window '" + name + "'";
    if (id == kHostServed || id == kFurther) return made_by;
    return std::string("window ").append(std::to_string(number)) + " (" + made_by + ")";
}

std::vector<std::uint64_t> encode(std::span<const std::uint64_t> totals) {
    std::vector<std::uint64_t> words{totals.size()};
    words.insert(words.end(), totals.begin(), totals.end());
    const std::size_t records = words.size();
    words.push_back(0);
    visit([&](const Record& record) {
        encode(words, record);
        ++words[records];
    });
    return words;
}

void add(Report& report, std::uint32_t world_rank, std::span<const std::uint64_t> words) {
    Reader reader(words);
    ++report.reporting;
    const std::size_t totals = reader.length();
    report.totals.resize(std::max(report.totals.size(), totals));
    for (std::size_t i = 0; i < totals; ++i)
        report.totals[i] += reader.next();
    for (std::size_t records = reader.length(); records > 0; --records) {
        const std::uint64_t id = reader.next();
        Member member{static_cast<std::uint32_t>(reader.next()), world_rank, {}};
        WindowReport here;
        here.id = id;
        here.processes = static_cast<std::uint32_t>(reader.next());
        for (std::string* text : {&here.name, &here.made_by, &here.fence, &here.pscw, &here.lock})
            *text = reader.text();
        for (std::size_t values = reader.length(); values > 0; --values) {
            const auto index = static_cast<std::uint32_t>(reader.next());
            member.values.emplace_back(index, reader.next());
        }
        const auto known = std::find_if(report.windows.begin(), report.windows.end(),
                                        [&](const WindowReport& window) { return window.id == id; });
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
