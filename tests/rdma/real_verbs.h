// The functions of libibverbs, for libraries that stand between it and libfabric.
#pragma once

#include <dlfcn.h>

/// A function of the real libibverbs. libfabric loads it for itself, so RTLD_NEXT does not reach it.
template <class Function>
Function* real(const char* name) {
    static void* const library = ::dlopen("libibverbs.so.1", RTLD_LAZY);
    return reinterpret_cast<Function*>(::dlsym(library, name));
}
