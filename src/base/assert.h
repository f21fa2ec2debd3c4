// Invariants that the code asserts at run time, in two tiers:
//   OSC_ASSERT(condition)       costs a few instructions; on in every build type but Release and MinSizeRel
//   OSC_ASSERT_SLOW(condition)  walks a structure; on in debug and sanitizer builds
// cmake/Assertions.cmake sets the level, OSC_ASSERTS: 0, 1 or 2. A condition that does not hold ends the process with
// one line. Conditions have no side effects; a disabled one is compiled but not evaluated.
#pragma once

#include <exception>

#ifndef OSC_ASSERTS
#define OSC_ASSERTS 0
#endif

namespace osc::base {

/// Prints the condition and its place on stderr, and aborts. Thread-safe.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

/// Prints the exception on stderr, and ends the process. For code that serves other processes: they would wait for ever
/// if an exception left it, and no call of the program could report that.
[[noreturn]] void cannot_serve(const std::exception& exception);

}  // namespace osc::base

#define OSC_CHECKED(condition)                         \
    (__builtin_expect(static_cast<bool>(condition), 1) \
         ? void()                                      \
         : ::osc::base::assertion_failed(#condition, __FILE__, __LINE__))
#define OSC_UNCHECKED(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))

#if OSC_ASSERTS >= 1
#define OSC_ASSERT(condition) OSC_CHECKED(condition)
#else
#define OSC_ASSERT(condition) OSC_UNCHECKED(condition)
#endif
#if OSC_ASSERTS >= 2
#define OSC_ASSERT_SLOW(condition) OSC_CHECKED(condition)
#else
#define OSC_ASSERT_SLOW(condition) OSC_UNCHECKED(condition)
#endif
