// The names of what the statistics tell apart, from the one table.
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

}  // namespace osc::stats
