// Calls the stand-in. osc_info must not run it: it would print.
#include <stdio.h>

int PMPI_Initialized(int* flag);

int main(void) {
    int flag = 1;
    puts("the program ran");
    return PMPI_Initialized(&flag) + flag;
}
