// The line of the last fault, per thread, and the first fault of several.
#include "base/fault.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/assert.h"

namespace osc::base {
namespace {
thread_local char t_text[kLongestFault] = "";
}

Fault fail(Fault fault, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(t_text, sizeof t_text, format, args);
    va_end(args);
    return fault;
}

const char* fault_text() {
    return t_text;
}

Fault out_of_memory() {
    return fail(Fault::NoMem, "the process has no memory left for libosc");
}

void await_memory(int tries, const std::bad_alloc& failure) {
    constexpr int kMost = 500;  // of 10 ms each
    if (tries > kMost) cannot_serve(failure);
    const timespec pause{0, 10000000};
    ::nanosleep(&pause, nullptr);
}

void FirstFault::keep(Fault fault) {
    fault_ = fault;
    std::strcpy(text_, fault_text());
}

Fault FirstFault::raise() {
    return fail(std::exchange(fault_, Fault::None), "%s", text_);
}

}  // namespace osc::base
