// Calls functions that the process's MPI library (abi_library.cpp) lacks, as a program does that finds libosc's names.
// Large-count forms reach the form with ints; a value that no int holds, and a function that has no other form, are an
// error through the handler of the call's window or communicator.
#include <climits>
#include <cstdio>
#include <string>
#include <vector>

#include "recorded.h"

// Weak, because the program's library lacks some of them: only libosc has these names.
#define OSC_ENTRY(kind, name, parameters, arguments)                      \
    extern "C" __attribute__((weak)) int MPI_##name(OSC_WORDS arguments); \
    extern "C" __attribute__((weak)) int PMPI_##name(OSC_WORDS arguments);
#include "api/entries.def"

namespace {

using osc::Word;
constexpr int kErrCount = 2;
constexpr int kErrOther = 16;
constexpr Word kWide = Word{INT_MAX} + 1;

int g_wrong = 0;

void expect(bool fine, const std::string& function, const char* what) {
    if (fine) return;
    ++g_wrong;
    std::printf("%s: %s; %s was called\n", function.c_str(), what, recorded_call()->function.c_str());
}

bool was_called(const std::string& function, const std::vector<Word>& arguments) {
    return recorded_call()->function == function && recorded_call()->arguments == arguments;
}

template <class... Words>
std::vector<Word> numbered(int (*)(Words...), Word first) {
    std::vector<Word> words(sizeof...(Words));
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = first + i;
    return words;
}

template <class... Words, std::size_t... kIndex>
int apply(int (*function)(Words...), const std::vector<Word>& words, std::index_sequence<kIndex...>) {
    return function(words[kIndex]...);
}
template <class... Words>
int apply(int (*function)(Words...), const std::vector<Word>& words) {
    return apply(function, words, std::index_sequence_for<Words...>{});
}

// The large-count form `large` of `small`, whose handle is argument `handle` from the end, of the handler's kind.
template <class... Words>
void check_form(const std::string& small, int (*large)(Words...), std::size_t handle, const char* handler) {
    const std::vector<Word> few = numbered(large, 100);
    expect(apply(large, few) == kRecordedResult && was_called(small, few), small + "_c", "not the form with ints");
    const std::vector<Word> negative = numbered(large, ~Word{0} - 100);  // the library reports these
    expect(apply(large, negative) == kRecordedResult && was_called(small, negative), small + "_c", "negative counts");
    const std::vector<Word> many = numbered(large, kWide);
    expect(apply(large, many) == kErrCount && was_called(handler, {many[many.size() - 1 - handle], kErrCount}),
           small + "_c", "no error for a count that no int holds");
}

void check_forms() {
    const char* const window = "PMPI_Win_call_errhandler";
    const char* const communicator = "PMPI_Comm_call_errhandler";
#define CHECK(name, handle, handler)                            \
    check_form("MPI_" #name, &MPI_##name##_c, handle, handler); \
    check_form("PMPI_" #name, &PMPI_##name##_c, handle, handler);
    CHECK(Put, 0, window)
    CHECK(Get, 0, window)
    CHECK(Accumulate, 0, window)
    CHECK(Get_accumulate, 0, window)
    CHECK(Rput, 1, window)
    CHECK(Rget, 1, window)
    CHECK(Raccumulate, 1, window)
    CHECK(Rget_accumulate, 1, window)
    CHECK(Win_create, 1, communicator)
    CHECK(Win_allocate, 2, communicator)
    CHECK(Win_allocate_shared, 2, communicator)
}

// Addresses, displacements and sizes are as wide in both forms.
void check_wide_arguments() {
    const Word wide = kWide << 8;
    const std::vector<Word> put = {wide, INT_MAX, wide, 1, wide, INT_MAX, wide, wide};
    expect(apply(&MPI_Put_c, put) == kRecordedResult && was_called("MPI_Put", put), "MPI_Put_c", "wide arguments");
    const std::vector<Word> create = {wide, wide, INT_MAX, wide, wide, wide};
    expect(apply(&PMPI_Win_create_c, create) == kRecordedResult && was_called("PMPI_Win_create", create),
           "PMPI_Win_create_c", "wide arguments");
}

// The recorder writes the unit 7 as an int and succeeds if the rank is 0.
void check_result() {
    Word size = 0;
    Word base = 0;
    Word unit = ~Word{0};
    const auto query = [&](Word rank) {
        return MPI_Win_shared_query_c(5, rank, reinterpret_cast<Word>(&size), reinterpret_cast<Word>(&unit),
                                      reinterpret_cast<Word>(&base));
    };
    expect(query(0) == 0 && unit == 7, "MPI_Win_shared_query_c", "the unit is not 7");
    unit = 9;
    expect(query(1) == kRecordedResult && unit == 9, "MPI_Win_shared_query_c", "an error changes the unit");
}

}  // namespace

extern "C" int call_all() {
    check_forms();
    check_wide_arguments();
    check_result();
    expect(MPI_Win_sync(77) == kErrOther && was_called("PMPI_Win_call_errhandler", {77, kErrOther}), "MPI_Win_sync",
           "no error for a function that the library lacks");
    if (g_wrong == 0) std::printf("all right\n");
    return g_wrong == 0 ? 0 : 1;
}
