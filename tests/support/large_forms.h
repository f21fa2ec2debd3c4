// The large counts of MPI 4, which libosc serves over a host whose header lacks them. Null without libosc.
#pragma once

#include <mpi.h>

#if MPI_VERSION < 4
extern "C" {
#define OSC_ENTRY(kind, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments) int MPI_##name##_c parameters __attribute__((weak));
#include "api/entries.def"
}
#endif
