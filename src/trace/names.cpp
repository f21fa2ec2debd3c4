// The tables of names come from the tables of entry points and paths.
#include "trace/names.h"

#include <iterator>

#include "base/assert.h"
#include "shm/activity.h"
#include "stats/counters.h"

namespace osc::trace {
namespace {

using shm::WaitKind;

constexpr CallName kCalls[] = {
    {"", CallClass::Query},
#define OSC_ENTRY(kind, name, parameters, arguments) {"MPI_" #name, CallClass::kind},
#include "api/entries.def"
#define OSC_NOTIFY_ENTRY(kind, name) {"OSC_" #name, CallClass::kind},
#include "api/notify.def"
};
static_assert(std::size(kCalls) == static_cast<std::size_t>(Call::Count));

constexpr const char* kPaths[] = {
#define OSC_STATS_PATH(id, name) name,
#include "stats/names.def"
};

}  // namespace

const CallName& name_of_call(std::uint8_t kind) {
    OSC_ASSERT(kind < static_cast<std::uint8_t>(Call::Count));
    return kCalls[kind];
}

const char* name_of_path(std::uint8_t detail) {
    return detail < std::size(kPaths) ? kPaths[detail] : nullptr;
}

const char* category_of(CallClass kind) {
    switch (kind) {
        case CallClass::Data:
            return "operation";
        case CallClass::Sync:
            return "synchronisation";
        default:
            return "window";
    }
}

std::string name_of_wait(const Event& wait) {
    const auto target = [&](const char* text) { return text + std::to_string(wait.number); };
    switch (static_cast<WaitKind>(wait.detail)) {
        case WaitKind::Lock:
            return target("wait for the lock of ");
        case WaitKind::Post:
            return target("wait for the post of ");
        case WaitKind::Completes:
            return "wait for completes";
        case WaitKind::Barrier:
            return "wait for the others";
        case WaitKind::TargetFence:
            return target("wait for the fence of ");
        case WaitKind::Closes:
            return "wait for closes";
        case WaitKind::Operations:
            return wait.number == shm::kEveryTarget ? "wait for operations" : target("wait for operations at ");
        case WaitKind::Notification:
            return target("wait for notification counter ");
        default:
            return "wait";
    }
}

}  // namespace osc::trace
