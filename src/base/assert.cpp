// How an invariant that does not hold, and an exception that no call reports, end the process.
#include "base/assert.h"

#include <unistd.h>

#include <cstdlib>

#include "base/log.h"

namespace osc::base {

void assertion_failed(const char* condition, const char* file, int line) {
    say("a defect of libosc: the invariant %s does not hold (%s:%d)", condition, file, line);
    std::abort();
}

void cannot_serve(const std::exception& exception) {
    say("cannot serve other processes any more: %s; the process ends", exception.what());
    ::_exit(EXIT_FAILURE);
}

}  // namespace osc::base
