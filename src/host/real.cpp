// Finds the host MPI.
#include "host/real.h"

#include <dlfcn.h>

#include <mutex>

namespace osc::host {

namespace detail {
Real g_real;
}

namespace {

// The host opened with RTLD_LOCAL (by a language binding) is not behind us in the search order; these are its names.
const char* const kHostNames[] = {"libmpich.so.12", "libmpi.so.12", "libmpi.so.40"};

void* open_loaded_host() {
    for (const char* name : kHostNames)
        if (void* handle = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) return handle;
    return nullptr;
}

void* find(void* host, const char* symbol) {
    if (void* address = ::dlsym(RTLD_NEXT, symbol); address != nullptr) return address;
    return host != nullptr ? ::dlsym(host, symbol) : nullptr;
}

}  // namespace

bool resolve() {
    static std::mutex mutex;
    static bool done = false;
    const std::lock_guard lock(mutex);
    if (done) return true;
    void* host = ::dlsym(RTLD_NEXT, "PMPI_Initialized") == nullptr ? open_loaded_host() : nullptr;
    if (find(host, "PMPI_Initialized") == nullptr) return false;
    Real& table = detail::g_real;
#define OSC_ENTRY(kind, name, parameters, arguments) \
    table.name = reinterpret_cast<decltype(table.name)>(find(host, "PMPI_" #name));
#include "interpose/entries.def"
#undef OSC_ENTRY
#define OSC_REAL(name) table.name = reinterpret_cast<decltype(table.name)>(find(host, "PMPI_" #name));
#define OSC_REAL_EXTENSION(name) \
    table.MPIX_##name = reinterpret_cast<decltype(table.MPIX_##name)>(find(host, "PMPIX_" #name));
#include "host/real.def"
#include "host/real_types.def"
#undef OSC_REAL_EXTENSION
#undef OSC_REAL
    done = true;
    return true;
}

void* next_symbol(const char* symbol) {
    return ::dlsym(RTLD_NEXT, symbol);
}

bool in_host_library(void* address) {
    Dl_info here{};
    Dl_info host{};
    if (::dladdr(address, &here) == 0) return false;
    if (::dladdr(reinterpret_cast<void*>(detail::g_real.Initialized), &host) == 0) return false;
    return here.dli_fbase == host.dli_fbase;
}

}  // namespace osc::host
