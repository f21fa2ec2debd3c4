// Every statistic that osc_info --counters lists is one that the library has.
#include <cstdio>

#include "osc/osc.h"

int main() {
    int unknown = 0;
    unsigned long long value = 0;
#define OSC_COUNTER(name, expression, help)                            \
    if (osc_counter(name, &value) != 0) {                              \
        std::fprintf(stderr, "the library has no counter %s\n", name); \
        ++unknown;                                                     \
    }
#include "tools/counters.def"
    if (osc_counter("no.such.counter", &value) != -1) ++unknown;
    return unknown == 0 ? 0 : 1;
}
