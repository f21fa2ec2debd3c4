// The functions that one library, or all libraries, import from other libraries. Replacing an import changes the calls
// of the importing library alone, and exports no name. A library is named by an address in it.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.h"

namespace osc::base {

/// The function `name` that a library's calls reach; null if the library does not import it. Thread-safe.
void* imported_by(void* library, const char* name);

/// Redirects a library's calls of `name` to `by`; false if the library does not import `name` or its table cannot be
/// written. Thread-safe.
bool replace_import(void* library, const char* name, void* by);

/// The function that other libraries' calls of `name` reach; null if no library defines it. Thread-safe.
void* called_function(const char* name);

/// How many libraries the process has loaded and closed. Thread-safe.
struct Loads {
    unsigned long long loaded = 0;
    unsigned long long closed = 0;
    bool operator==(const Loads&) const = default;
};
Loads loads();

/// A call that a loaded library makes of a function.
struct Import {
    const char* name;
    void* now;  // the function, or the stub that binds the call at the first one
    const link_map* library;
    void* handle;  // of the library, for dlsym()
    bool binds_late;

    /// Whether no call has been bound yet. Thread-safe.
    bool is_unbound() const;
};

/// Calls `choose` for each import of the program and of the loaded libraries, but for the `first` ones that were
/// loaded, libosc, the C library and the loader, and redirects the import to the function that it returns; null leaves
/// it. Returns how many libraries are loaded. Leaves pointers to functions that a program keeps in its data. Other
/// threads may load and close libraries. Thread-safe, as the next function is.
std::size_t redirect_imports(std::size_t first, FunctionRef<void*(const Import&)> choose);

/// Redirects the calls of `name` of the program and of all loaded libraries, except libosc, the library of `by`, the C
/// library and the loader, from `function` to `by`. Leaves calls that reach another function, and unbound ones that
/// may.
struct Replacement {
    const char* name;
    void* function;
    void* by;
};
void replace_all_imports(std::span<const Replacement> replacements);

/// Whether the loader makes `address` read-only once it has relocated a library whose PT_GNU_RELRO part is
/// [first, first + bytes): the part's end is rounded down to pages of `page` bytes. Thread-safe.
bool is_sealed(std::uintptr_t first, std::uintptr_t bytes, std::uintptr_t address, std::uintptr_t page);

}  // namespace osc::base
