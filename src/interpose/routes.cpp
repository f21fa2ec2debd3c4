// Finds the routes when the library is loaded, or at the first call if the host comes later (a language binding that
// opens MPI at run time).
#include "interpose/routes.h"

#include <cstdlib>

#include "config/options.h"
#include "diag/log.h"
#include "host/real.h"
#include "osc/osc.h"

namespace osc {
namespace {

bool connect();

void connect_or_die() {
    if (connect()) return;
    diag::say("no MPI library is loaded; preload libosc only into MPI programs");
    std::abort();
}

// What a route holds until it is known.
namespace first {
#define OSC_ENTRY(kind, name, parameters, arguments) \
    int name parameters {                            \
        connect_or_die();                            \
        return g_mpi.name arguments;                 \
    }
#include "interpose/entries.def"
#undef OSC_ENTRY
}  // namespace first

namespace first_profiled {
#define OSC_ENTRY(kind, name, parameters, arguments) \
    int name parameters {                            \
        connect_or_die();                            \
        return g_pmpi.name arguments;                \
    }
#include "interpose/entries.def"
#undef OSC_ENTRY
}  // namespace first_profiled

template <class Function>
void choose(Function& called, Function& profiled, Function ours, Function host, const char* symbol, bool disabled) {
    auto* const next = reinterpret_cast<Function>(host::next_symbol(symbol));
    const bool tool = next != nullptr && !host::in_host_library(reinterpret_cast<void*>(next));
    profiled = disabled && host != nullptr ? host : ours;
    called = tool ? next : profiled;
}

bool connect() {
    if (!host::resolve()) return false;
    const bool disabled = config::values().disable;
#define OSC_ENTRY(kind, name, parameters, arguments) \
    choose(g_mpi.name, g_pmpi.name, &entry::name, host::real().name, "MPI_" #name, disabled);
#include "interpose/entries.def"
#undef OSC_ENTRY
    return true;
}

__attribute__((constructor)) void connect_at_load() {
    connect();
}

}  // namespace

Routes g_mpi = {
#define OSC_ENTRY(kind, name, parameters, arguments) &first::name,
#include "interpose/entries.def"
#undef OSC_ENTRY
};

Routes g_pmpi = {
#define OSC_ENTRY(kind, name, parameters, arguments) &first_profiled::name,
#include "interpose/entries.def"
#undef OSC_ENTRY
};

}  // namespace osc
