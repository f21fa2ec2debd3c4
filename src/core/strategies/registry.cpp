// Finds strategies by kind and name.
// Build: osc_core_cold
#include "core/strategies/registry.h"

#include <cstddef>
#include <cstring>

namespace osc::strategy {
namespace {

template <class Strategy>
using Maker = std::unique_ptr<Strategy> (*)();

#define OSC_STRATEGY_FENCE(name, maker, help) {name, help},
constexpr Entry kFences[] = {
#include "core/strategies/strategies.def"
};
#define OSC_STRATEGY_FENCE(name, maker, help) &maker,
constexpr Maker<FenceStrategy> kFenceMakers[] = {
#include "core/strategies/strategies.def"
};

#define OSC_STRATEGY_PSCW(name, maker, help) {name, help},
constexpr Entry kPscws[] = {
#include "core/strategies/strategies.def"
};
#define OSC_STRATEGY_PSCW(name, maker, help) &maker,
constexpr Maker<PscwStrategy> kPscwMakers[] = {
#include "core/strategies/strategies.def"
};

#define OSC_STRATEGY_LOCK(name, maker, help) {name, help},
constexpr Entry kLocks[] = {
#include "core/strategies/strategies.def"
};
#define OSC_STRATEGY_LOCK(name, maker, help) &maker,
constexpr Maker<LockStrategy> kLockMakers[] = {
#include "core/strategies/strategies.def"
};

}  // namespace

std::span<const Entry> entries(SyncKind kind) {
    switch (kind) {
        case SyncKind::Fence:
            return kFences;
        case SyncKind::Pscw:
            return kPscws;
        case SyncKind::Lock:
            break;
    }
    return kLocks;
}

int find(SyncKind kind, const char* name) {
    const std::span<const Entry> all = entries(kind);
    for (std::size_t i = 0; i < all.size(); ++i)
        if (std::strcmp(all[i].name, name) == 0) return static_cast<int>(i);
    return -1;
}

std::unique_ptr<FenceStrategy> make_fence(int number) {
    return kFenceMakers[number]();
}

std::unique_ptr<PscwStrategy> make_pscw(int number) {
    return kPscwMakers[number]();
}

std::unique_ptr<LockStrategy> make_lock(int number) {
    return kLockMakers[number]();
}

Strategies::Strategies() : fence(make_fence(0)), pscw(make_pscw(0)), lock(make_lock(0)) {}

}  // namespace osc::strategy
