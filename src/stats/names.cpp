// The names of what the statistics tell apart, from the one table.
// Build: osc_core_cold
#include "stats/report.h"

namespace osc::stats {
namespace {

constexpr const char* kKindNames[] = {
#define OSC_STATS_KIND(id, name) name,
#include "stats/names.def"
};
constexpr const char* kPathNames[] = {
#define OSC_STATS_PATH(id, name) name,
#include "stats/names.def"
};
constexpr const char* kSyncNames[] = {
#define OSC_STATS_SYNC(id, name) name,
#include "stats/names.def"
};
constexpr const char* kWaitNames[] = {
#define OSC_STATS_WAIT(id, name) name,
#include "stats/names.def"
};

}  // namespace

const char* name_of(Kind kind) {
    return kKindNames[static_cast<std::size_t>(kind)];
}
const char* name_of(DataPath path) {
    return kPathNames[static_cast<std::size_t>(path)];
}
const char* name_of(Sync sync) {
    return kSyncNames[static_cast<std::size_t>(sync)];
}
const char* name_of(Wait wait) {
    return kWaitNames[static_cast<std::size_t>(wait)];
}
std::string name_of_size(std::size_t size) {
    return size + 1 < kSizes ? std::string("to_").append(std::to_string(largest_of(size))) : "more";
}

}  // namespace osc::stats
