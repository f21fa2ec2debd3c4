// The exported C functions, MPI_X and PMPI_X, from the table of prototypes. Each is one jump.
#include "interpose/routes.h"

#define OSC_EXPORT extern "C" __attribute__((visibility("default")))

#define OSC_ENTRY(kind, name, parameters, arguments) \
    OSC_EXPORT int MPI_##name parameters {           \
        return ::osc::g_mpi.name arguments;          \
    }                                                \
    OSC_EXPORT int PMPI_##name parameters {          \
        return ::osc::g_pmpi.name arguments;         \
    }
#include "interpose/entries.def"
#undef OSC_ENTRY
