// Calls the int form for a large-count form that the host lacks, and refuses calls that have neither.
#include "host/lacking.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <type_traits>

#include "abi/recognise.h"
#include "base/warn.h"
#include "host/real.h"

namespace osc::host {
namespace {

// Every argument is passed in a register or stack slot of this width (api/route_table.h).
using Word = std::uintptr_t;
template <class>
using WordOf = Word;

// Calls the host's handler `function` of the argument that `parameter` declares, if there is one. The text of the
// parameters may begin with a macro of several, so the argument is found from the end.
void call_handler(const EntryText& entry, std::span<const Word> arguments, std::string_view parameter,
                  const char* function, int error) {
    const std::string_view list = entry.parameters;
    const std::size_t at = list.rfind(parameter);
    if (at == list.npos) return;
    const auto behind = static_cast<std::size_t>(std::count(list.begin() + static_cast<long>(at), list.end(), ','));
    const auto call = reinterpret_cast<int (*)(Word handle, int error)>(host_symbol(function));
    if (call != nullptr) call(arguments[arguments.size() - 1 - behind], error);
}

int refuse(const EntryText& entry, std::span<const Word> arguments, int error) {
    call_handler(entry, arguments, "MPI_Win win", "PMPI_Win_call_errhandler", error);
    call_handler(entry, arguments, "MPI_Comm comm", "PMPI_Comm_call_errhandler", error);
    return error;
}

int refuse_count(const EntryText& entry, std::span<const Word> arguments) {
    base::warn_for_group(
        "%s: a count or a displacement unit is larger than INT_MAX, and the MPI library (%s) has only the form "
        "with int arguments",
        entry.name, describe_host().c_str());
    return refuse(entry, arguments, MPI_ERR_COUNT);  // the same number in all ABIs
}

template <class Large, class Small>
constexpr bool kIsNarrower = !std::is_pointer_v<Large> && !std::is_same_v<Large, Small>;
template <class Large, class Small>
constexpr bool kIsNarrowerResult = std::is_pointer_v<Large> && !std::is_same_v<Large, Small>;

template <class Large, class Small>
bool fits(Word word) {
    const auto value = static_cast<std::int64_t>(word);
    return !kIsNarrower<Large, Small> || (value >= INT_MIN && value <= INT_MAX);
}

// The large-count form of Form, from its int form. No form has more than one result that is narrower.
template <class Form, bool kProfiled, class Large, class Small>
struct IntForm;
template <class Form, bool kProfiled, class... Large, class... Small>
struct IntForm<Form, kProfiled, int (*)(Large...), int (*)(Small...)> {
    static int call(WordOf<Large>... words) {
        static const auto small =
            reinterpret_cast<int (*)(WordOf<Small>...)>(host_symbol(Form::kSmall + (kProfiled ? 0 : 1)));
        if (!(fits<Large, Small>(words) && ...)) {
            const Word arguments[] = {words...};
            return refuse_count(Form::kEntry, arguments);
        }
        int result = 0;
        const int error = small((kIsNarrowerResult<Large, Small> ? reinterpret_cast<Word>(&result) : words)...);
        if (error == MPI_SUCCESS) (widen<Large, Small>(words, result), ...);
        return error;
    }

  private:
    template <class L, class S>
    static void widen([[maybe_unused]] Word to, [[maybe_unused]] int result) {
        if constexpr (kIsNarrowerResult<L, S>) *reinterpret_cast<L>(to) = result;
    }
};

namespace forms {
#define OSC_ENTRY(kind, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments)               \
    struct name {                                                        \
        static constexpr const EntryText& kEntry = entry_text::name##_c; \
        static constexpr const char* kSmall = "PMPI_" #name;             \
        using Large = decltype(Real::name##_c);                          \
        using Small = decltype(Real::name);                              \
    };
#include "api/entries.def"
}  // namespace forms

template <class Form, bool kProfiled>
void* address() {
    return reinterpret_cast<void*>(&IntForm<Form, kProfiled, typename Form::Large, typename Form::Small>::call);
}

}  // namespace

void* int_form(const char* symbol) {
    const bool profiled = *symbol == 'P';
    const std::string_view name = symbol + (profiled ? 1 : 0);
#define OSC_ENTRY(kind, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, form, parameters, arguments)                                                     \
    if (name == forms::form::kEntry.name)                                                                      \
        return host_symbol(forms::form::kSmall + (profiled ? 0 : 1)) == nullptr ? nullptr                      \
               : profiled                                                       ? address<forms::form, true>() \
                                                                                : address<forms::form, false>();
#include "api/entries.def"
    return nullptr;
}

int refuse_missing(const EntryText& entry, std::span<const Word> arguments) {
    base::warn_for_group("the program calls %s, which its MPI library (%s) does not have", entry.name,
                         describe_host().c_str());
    return refuse(entry, arguments, abi::kErrOther);
}

}  // namespace osc::host
