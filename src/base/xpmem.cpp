#include "base/xpmem.h"

#include <dlfcn.h>

#include "base/descriptor.h"

namespace osc::base {
namespace {

template <class F>
bool find(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    return function != nullptr;
}

// It stays loaded: its descriptor of the device is the process's.
const Xpmem* load() {
    void* library = ::dlopen("libxpmem.so.0", RTLD_LAZY);
    if (library == nullptr) library = ::dlopen("libxpmem.so", RTLD_LAZY);
    static Xpmem found;
    if (library == nullptr || !find(library, "xpmem_make", found.make) || !find(library, "xpmem_get", found.get) ||
        !find(library, "xpmem_release", found.release) || !find(library, "xpmem_attach", found.attach) ||
        !find(library, "xpmem_detach", found.detach))
        return nullptr;
    occupy_stdio();  // it opens the device at its first use
    return &found;
}

}  // namespace

const Xpmem* xpmem() {
    static const Xpmem* const library = load();
    return library;
}

Xpmem::Segment show_memory() {
    constexpr std::uintptr_t kOwnerOnly = 0600;
    const Xpmem* const library = xpmem();
    if (library == nullptr) return -1;
    return library->make(nullptr, Xpmem::kAll, Xpmem::kMode, reinterpret_cast<void*>(kOwnerOnly));
}

}  // namespace osc::base
