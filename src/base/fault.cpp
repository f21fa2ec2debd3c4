// The line of the last fault, per thread.
#include "base/fault.h"

#include <cstdarg>
#include <cstdio>

namespace osc::base {
namespace {
thread_local char t_text[400] = "";
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

}  // namespace osc::base
