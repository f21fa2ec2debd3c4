// The table of routes, for code that must not know the host's types.
//
// libosc's exported functions pass their arguments to libosc or to a host of any ABI. A handle is an int in MPICH's ABI
// and a pointer in others, so these functions take and pass every argument as a Word: on the systems that libosc
// supports each integer or pointer argument fills one register or one 8-byte stack slot, whatever its type.
#pragma once

#include <atomic>
#include <cstdint>

namespace osc {

using Word = std::uintptr_t;
static_assert(sizeof(Word) == 8, "an argument of the C calling convention fills one Word");

// OSC_WORDS(a, b, c) is "Word a, Word b, Word c".
#define OSC_WORDS(...) __VA_OPT__(OSC_RESCAN(OSC_NEXT_WORD(__VA_ARGS__)))
#define OSC_NEXT_WORD(first, ...) ::osc::Word first __VA_OPT__(, OSC_NEXT_WORD_LATER OSC_EMPTY_LIST(__VA_ARGS__))
#define OSC_NEXT_WORD_LATER() OSC_NEXT_WORD
#define OSC_EMPTY_LIST ()
#define OSC_RESCAN(...) OSC_RESCAN_4(OSC_RESCAN_4(OSC_RESCAN_4(OSC_RESCAN_4(__VA_ARGS__))))
#define OSC_RESCAN_4(...) OSC_RESCAN_1(OSC_RESCAN_1(OSC_RESCAN_1(OSC_RESCAN_1(__VA_ARGS__))))
#define OSC_RESCAN_1(...) __VA_ARGS__

/// Where the calls of an entry point go: a function pointer that threads may call through while another replaces it.
template <class Function>
class Route {
  public:
    using To = Function*;
    constexpr Route(Function* to = nullptr) : to_(to) {}
    void operator=(Function* to) { to_.store(to, std::memory_order_relaxed); }
    void operator=(const Route& other) { *this = static_cast<Function*>(other); }
    operator Function*() const { return to_.load(std::memory_order_relaxed); }

  private:
    std::atomic<Function*> to_;
};

/// One route for each entry point.
struct Routes {
#define OSC_ENTRY(kind, name, parameters, arguments) Route<int(OSC_WORDS arguments)> name;
#include "api/entries.def"
};

/// One route for each exported function beside them.
struct Exports {
#define OSC_EXPORTED(name, arguments) Route<Word(OSC_WORDS arguments)> name;
#include "api/exports.def"
};

extern Exports g_exports;
/// Sets the routes, and those of g_exports also without a host. A function of the host that no library defines keeps
/// its route. Thread-safe.
void connect_exports();

extern Routes g_mpi;      // calls of MPI_X
extern Routes g_pmpi;     // calls of PMPI_X
extern Routes g_own;      // libosc's own functions, for those that observe (observed.h)
extern Routes g_checked;  // what the usage checker's entry points call; null if it is off

/// The routes of entry points that a foreign host lacks in every form: host::refuse_missing().
extern const Routes kMissing;

/// Sets the routes, or ends the process with one line if no MPI library is loaded. Thread-safe.
void connect_or_die();

}  // namespace osc
