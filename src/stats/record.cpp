// Owns the records of this process.
// Build: osc_core_cold
#include "stats/record.h"

#include <deque>
#include <mutex>

#include "base/wait_time.h"

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

bool is_shared(const Record& record) {
    return record.id == kHostServed || record.id == kFurther;
}

bool has_counted(const Record& record) {
    for (std::size_t i = 0; i < kValues; ++i)
        if (record.value(i) != 0) return true;
    return false;
}

}  // namespace

void turn_on() {
    detail::g_on = true;
    base::time_waits();
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
