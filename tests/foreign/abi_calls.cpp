// Calls every entry point of libosc, as MPI_X and as PMPI_X, in a process whose MPI library has the standard ABI
// (abi_library.cpp): each call must reach that library with all bits of all arguments. Built as a program, and as a
// plugin that a program loads late with RTLD_LOCAL.
#include <cstdio>
#include <utility>

#include "recorded.h"

#define OSC_ENTRY(kind, name, parameters, arguments) \
    extern "C" int MPI_##name(OSC_WORDS arguments);  \
    extern "C" int PMPI_##name(OSC_WORDS arguments);
#include "api/entries.def"

namespace {

int g_wrong = 0;

void expect(bool fine, const char* function, const char* what) {
    if (fine) return;
    ++g_wrong;
    std::printf("%s: %s\n", function, what);
}

// A value that differs in each argument and loses something if it is cut to 32 bits.
constexpr osc::Word argument(unsigned index) {
    return 0x7123456789abc000u + index;
}

template <class... Words, std::size_t... kIndex>
int apply(int (*function)(Words...), std::index_sequence<kIndex...>) {
    return function(argument(kIndex)...);
}

template <class... Words>
void call(const char* name, int (*function)(Words...)) {
    std::vector<osc::Word> arguments;
    for (unsigned i = 0; i < sizeof...(Words); ++i)
        arguments.push_back(argument(i));
    expect(apply(function, std::index_sequence_for<Words...>{}) == kRecordedResult, name, "the result is another one");
    expect(recorded_call()->function == name, name, recorded_call()->function.c_str());
    expect(recorded_call()->arguments == arguments, name, "the arguments are changed");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int call_all() {
#define OSC_ENTRY(kind, name, parameters, arguments) \
    call("MPI_" #name, &MPI_##name);                 \
    call("PMPI_" #name, &PMPI_##name);
#include "api/entries.def"
    if (g_wrong == 0) std::printf("all right\n");
    return g_wrong == 0 ? 0 : 1;
}
