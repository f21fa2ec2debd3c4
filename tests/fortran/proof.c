/* proof.c: asks libosc's counters and the spy's, for Fortran programs, whether libosc served what they called. Without
 * libosc, or with it switched off, there is nothing to prove. */
#include <osc/osc.h>
#include <stdio.h>
#include <stdlib.h>

extern unsigned long long spy_count(const char* mpi_function) __attribute__((weak));
#pragma weak osc_served
#pragma weak osc_forwarded

int proof_preloaded(void);
int proof_of(const char* mpi_function);
void mpi_f_sync_reg_(void* memory);

/* Whether libosc serves this process. */
int proof_preloaded(void) {
    return osc_served != NULL && getenv("OSC_DISABLE") == NULL;
}

/* 0 if libosc served calls of the function and let none pass to the host. */
int proof_of(const char* mpi_function) {
    if (!proof_preloaded()) return 0;
    int wrong = 0;
    if (osc_served(mpi_function) == 0) {
        printf("%s: libosc served no call\n", mpi_function);
        wrong = 1;
    }
    if (osc_forwarded(mpi_function) != 0 || (spy_count != NULL && spy_count(mpi_function) != 0)) {
        printf("%s: a call reached the host\n", mpi_function);
        wrong = 1;
    }
    fflush(stdout);
    return wrong;
}

/* The module mpi_f08 of MPICH 5.0.2 asks for this name, which Debian forky's libmpichfort does not have. The call
 * itself is what the compiler must not move accesses over. */
__attribute__((weak)) void mpi_f_sync_reg_(void* memory) {
    (void)memory;
}
