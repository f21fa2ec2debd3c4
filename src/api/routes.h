// The route of an application's call: to libosc, to a tool first, or (OSC_DISABLE=1) to the host.
//
// A PMPI tool loaded before libosc defines MPI_X and calls PMPI_X, which is libosc's; this needs no route. For a tool
// loaded after libosc, libosc's MPI_X passes the call to the tool's MPI_X, which calls libosc's PMPI_X. A route is one
// indirect jump and is found once. libosc's own calls use the host's addresses, and no tool sees them.
#pragma once

#include <type_traits>

#include "abi/abi.h"
#include "api/call_counts.h"
#include "api/route_table.h"

namespace osc {

static_assert(MPI_SUCCESS == 0);  // succeed() returns it

/// A function of the host's prototype as a route.
template <class>
using WordOf = Word;
template <class... A>
auto as_route(int (*function)(A...)) {
    return reinterpret_cast<int (*)(WordOf<A>...)>(reinterpret_cast<void (*)()>(function));
}

/// Whether libosc passes every call on, because no library of libosc serves the host.
bool stands_aside();

/// Calls a route with arguments of the host's types.
template <class Route>
auto through(const Route& route) {
    return [&route](auto... arguments) {
        [[maybe_unused]] const auto word = [](auto argument) {  // unused without arguments
            if constexpr (std::is_pointer_v<decltype(argument)>)
                return reinterpret_cast<Word>(argument);
            else
                return static_cast<Word>(argument);
        };
        return route(word(arguments)...);
    };
}

/// Installs the routes for one thread at a time; called at the first window if the thread level is below
/// MPI_THREAD_MULTIPLE.
void serve_one_thread();

/// Installs the routes for several threads again, where serve_one_thread() or serve_deferred_locks() has replaced them;
/// called when MPI ends. One thread.
void serve_threads();

/// Installs the route of MPI_Win_lock that respects deferred locks; called at the first window that defers locks, after
/// serve_one_thread().
void serve_deferred_locks();

/// Prints what was served and forwarded, one line (OSC_VERBOSE=counters).
void report_counters();

/// For what is made from entries.def: chooses by the name of a function. OSC_CHOOSE(OSC_X_##name, otherwise, ) is what
/// OSC_X_name is defined to be, behind a comma, or else `otherwise`.
#define OSC_PICK(first, chosen, ...) chosen
#define OSC_CHOOSE(...) OSC_PICK(__VA_ARGS__)

/// libosc's own functions, one for each entry point.
namespace entry {
#define OSC_ENTRY(kind, name, parameters, arguments) int name parameters;
#include "api/entries.def"
}  // namespace entry

}  // namespace osc
