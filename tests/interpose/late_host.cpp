// The host is not linked but opened with RTLD_LOCAL, as language bindings open it, with libosc preloaded. MPICH's
// Fortran layer then calls libosc's MPII_Win_get_attr, which must find the host's outside the search order.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

int failures = 0;

void expect(bool fine, const char* what) {
    if (fine) return;
    ++failures;
    std::printf("not true: %s\n", what);
}

template <class Function>
Function find(void* library, const char* name) {
    void* const address = ::dlsym(library, name);
    if (address == nullptr) {
        std::printf("there is no %s\n", name);
        std::exit(1);
    }
    return reinterpret_cast<Function>(address);
}

}  // namespace

// The functions that libosc interposes, and the rest of MPI.
#define OF_LIBOSC(name) find<decltype(&name)>(RTLD_DEFAULT, #name)
#define OF_HOST(name) find<decltype(&name)>(host, #name)

int main() {
    void* const host = ::dlopen("libmpich.so.12", RTLD_NOW | RTLD_LOCAL);
    expect(host != nullptr && ::dlsym(RTLD_DEFAULT, "MPI_Pack") == nullptr,
           "the host is loaded and not in the search order");
    if (failures != 0) return 1;

    static int mine = 7;
    int keyval = MPI_KEYVAL_INVALID;
    int found = 0;
    void* base = nullptr;
    void* value = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    OF_HOST(MPI_Init)(nullptr, nullptr);
    OF_LIBOSC(MPI_Win_allocate)(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    OF_HOST(MPI_Win_create_keyval)(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, nullptr);
    OF_HOST(MPI_Win_set_attr)(win, keyval, &mine);

    constexpr int kPointer = 0;
    const auto get_attr = find<int (*)(MPI_Win, int, void*, int*, int)>(RTLD_DEFAULT, "MPII_Win_get_attr");
    expect(get_attr(win, MPI_WIN_BASE, static_cast<void*>(&value), &found, kPointer) == MPI_SUCCESS && found != 0 &&
               value == base,
           "libosc answers for its own attribute");
    expect(get_attr(win, keyval, static_cast<void*>(&value), &found, kPointer) == MPI_SUCCESS && found != 0 &&
               value == &mine,
           "the host answers for the program's attribute");
    OF_LIBOSC(MPI_Win_free)(&win);
    OF_LIBOSC(MPI_Finalize)();
    return failures != 0 ? 1 : 0;
}
