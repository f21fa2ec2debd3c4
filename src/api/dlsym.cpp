// dlsym() for plug-ins and language bindings that look MPI's functions up in the host's library: they get libosc's, as
// linked programs do. The host's own functions know nothing of libosc's windows.
//
// The runtime of a sanitizer looks functions up before instrumented code can run, so a library that is built with one
// leaves dlsym alone.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(OSC_SANITIZED)
#include <dlfcn.h>

#include <cstring>

#include "base/options.h"
#include "host/real.h"

namespace osc {
namespace {

bool is_mpi(const char* name) {
    return std::strncmp(name, "MPI", 3) == 0 || std::strncmp(name, "PMPI", 4) == 0;
}

// The function that libosc exports under a name; null if it exports none.
void* own_symbol(const char* name) {
    Dl_info own{};
    Dl_info found{};
    if (::dladdr(reinterpret_cast<void*>(&own_symbol), &own) == 0) return nullptr;
    static void* const library = ::dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void* const symbol = library != nullptr ? host::loader_dlsym()(library, name) : nullptr;
    const bool ours = symbol != nullptr && ::dladdr(symbol, &found) != 0 && found.dli_fbase == own.dli_fbase;
    return ours ? symbol : nullptr;
}

// What a look-up of an MPI function in a library gives.
void* find_for_program(void* library, const char* name) {
    void* const found = host::loader_dlsym()(library, name);
    if (found == nullptr || base::values().disable || host::find_host() != host::Host::Ours ||
        !host::in_host_library(found))
        return found;
    void* const own = own_symbol(name);
    return own != nullptr ? own : found;
}

}  // namespace
}  // namespace osc

// RTLD_NEXT and RTLD_DEFAULT depend on the caller, which the loader finds by the return address. A jump to the loader's
// function keeps that address. A compiler that does not optimise makes none unless it is asked, and Clang makes none in
// a function that is noexcept, as <dlfcn.h> declares dlsym.
#ifdef __clang__
#define OSC_JUMP [[clang::musttail]] return
#define OSC_JUMPS
#else
#define OSC_JUMP return
#define OSC_JUMPS optimize("O2"),
#endif
extern "C" void* osc_exported_dlsym(void* library, const char* name) __asm__("dlsym");
extern "C" __attribute__((OSC_JUMPS visibility("default"))) void* osc_exported_dlsym(void* library, const char* name) {
    if (library != RTLD_NEXT && library != RTLD_DEFAULT && osc::is_mpi(name))
        return osc::find_for_program(library, name);
    OSC_JUMP osc::host::loader_dlsym()(library, name);
}
#endif
