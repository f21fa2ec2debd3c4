// Errors made on purpose, so that the tests can show that they would be found. OSC_FAULT(name) is the constant false
// in every build but the tests' own, where it says whether the environment chose that fault; `name` is one of
// faults.def. The other macros are empty there.
#pragma once

#ifdef OSC_FAULTS

#include <cstddef>
#include <functional>

namespace osc::diag {

enum class Injected {
    None,
#define OSC_FAULT_ENTRY(name, what) name,
#include "diag/faults.def"
#undef OSC_FAULT_ENTRY
};

/// The fault of this process. Constant after the library was loaded.
extern Injected g_injected;

/// Keeps something for later; `overtaken`: the next to come is done first, and then this. One thread at a time.
void postpone(std::function<void()> what, bool overtaken = false);
/// Keeps a put, with its data.
void postpone_put(void* target, const void* origin, std::size_t bytes);
/// At the synchronisation call `function`: does what its fault has put off until now.
void synchronise(const char* function);

}  // namespace osc::diag

#define OSC_FAULT(name) (::osc::diag::g_injected == ::osc::diag::Injected::name)
#define OSC_FAULT_ANY (::osc::diag::g_injected != ::osc::diag::Injected::None)
#define OSC_FAULT_SYNCHRONISE(function) ::osc::diag::synchronise(function)
// For a put of adjacent bytes: leaves the function with `done` if the put comes later.
#define OSC_FAULT_LATE_PUT(applies, target, origin, bytes, done)           \
    if ((OSC_FAULT(late_put) || OSC_FAULT(get_before_put)) && (applies)) { \
        ::osc::diag::postpone_put(target, origin, bytes);                  \
        return done;                                                       \
    }
// For a request form: leaves the function with `done` if `what` comes later.
#define OSC_FAULT_EARLY_REQUEST(applies, what, done) \
    if (OSC_FAULT(request_early) && (applies)) {     \
        ::osc::diag::postpone([=] { what; });        \
        return done;                                 \
    }

#else

#define OSC_FAULT(name) false
#define OSC_FAULT_ANY false
#define OSC_FAULT_SYNCHRONISE(function)
#define OSC_FAULT_LATE_PUT(applies, target, origin, bytes, done)
#define OSC_FAULT_EARLY_REQUEST(applies, what, done)

#endif
