// Where a call of the application goes: to libosc, through a tool first, or (OSC_DISABLE=1) to the host.
//
// A PMPI tool loaded before libosc defines MPI_X and calls PMPI_X, which is ours: nothing to do. For a tool loaded
// after libosc, our MPI_X passes the call to the tool's, which calls PMPI_X, again ours. Routes are one indirect jump
// and are found once; calls that libosc makes itself go to the host's addresses and no tool sees them.
#pragma once

#include <mpi.h>

#include <atomic>

namespace osc {

/// One function pointer for each entry point.
struct Routes {
#define OSC_ENTRY(kind, name, parameters, arguments) int(*name) parameters;
#include "interpose/entries.def"
#undef OSC_ENTRY
};

extern Routes g_mpi;   // calls of MPI_X
extern Routes g_pmpi;  // calls of PMPI_X

/// Names the entry points in counters.
enum class Entry : unsigned {
#define OSC_ENTRY(kind, name, parameters, arguments) name,
#include "interpose/entries.def"
#undef OSC_ENTRY
    Count,
};

namespace detail {
extern std::atomic<unsigned long long> g_served[static_cast<unsigned>(Entry::Count)];
extern std::atomic<unsigned long long> g_forwarded[static_cast<unsigned>(Entry::Count)];
}  // namespace detail

/// Counts a call; relaxed load and store instead of an addition keep it at three plain instructions.
inline void count_served(Entry entry) {
    std::atomic<unsigned long long>& counter = detail::g_served[static_cast<unsigned>(entry)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
inline void count_forwarded(Entry entry) {
    std::atomic<unsigned long long>& counter = detail::g_forwarded[static_cast<unsigned>(entry)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

/// libosc's own functions, one for each entry point.
namespace entry {
#define OSC_ENTRY(kind, name, parameters, arguments) int name parameters;
#include "interpose/entries.def"
#undef OSC_ENTRY
}  // namespace entry

}  // namespace osc
