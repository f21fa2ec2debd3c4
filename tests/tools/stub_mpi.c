// A stand-in for an MPI library: osc_info looks at symbols only. With FOREIGN it looks like Open MPI.
int PMPI_Initialized(int* flag);
int PMPI_Initialized(int* flag) {
    *flag = 0;
    return 0;
}
#ifdef FOREIGN
int ompi_mpi_comm_world;
#endif
