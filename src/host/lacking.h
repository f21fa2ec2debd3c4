// Entry points that the host lacks. libosc exports them all, so a program that asks whether a function exists finds it,
// and may call it.
#pragma once

#include <cstdint>
#include <span>

namespace osc::host {

/// An entry point: its name, and its parameters as entries.def writes them.
struct EntryText {
    const char* name;
    const char* parameters;
};

namespace entry_text {
#define OSC_ENTRY(kind, name, parameters, arguments) inline constexpr EntryText name{"MPI_" #name, #parameters};
#include "api/entries.def"
}  // namespace entry_text

/// A function for `symbol`, "MPI_X_c" or "PMPI_X_c", of a host that has only MPI_X: it calls MPI_X. If an int cannot
/// hold a count or a displacement unit, it raises MPI_ERR_COUNT. Null for other symbols, and if the host lacks MPI_X
/// too. Thread-safe.
void* int_form(const char* symbol);

/// Ends a call of a function that the host, one of another ABI, lacks in every form: prints a line and raises
/// MPI_ERR_OTHER. The handler is that of the window or communicator among `arguments`; without one, none is called.
/// Returns the error class. Thread-safe.
int refuse_missing(const EntryText& entry, std::span<const std::uintptr_t> arguments);

}  // namespace osc::host
