// The exported functions, from the tables of entry points and exports. Each is one jump to its route with unchanged
// arguments. This file does not include mpi.h, which declares the same names with the host's types.
// Build: osc
#include <cstdlib>

#include "api/route_table.h"
#include "base/log.h"
#include "host/lacking.h"

namespace osc {
namespace {

[[noreturn]] void lack_export() {
    base::say("the program calls a function of the MPI library that no library defines");
    std::abort();
}

// What a route leads to before it is known, and where a host lacks the function.
template <class>
struct To;
template <class Result, class... Words>
struct To<Route<Result(Words...)>> {
    template <const Routes& kRoutes, auto kRoute>
    static int first(Words... words) {
        connect_or_die();
        return (kRoutes.*kRoute)(words...);
    }
    template <auto kRoute>
    static Word first_export(Words... words) {
        connect_exports();
        auto* const found = static_cast<Result (*)(Words...)>(g_exports.*kRoute);
        if (found == &first_export<kRoute>) lack_export();
        return found(words...);
    }
    template <const host::EntryText& kEntry>
    static int missing(Words... words) {
        const Word arguments[] = {words..., 0};
        return host::refuse_missing(kEntry, {arguments, sizeof...(words)});
    }
};

}  // namespace

const Routes kMissing = {
#define OSC_ENTRY(kind, name, parameters, arguments) &To<decltype(Routes::name)>::missing<host::entry_text::name>,
#include "api/entries.def"
};

constinit Routes g_mpi = {
#define OSC_ENTRY(kind, name, parameters, arguments) &To<decltype(Routes::name)>::first<g_mpi, &Routes::name>,
#include "api/entries.def"
};

constinit Routes g_pmpi = {
#define OSC_ENTRY(kind, name, parameters, arguments) &To<decltype(Routes::name)>::first<g_pmpi, &Routes::name>,
#include "api/entries.def"
};

constinit Exports g_exports = {
#define OSC_EXPORTED(name, arguments) &To<decltype(Exports::name)>::first_export<&Exports::name>,
#include "api/exports.def"
};

constinit Routes g_own{};
constinit Routes g_checked{};

}  // namespace osc

#define OSC_EXPORT extern "C" __attribute__((visibility("default")))

#define OSC_ENTRY(kind, name, parameters, arguments)  \
    OSC_EXPORT int MPI_##name(OSC_WORDS arguments) {  \
        return ::osc::g_mpi.name arguments;           \
    }                                                 \
    OSC_EXPORT int PMPI_##name(OSC_WORDS arguments) { \
        return ::osc::g_pmpi.name arguments;          \
    }
#include "api/entries.def"

#define OSC_EXPORTED(name, arguments)                  \
    OSC_EXPORT ::osc::Word name(OSC_WORDS arguments) { \
        return ::osc::g_exports.name arguments;        \
    }
#include "api/exports.def"
