// The makers that strategies.def names.
#pragma once

#include <memory>

#include "core/strategies/strategy.h"

namespace osc::strategy {

#define OSC_STRATEGY_FENCE(name, maker, help) std::unique_ptr<FenceStrategy> maker();
#define OSC_STRATEGY_PSCW(name, maker, help) std::unique_ptr<PscwStrategy> maker();
#define OSC_STRATEGY_LOCK(name, maker, help) std::unique_ptr<LockStrategy> maker();
#include "core/strategies/strategies.def"

}  // namespace osc::strategy
