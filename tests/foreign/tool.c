/* A tool that links an MPI library, which may be another one than the program's. */
#include <mpi.h>

int tool_version(void);

int tool_version(void) {
    int version = 0, subversion = 0;
    PMPI_Get_version(&version, &subversion);
    return 100 * version + subversion;
}
