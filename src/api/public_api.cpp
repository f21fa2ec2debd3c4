// libosc's own exported functions, osc_*.
#include <cstring>
#include <string>

#include "api/plugins.h"
#include "api/routes.h"
#include "base/log.h"
#include "net/network_stack.h"
#include "osc/osc.h"
#include "shm/arena.h"
#include "stats/report.h"
#include "sync/stripe.h"
#include "window/registry.h"
#include "window/window.h"

namespace osc {

namespace {

const char* const kEntryNames[] = {
#define OSC_ENTRY(kind, name, parameters, arguments) "MPI_" #name,
#include "api/entries.def"
};

// `calls` of the function `name`; 0 without such a function.
unsigned long long count_of(std::uint64_t (&calls)(Entry), const char* name) {
    for (unsigned i = 0; name != nullptr && i < kEntries; ++i)
        if (std::strcmp(kEntryNames[i], name) == 0) return calls(static_cast<Entry>(i));
    return 0;
}

unsigned long long metadata_bytes() {
    unsigned long long bytes = 0;
    visit_windows([&](const Window& window) { bytes += window.own_bytes(); });
    return bytes;
}

unsigned long long windows() {
    unsigned long long count = 0;
    visit_windows([&](const Window&) { ++count; });
    return count;
}

net::NetworkStack& network() {
    return net::NetworkStack::mine();
}

const char* const kCounterNames[] = {
#define OSC_COUNTER(name, value, help) name,
#include "tools/counters.def"
};

}  // namespace

std::span<const char* const> counter_names() {
    return kCounterNames;
}

std::vector<std::uint64_t> counter_values() {
    return {
#define OSC_COUNTER(name, value, help) value,
#include "tools/counters.def"
    };
}

void report_counters() {
    std::string line;
    for (unsigned i = 0; i < kEntries; ++i) {
        const unsigned long long served = served_calls(static_cast<Entry>(i));
        const unsigned long long forwarded = forwarded_calls(static_cast<Entry>(i));
        if (served + forwarded == 0) continue;
        line += std::string(" ") + kEntryNames[i] + "=" + std::to_string(served);
        if (forwarded != 0) line += "+" + std::to_string(forwarded) + " by the host";
    }
    base::say("served:%s", line.c_str());
}

namespace exported {

const char* osc_version(void) {
    return OSC_VERSION_TEXT;
}

unsigned long long osc_served(const char* mpi_function) {
    return count_of(served_calls, mpi_function);
}

unsigned long long osc_forwarded(const char* mpi_function) {
    return count_of(forwarded_calls, mpi_function);
}

int osc_window_stat(int handle, const char* name, unsigned long long* value) {
    Window* const window = find_window(abi::window_of(handle));
    std::uint64_t found = 0;
    if (window == nullptr || window->core.stats == nullptr || name == nullptr || value == nullptr ||
        !stats::look_up(*window->core.stats, name, found))
        return -1;
    *value = found;
    return 0;
}

int osc_counter(const char* name, unsigned long long* value) {
    if (name == nullptr || value == nullptr) return -1;
#define OSC_COUNTER(counter, expression, help) \
    if (std::strcmp(name, counter) == 0) {     \
        *value = expression;                   \
        return 0;                              \
    }
#include "tools/counters.def"
    return -1;
}

}  // namespace exported
}  // namespace osc
