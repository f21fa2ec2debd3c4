// How an invariant that does not hold ends the process.
#include "base/assert.h"

#include <cstdlib>

#include "base/log.h"

namespace osc::base {

void assertion_failed(const char* condition, const char* file, int line) {
    say("a defect of libosc: the invariant %s does not hold (%s:%d)", condition, file, line);
    std::abort();
}

}  // namespace osc::base
