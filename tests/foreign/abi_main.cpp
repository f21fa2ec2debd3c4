// Runs call_all() of abi_calls.cpp: linked, or of the plugin named on the command line, as a language binding loads
// MPI.
#include <dlfcn.h>

#include <cstdio>

extern "C" int call_all() __attribute__((weak));

int main(int argc, char** argv) {
    if (argc == 1) return call_all();
    void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
        std::printf("%s\n", dlerror());
        return 2;
    }
    return reinterpret_cast<int (*)()>(dlsym(plugin, "call_all"))();
}
