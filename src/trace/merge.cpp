// Three passes: which files belong to the job, the ends of all messages (they align the clocks), and the events.
#include "trace/merge.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string_view>

#include "base/log.h"
#include "shm/activity.h"
#include "stats/report.h"
#include "trace/align.h"
#include "trace/epochs.h"
#include "trace/output.h"
#include "trace/reader.h"

namespace osc::trace {
namespace {

constexpr std::uint64_t kEpochThread = 1;  // the number of a thread, which the format demands

// The calls by their numbers, with the category of their slices.
struct CallName {
    const char* name;
    std::string_view category;
};
constexpr std::string_view kOperation = "operation";
constexpr std::string_view kSynchronisation = "synchronisation";
#define OSC_CATEGORY_Data kOperation
#define OSC_CATEGORY_Sync kSynchronisation
#define OSC_CATEGORY_Window "window"
#define OSC_CATEGORY_Query "window"
#define OSC_CATEGORY_Comm "window"
constexpr CallName kCalls[] = {
    {"", ""},
#define OSC_ENTRY(kind, name, parameters, arguments) {"MPI_" #name, OSC_CATEGORY_##kind},
#include "api/entries.def"
#define OSC_NOTIFY_ENTRY(kind, name) {"OSC_" #name, OSC_CATEGORY_##kind},
#include "api/notify.def"
};
static_assert(std::size(kCalls) == static_cast<std::size_t>(Call::Count));

// By shm::WaitKind: what a record of Kind::Wait waited for. A text that ends with a space goes on with the number.
constexpr std::string_view kWaits[] = {"wait",
                                       "wait",
                                       "wait for the lock of ",
                                       "wait for the post of ",
                                       "wait for completes",
                                       "wait for the others",
                                       "wait for the fence of ",
                                       "wait for closes",
                                       "wait for operations at ",
                                       "wait for notification counter "};

std::string name_of_wait(const Event& wait) {
    if (static_cast<shm::WaitKind>(wait.detail) == shm::WaitKind::Operations && wait.number == shm::kEveryTarget)
        return "wait for operations";
    std::string name(kWaits[wait.detail < std::size(kWaits) ? wait.detail : 0]);
    return name.back() == ' ' ? name + std::to_string(wait.number) : name;
}

// In us, as the format has times.
double us(std::int64_t ns) {
    return static_cast<double>(ns) / 1000;
}

// A clock, and the processes' files that share it.
struct Clock {
    ClockPair first, last;  // of all its processes
    std::string host;
    Correction correction;

    std::int64_t ns(std::uint64_t stamp) const {
        const auto ticks = static_cast<double>(static_cast<std::int64_t>(stamp - first.stamp));
        const auto all = static_cast<double>(last.stamp - first.stamp);
        return first.ns + std::llround(all > 0 ? ticks * static_cast<double>(last.ns - first.ns) / all : ticks);
    }
    std::int64_t aligned(std::uint64_t stamp) const { return correction.apply(ns(stamp)); }
};

// One end of a message.
struct End {
    std::uint64_t flow;
    std::uint64_t stamp;
    std::size_t clock;
    bool shown;
    bool operator<(const End& other) const { return flow < other.flow; }
};

class Merge {
  public:
    explicit Merge(const std::string& path) : path_(path) {}
    bool run(Merged& merged, std::string& why);

  private:
    void open_files(Merged& merged);
    void name_windows();
    void find_clocks();
    void read_messages(Merged& merged);
    bool write(Merged& merged, std::string& why);
    void write_facts(Output& out, const Merged& merged) const;
    void write_process(Output& out, std::size_t number) const;
    void write_event(Output& out, std::size_t number, std::uint32_t thread, const Event& event) const;
    Json make_event(const char* phase, std::string_view name, std::string_view category, std::size_t number,
                    std::uint64_t thread, std::uint64_t stamp) const;
    void write_epochs(Output& out, std::size_t number, std::vector<Event>& calls, std::uint64_t end) const;
    std::string title_of(std::size_t number, std::uint16_t window) const;
    const Clock& clock_of(std::size_t number) const { return clocks_[clock_numbers_[number]]; }
    std::int64_t time(std::size_t number, std::uint64_t stamp) const { return clock_of(number).aligned(stamp) - zero_; }

    const std::string path_;
    std::vector<std::unique_ptr<File>> files_;
    std::map<std::uint64_t, std::string> titles_;  // of windows, by their ids
    std::vector<Clock> clocks_;
    std::vector<std::size_t> clock_numbers_;  // by file
    std::vector<std::uint64_t> arrows_;       // flows with both ends, ascending
    std::int64_t zero_ = 0;                   // the first record's time
};

// Of the files that lie there, the newest one says how many processes the job has.
void Merge::open_files(Merged& merged) {
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    for (const std::uint32_t rank : ranks_beside(path_)) {
        std::string why;
        auto file = File::open(file_of(path_, rank), why);
        if (file != nullptr && file->rank() != rank) {
            why = "it is of rank " + std::to_string(file->rank());
            file.reset();
        }
        if (file == nullptr) {
            merged.left_out.push_back(file_of(path_, rank) + ": " + why);
            continue;
        }
        if (file->started() >= newest) {
            newest = file->started();
            merged.processes = file->processes();
        }
        files_.push_back(std::move(file));
    }
    std::erase_if(files_, [&](const auto& file) {
        if (file->processes() == merged.processes && file->rank() < merged.processes) return false;
        merged.left_out.push_back(file_of(path_, file->rank()) + ": it is of another run");
        return true;
    });
    merged.found = static_cast<std::uint32_t>(files_.size());
}

// A window has the name that any process gave it, or a number.
void Merge::name_windows() {
    std::map<std::uint64_t, std::string> made_by;
    std::vector<std::uint64_t> order;
    for (const auto& file : files_)
        for (std::uint16_t number = 1; number <= kWindows; ++number) {
            const File::Window window = file->window(number);
            if (window.id == 0) break;
            if (made_by.try_emplace(window.id, window.made_by).second) order.push_back(window.id);
            if (!window.name.empty()) titles_[window.id] = window.name;
        }
    std::size_t count = 0;
    for (const std::uint64_t id : order) {
        ++count;
        titles_.try_emplace(id, "window " + std::to_string(count) + " (" + made_by[id] + ")");
    }
}

std::string Merge::title_of(std::size_t number, std::uint16_t window) const {
    const auto found = titles_.find(files_[number]->window(window).id);
    return found != titles_.end() ? found->second : "of the host MPI";
}

void Merge::find_clocks() {
    std::map<std::uint64_t, std::size_t> known;
    for (const auto& file : files_) {
        const auto [entry, fresh] = known.try_emplace(file->clock(), clocks_.size());
        if (fresh) clocks_.push_back({file->first_pair(), file->last_pair(), file->host(), {}});
        Clock& clock = clocks_[entry->second];
        if (file->first_pair().stamp < clock.first.stamp) clock.first = file->first_pair();
        if (file->last_pair().stamp > clock.last.stamp) clock.last = file->last_pair();
        clock_numbers_.push_back(entry->second);
    }
}

void Merge::read_messages(Merged& merged) {
    std::vector<End> sent, received;
    for (std::size_t number = 0; number < files_.size(); ++number) {
        merged.dropped += files_[number]->dropped();
        files_[number]->visit([&](std::uint32_t, const Event& event) {
            ++merged.records;
            const End end{event.value, event.begin, clock_numbers_[number], !event.is(Kind::ClockSend)};
            if (event.is(Kind::Send) || event.is(Kind::AskAgent) || event.is(Kind::ClockSend) || event.is(Kind::Notify))
                sent.push_back(end);
            if (event.is(Kind::Handle) || event.is(Kind::ServeAgent) || event.is(Kind::ClockReceive) ||
                event.is(Kind::Notified))
                received.push_back(end);
        });
    }
    std::sort(sent.begin(), sent.end());
    std::vector<Message> messages;
    for (const End& end : received) {
        const auto found = std::lower_bound(sent.begin(), sent.end(), end);
        if (end.flow == 0 || found == sent.end() || found->flow != end.flow) continue;
        if (found->shown) arrows_.push_back(end.flow);
        if (found->clock != end.clock)
            messages.push_back(
                {found->clock, end.clock, clocks_[found->clock].ns(found->stamp), clocks_[end.clock].ns(end.stamp)});
    }
    std::sort(arrows_.begin(), arrows_.end());
    merged.arrows = arrows_.size();
    const std::vector<Correction> corrections = align(clocks_.size(), std::move(messages));
    for (std::size_t clock = 0; clock < clocks_.size(); ++clock)
        clocks_[clock].correction = corrections[clock];
    zero_ = std::numeric_limits<std::int64_t>::max();
    for (std::size_t number = 0; number < files_.size(); ++number)
        files_[number]->visit(
            [&](std::uint32_t, const Event& event) { zero_ = std::min(zero_, clock_of(number).aligned(event.begin)); });
}

void Merge::write_facts(Output& out, const Merged& merged) const {
    Json clocks = Json::array();
    for (const Clock& clock : clocks_) {
        const Correction& by = clock.correction;
        clocks.push_back({{"host", clock.host},
                          {"aligned", clocks.empty() || by.known},
                          {"offset_ns", std::llround(by.offset)},
                          {"error_ns", std::llround(by.error)},
                          {"drift_ppb", std::llround(by.drift * 1e9)}});
    }
    const Json facts = {{"producer", "libosc"},      {"processes", merged.processes}, {"processes_found", merged.found},
                        {"records", merged.records}, {"dropped", merged.dropped},     {"arrows", merged.arrows},
                        {"clocks", clocks}};
    out.raw("{\"displayTimeUnit\":\"ns\",\n\"otherData\":").raw(text_of(facts)).raw(",\n\"traceEvents\":[");
}

Json Merge::make_event(const char* phase, std::string_view name, std::string_view category, std::size_t number,
                       std::uint64_t thread, std::uint64_t stamp) const {
    return {{"ph", phase},     {"name", name},
            {"cat", category}, {"pid", files_[number]->rank()},
            {"tid", thread},   {"ts", us(time(number, stamp))}};
}

void Merge::write_event(Output& out, std::size_t number, std::uint32_t thread, const Event& event) const {
    const auto slice = [&](std::string_view name, std::string_view category) {
        Json shown = make_event("X", name, category, number, thread, event.begin);
        shown["dur"] = us(time(number, event.end) - time(number, event.begin));
        return shown;
    };
    const auto arrow = [&](const char* phase) {
        if (!std::binary_search(arrows_.begin(), arrows_.end(), event.value)) return;
        Json shown = make_event(phase, "message", "message", number, thread, event.begin);
        shown["id"] = base::format("0x%llx", static_cast<unsigned long long>(event.value));
        if (*phase == 'f') shown["bp"] = "e";
        out.event(shown);
    };
    const auto message = [&] { return event.detail < std::size(kMessages) ? kMessages[event.detail] : kMessages[0]; };
    const auto with_bytes = [&](const std::string& name, const char* phase) {
        Json shown = slice(name, "message");
        shown["args"]["bytes"] = event.number;
        out.event(shown);
        arrow(phase);
    };
    if (event.is(Kind::Send)) return with_bytes(std::string("send ") + message(), "s");
    if (event.is(Kind::Handle)) return with_bytes(std::string("handle ") + message(), "f");
    if (event.is(Kind::AskAgent)) return with_bytes("ask the agent", "s");
    if (event.is(Kind::ServeAgent)) return with_bytes("serve", "f");
    const auto on_counter = [&](const char* text, const char* phase) {
        out.event(slice(text + std::to_string(event.number), "notification"));
        arrow(phase);
    };
    if (event.is(Kind::Notify)) return on_counter("notify counter ", "s");
    if (event.is(Kind::Notified)) return on_counter("notified on counter ", "f");
    if (event.is(Kind::Wait)) return out.event(slice(name_of_wait(event), "wait"));
    if (event.kind >= static_cast<std::uint8_t>(Call::Count)) return;
    const CallName& call = kCalls[event.kind];
    Json shown = slice(call.name, call.category);
    Json& args = shown["args"];
    args["window"] = title_of(number, event.window);
    const bool notified = is_notified(event.kind);
    const bool is_data = call.category == kOperation;
    if (event.number != kNoTarget) args[notified && !is_data ? "counter" : "target"] = event.number;
    if (notified && is_data) args["counter"] = event.value >> kCounterBit;
    const std::uint8_t detail = event.detail & ~kFailed;
    if (is_data) {
        args["bytes"] = notified ? event.value & ((std::uint64_t{1} << kCounterBit) - 1) : event.value;
        if (detail < stats::kPaths) args["path"] = name_of(static_cast<stats::DataPath>(detail));
    }
    if (event.is(Call::Win_lock)) args["lock"] = detail == kExclusive ? "exclusive" : "shared";
    if ((event.detail & kFailed) != 0) args["failed"] = 1;
    out.event(shown);
}

void Merge::write_epochs(Output& out, std::size_t number, std::vector<Event>& calls, std::uint64_t end) const {
    std::stable_sort(calls.begin(), calls.end(), [](const Event& a, const Event& b) { return a.end < b.end; });
    Epochs epochs;
    for (const Event& call : calls)
        epochs.add(call);
    for (const Epoch& epoch : epochs.finish(end)) {
        const std::string name = name_of(epoch);
        const std::string title = title_of(number, epoch.window);
        Json shown = make_event("b", name + ", " + title, "epoch", number, kEpochThread, epoch.begin);
        shown["id2"]["local"] = name + " " + std::to_string(epoch.window);
        Json after = shown;
        after["ph"] = "e";
        after["ts"] = us(time(number, epoch.end));
        shown["args"]["window"] = title;
        if (!epoch.closed) shown["args"]["unfinished"] = 1;
        out.event(shown);
        out.event(after);
    }
}

void Merge::write_process(Output& out, std::size_t number) const {
    const File& file = *files_[number];
    const std::uint64_t rank = file.rank();
    const auto fact = [&](const char* what, std::uint64_t thread, const char* key, auto value) {
        out.event({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{key, value}}}});
    };
    fact("process_name", 0, "name", "rank " + std::to_string(rank) + " on " + file.host());
    fact("process_sort_index", 0, "sort_index", rank);
    if (file.dropped() > 0)
        fact("process_labels", 0, "labels", std::to_string(file.dropped()) + " records dropped (OSC_DEBUG=trace_mib)");
    for (const File::Thread& thread : file.threads())
        fact("thread_name", thread.number, "name", thread.helper ? "libosc: " + thread.name : thread.name);
    std::vector<Event> calls;
    std::uint64_t end = 0;
    file.visit([&](std::uint32_t thread, const Event& event) {
        end = std::max(end, event.end);
        write_event(out, number, thread, event);
        if (event.kind >= static_cast<std::uint8_t>(Call::Count)) return;
        if (kCalls[event.kind].category == kSynchronisation || event.is(Call::Win_free)) calls.push_back(event);
    });
    write_epochs(out, number, calls, end);
}

bool Merge::write(Merged& merged, std::string& why) {
    Output out;
    bool written = out.open(path_);
    if (written) {
        write_facts(out, merged);
        for (std::size_t number = 0; number < files_.size(); ++number)
            write_process(out, number);
        out.raw("\n]}\n");
        written = out.close();
    }
    if (!written) why = std::strerror(errno);
    return written;
}

bool Merge::run(Merged& merged, std::string& why) {
    merged = {};
    open_files(merged);
    if (files_.empty()) {
        why = "there is no file " + file_of(path_, 0) + " or of another rank";
        return false;
    }
    name_windows();
    find_clocks();
    read_messages(merged);
    return write(merged, why);
}

}  // namespace

std::vector<std::uint32_t> ranks_beside(const std::string& path) {
    const std::filesystem::path whole(path);
    const std::string prefix = whole.filename().string() + ".rank-";
    std::error_code error;
    std::vector<std::uint32_t> ranks;
    const std::filesystem::path folder = whole.has_parent_path() ? whole.parent_path() : ".";
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (name.rfind(prefix, 0) != 0) continue;
        const std::string digits = name.substr(prefix.size());
        if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
            continue;
        ranks.push_back(static_cast<std::uint32_t>(std::stoul(digits)));
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

bool merge(const std::string& path, Merged& merged, std::string& why) {
    return Merge(path).run(merged, why);
}

}  // namespace osc::trace
