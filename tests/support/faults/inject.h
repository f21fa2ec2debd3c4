// What the faults in the copy of src use. The compiler includes this file before each source of osc_faulty.
// OSC_FAULT(name) is true if the environment chose that fault, OSC_FAULT_ANY if it chose one.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

// Faults break invariants.
#undef OSC_ASSERTS
#define OSC_ASSERTS 0

namespace osc::faults {

enum class Name {
    None,
#define OSC_FAULT_ENTRY(name) name,
#include "faults.def"
#undef OSC_FAULT_ENTRY
};

/// The fault of this process. Constant after the library was loaded.
extern Name g_chosen;

/// A copy of data for an action that comes later.
std::vector<std::byte> bytes(const void* data, std::size_t count);
/// Keeps an action for later; `overtaken`: the next action runs first, and then this one. One thread at a time.
void postpone(std::function<void()> action, bool overtaken = false);
/// Keeps a put, with its data.
void postpone_put(void* target, const void* origin, std::size_t count);
/// At the synchronisation call `function`: runs the actions that its fault has delayed until now.
void synchronise(const char* function);

}  // namespace osc::faults

#define OSC_FAULT(name) (::osc::faults::g_chosen == ::osc::faults::Name::name)
#define OSC_FAULT_ANY (::osc::faults::g_chosen != ::osc::faults::Name::None)
