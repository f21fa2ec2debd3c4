// Plug-ins and language bindings that reach the host's library past libosc get libosc's functions, as linked programs
// do, because the host's own know nothing of libosc's windows. Some look the functions up by dlsym(). Those that are
// loaded with RTLD_DEEPBIND are bound to the host; from the first window on libosc redirects them when a window is
// made, and when the program looks up a function, which it does before it calls a plug-in's.
// Build: start
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "api/front.h"
#include "api/serve.h"
#include "base/imports.h"
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

std::atomic<bool> g_has_windows{false};

// What libosc exports instead of the host's function that a library calls; null for other calls.
void* instead_of_host(const base::Import& import) {
    if (!is_mpi(import.name) || own_symbol(import.name) == nullptr) return nullptr;
    void* const reached = import.is_unbound() ? host::loader_dlsym()(import.handle, import.name) : import.now;
    if (!host::in_host_library(reached) || host::in_host_library(import.library->l_ld)) return nullptr;
    void* const first = host::loader_dlsym()(RTLD_DEFAULT, import.name);  // a tool's, perhaps
    return host::in_host_library(first) ? nullptr : first;
}

// Threads redirect at the same time: one that waited for another could have the loader's lock, for which that one
// waits.
void redirect_new_libraries() {
    static std::mutex mutex;
    static base::Loads seen;
    static std::size_t known = 0;
    const base::Loads now = base::loads();
    std::unique_lock lock(mutex);
    if (now == seen) return;
    const std::size_t first = now.closed == seen.closed ? known : 0;
    lock.unlock();
    std::size_t listed = base::redirect_imports(first, &instead_of_host);
    if (first != 0 && base::loads().closed != now.closed) listed = base::redirect_imports(0, &instead_of_host);
    lock.lock();
    seen = now;
    known = listed;
}

// What a look-up of an MPI function in a library gives. Nothing calls it where a sanitizer has dlsym.
[[maybe_unused]] void* find_for_program(void* library, const char* name) {
    void* const found = host::loader_dlsym()(library, name);
    if (found == nullptr || base::values().disable || host::find_host() == host::Host::None || stands_aside() ||
        !host::in_host_library(found))
        return found;
    void* const own = own_symbol(name);
    return own != nullptr ? own : found;
}

}  // namespace

void redirect_plugins() {
    if (g_front != nullptr) return g_front->redirect_plugins();
    g_has_windows.store(true, std::memory_order_relaxed);
    redirect_new_libraries();
}

}  // namespace osc

// The runtime of a sanitizer looks functions up before instrumented code can run, so a library that is built with one
// leaves dlsym alone.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(OSC_SANITIZED)
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
    if (osc::g_has_windows.load(std::memory_order_relaxed)) osc::redirect_new_libraries();
    if (library != RTLD_NEXT && library != RTLD_DEFAULT && osc::is_mpi(name))
        return osc::find_for_program(library, name);
    OSC_JUMP osc::host::loader_dlsym()(library, name);
}
#endif
