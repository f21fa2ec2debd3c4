// Errors made on purpose, by which tests show that they would find them. In test builds OSC_FAULT(name) is true if the
// environment chose that fault, one of faults.def; in all other builds it is the constant false, and the other macros
// are empty.
#pragma once

#ifdef OSC_FAULTS

#include <cstddef>
#include <functional>

namespace osc::base {

enum class Injected {
    None,
#define OSC_FAULT_ENTRY(name, what) name,
#include "base/faults.def"
#undef OSC_FAULT_ENTRY
};

/// The fault of this process. Constant after the library was loaded.
extern Injected g_injected;

/// Keeps an action for later; `overtaken`: the next action runs first, and then this one. One thread at a time.
void postpone(std::function<void()> what, bool overtaken = false);
/// Keeps a put, with its data.
void postpone_put(void* target, const void* origin, std::size_t bytes);
/// At the synchronisation call `function`: runs the actions that its fault has delayed until now.
void synchronise(const char* function);

}  // namespace osc::base

#define OSC_FAULT(name) (::osc::base::g_injected == ::osc::base::Injected::name)
#define OSC_FAULT_ANY (::osc::base::g_injected != ::osc::base::Injected::None)
#define OSC_FAULT_SYNCHRONISE(function) ::osc::base::synchronise(function)
// For a put of adjacent bytes: leaves the function with `done` if the put comes later.
#define OSC_FAULT_LATE_PUT(applies, target, origin, bytes, done)           \
    if ((OSC_FAULT(late_put) || OSC_FAULT(get_before_put)) && (applies)) { \
        ::osc::base::postpone_put(target, origin, bytes);                  \
        return done;                                                       \
    }
// For a request form: leaves the function with `done` if `what` comes later.
#define OSC_FAULT_EARLY_REQUEST(applies, what, done) \
    if (OSC_FAULT(request_early) && (applies)) {     \
        ::osc::base::postpone([=] { what; });        \
        return done;                                 \
    }

#else

#define OSC_FAULT(name) false
#define OSC_FAULT_ANY false
#define OSC_FAULT_SYNCHRONISE(function)
#define OSC_FAULT_LATE_PUT(applies, target, origin, bytes, done)
#define OSC_FAULT_EARLY_REQUEST(applies, what, done)

#endif
