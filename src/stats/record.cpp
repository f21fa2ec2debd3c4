// Owns the records of this process.
// Build: osc_core_cold
#include "stats/record.h"

#include <algorithm>
#include <deque>
#include <mutex>

namespace osc::stats {
namespace {

struct Registry {
    std::mutex mutex;
    std::deque<Record> records;  // addresses stay
    Record* further = nullptr;
    Record* host = nullptr;
};

Registry& registry() {
    static Registry& instance = *new Registry;  // never destroyed: MPI may be finalized at exit
    return instance;
}

// Under the lock.
Record& add(Registry& all, std::uint64_t id, const char* made_by, bool threaded) {
    Record& record = all.records.emplace_back(threaded);
    record.id = id;
    record.created = now_ns();
    record.made_by = made_by;
    return record;
}

[[gnu::tls_model("initial-exec")]] constinit thread_local Record* t_found = nullptr;  // by this thread's last find()

// Under the lock; null if no window of this number counts.
Record* find(Registry& all, std::uint64_t id) {
    if (t_found != nullptr && t_found->id == id) return t_found;
    const auto found =
        std::find_if(all.records.begin(), all.records.end(), [&](const Record& record) { return record.id == id; });
    return found != all.records.end() ? t_found = &*found : all.further;
}

bool is_shared(const Record& record) {
    return record.id == kHostServed || record.id == kFurther;
}

bool has_counted(const Record& record) {
    for (std::size_t i = 0; i < kValues; ++i)
        if (record.value(i) != 0) return true;
    return false;
}

}  // namespace

void WaitTable::add(Wait what, std::uint32_t peer, std::uint64_t ns) {
    if (ns == 0) return;
    const std::size_t first = peer * std::size_t{7} + static_cast<std::size_t>(what);
    for (std::size_t i = 0; i < kPeers; ++i) {
        Waited& entry = entries_[(first + i) % kPeers];
        if (entry.ns != 0 && (entry.what != what || entry.peer != peer)) continue;
        entry = {what, peer, entry.ns + ns};
        return;
    }
    further_[static_cast<std::size_t>(what)] += ns;
}

void turn_on() {
    detail::g_on = true;
}

Record& open(std::uint64_t id, std::uint32_t rank, const char* made_by, bool threaded) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (all.records.size() >= kMostRecords) {
        if (all.further == nullptr) all.further = &add(all, kFurther, "further windows", true);
        return *all.further;
    }
    Record& record = add(all, id, made_by, threaded);
    record.rank = rank;
    return record;
}

Record& host_served() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (all.host == nullptr) all.host = &add(all, kHostServed, "windows that the host MPI serves", true);
    return *all.host;
}

void add_wait(std::uint64_t id, Wait what, std::uint32_t peer, std::int64_t ns) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (Record* const record = find(all, id); record != nullptr)
        record->waits.add(what, is_shared(*record) ? kNoPeer : peer, static_cast<std::uint64_t>(ns));
}

void describe(Record& record, base::FunctionRef<void(Record&)> change) {
    const std::lock_guard lock(registry().mutex);
    if (is_shared(record)) return;
    record.set(Other::Lifetime, static_cast<std::uint64_t>(now_ns() - record.created));
    change(record);
}

void visit(base::FunctionRef<void(const Record&)> visit) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    for (const Record& record : all.records)
        if (is_shared(record) ? has_counted(record) : record.processes != 0) visit(record);
}

}  // namespace osc::stats
