// A library with the functions of an MPI library of the MPI 5 standard ABI: it records each call of an entry point of
// libosc and its arguments, as wide as pointers are in that ABI, and the program reads the record.
#include <cstring>
#include <vector>

#include "recorded.h"

namespace {

Recorded g_last;

struct Call {
    const char* name;
    template <class... Words>
    int operator()(Words... words) const {
        g_last = {name, {words...}};
        if (std::strcmp(name, "MPI_Win_shared_query") == 0 && g_last.arguments[1] == 0) {
            *reinterpret_cast<int*>(g_last.arguments[3]) = 7;
            return 0;
        }
        return kRecordedResult;
    }
};

}  // namespace

#define ABI_EXPORT extern "C" __attribute__((visibility("default")))

ABI_EXPORT const Recorded* recorded_call() {
    return &g_last;
}

ABI_EXPORT int PMPI_Initialized(int* flag) {
    *flag = 1;
    return 0;
}

ABI_EXPORT int PMPI_Abi_get_version(int* major, int* minor) {
    *major = 1;
    *minor = 0;
    return 0;
}

ABI_EXPORT int PMPI_Get_library_version(char* text, int* length) {
    *length = std::strlen(std::strcpy(text, "Recorder 1.0, of tests/foreign\nof another line"));
    return 0;
}

ABI_EXPORT int PMPI_Win_call_errhandler(osc::Word win, int error) {
    return Call{"PMPI_Win_call_errhandler"}(win, osc::Word(error));
}

ABI_EXPORT int PMPI_Comm_call_errhandler(osc::Word comm, int error) {
    return Call{"PMPI_Comm_call_errhandler"}(comm, osc::Word(error));
}

#define OSC_ENTRY(kind, name, parameters, arguments)  \
    ABI_EXPORT int MPI_##name(OSC_WORDS arguments) {  \
        return Call{"MPI_" #name} arguments;          \
    }                                                 \
    ABI_EXPORT int PMPI_##name(OSC_WORDS arguments) { \
        return Call{"PMPI_" #name} arguments;         \
    }
#include "api/entries.def"
