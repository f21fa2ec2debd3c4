// The functions that one library, or all libraries, import from other libraries. Replacing an import changes the calls
// of the importing library alone, and exports no name. A library is named by an address in it.
#pragma once

#include <cstdint>

namespace osc::base {

/// The function `name` that a library's calls reach; null if the library does not import it. Thread-safe.
void* imported_by(void* library, const char* name);

/// Redirects a library's calls of `name` to `by`; false if the library does not import `name` or its table cannot be
/// written. Calls of this function must not overlap.
bool replace_import(void* library, const char* name, void* by);

/// The function that other libraries' calls of `name` reach; null if no library defines it. Thread-safe.
void* called_function(const char* name);

/// Redirects the calls of `name` of the program and of all loaded libraries, except libosc, the library of `by`, the C
/// library and the loader, from `function` to `by`. Leaves calls that reach another function, unbound ones that may,
/// and pointers to functions that a program keeps in its data. Other threads may load and close libraries; calls of
/// this function must not overlap.
void replace_all_imports(const char* name, void* function, void* by);

/// Whether the loader makes `address` read-only once it has relocated a library whose PT_GNU_RELRO part is
/// [first, first + bytes): the part's end is rounded down to pages of `page` bytes. Thread-safe.
bool is_sealed(std::uintptr_t first, std::uintptr_t bytes, std::uintptr_t address, std::uintptr_t page);

}  // namespace osc::base
