// MPI 4.1, 11.2: MPI_Finalize asks for complete communication and closed files, not for freed windows.
// case: windows that are left when MPI_Finalize is called
#include "case.h"

int main() {
    begin();
    static char memory[64];
    char* base = nullptr;
    for (int i = 0; i < 3; ++i) {
        allocate(64, &base);
        create(memory, sizeof memory);
        create_dynamic();
    }
    return end();
}
