/* tool.c: a PMPI tool as others write them. It counts the MPI_ calls that it sees and passes them to PMPI_; loaded
 * before or after libosc it must see those of the application and none of libosc's own. */
#include <mpi.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* TOOL(name, parameters, arguments): the calls that the tool looks at. The second group is what a library on top of
 * MPI might use itself. */
#define TOOL_TABLE                                                                                                     \
    TOOL(Put, (const void* o, int oc, MPI_Datatype ot, int rank, MPI_Aint disp, int tc, MPI_Datatype tt, MPI_Win win), \
         (o, oc, ot, rank, disp, tc, tt, win))                                                                         \
    TOOL(Get, (void* o, int oc, MPI_Datatype ot, int rank, MPI_Aint disp, int tc, MPI_Datatype tt, MPI_Win win),       \
         (o, oc, ot, rank, disp, tc, tt, win))                                                                         \
    TOOL(Rput,                                                                                                         \
         (const void* o, int oc, MPI_Datatype ot, int rank, MPI_Aint disp, int tc, MPI_Datatype tt, MPI_Win win,       \
          MPI_Request* request),                                                                                       \
         (o, oc, ot, rank, disp, tc, tt, win, request))                                                                \
    TOOL(Accumulate,                                                                                                   \
         (const void* o, int oc, MPI_Datatype ot, int rank, MPI_Aint disp, int tc, MPI_Datatype tt, MPI_Op op,         \
          MPI_Win win),                                                                                                \
         (o, oc, ot, rank, disp, tc, tt, op, win))                                                                     \
    TOOL(Fetch_and_op, (const void* o, void* r, MPI_Datatype t, int rank, MPI_Aint disp, MPI_Op op, MPI_Win win),      \
         (o, r, t, rank, disp, op, win))                                                                               \
    TOOL(Win_fence, (int assertion, MPI_Win win), (assertion, win))                                                    \
    TOOL(Win_lock, (int type, int rank, int assertion, MPI_Win win), (type, rank, assertion, win))                     \
    TOOL(Win_unlock, (int rank, MPI_Win win), (rank, win))                                                             \
    TOOL(Win_lock_all, (int assertion, MPI_Win win), (assertion, win))                                                 \
    TOOL(Win_unlock_all, (MPI_Win win), (win))                                                                         \
    TOOL(Win_flush, (int rank, MPI_Win win), (rank, win))                                                              \
    TOOL(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win))                            \
    TOOL(Win_complete, (MPI_Win win), (win))                                                                           \
    TOOL(Win_post, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win))                             \
    TOOL(Win_wait, (MPI_Win win), (win))                                                                               \
    TOOL(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win),              \
         (size, unit, info, comm, base, win))                                                                          \
    TOOL(Win_create, (void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win),                \
         (base, size, unit, info, comm, win))                                                                          \
    TOOL(Win_free, (MPI_Win * win), (win))                                                                             \
    TOOL(Win_get_attr, (MPI_Win win, int key, void* value, int* flag), (win, key, value, flag))                        \
    TOOL(Alloc_mem, (MPI_Aint size, MPI_Info info, void* base), (size, info, base))                                    \
    TOOL(Free_mem, (void* base), (base))                                                                               \
                                                                                                                       \
    TOOL(Barrier, (MPI_Comm comm), (comm))                                                                             \
    TOOL(Ibarrier, (MPI_Comm comm, MPI_Request * request), (comm, request))                                            \
    TOOL(Allreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),               \
         (in, out, count, type, op, comm))                                                                             \
    TOOL(Iallreduce,                                                                                                   \
         (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request),    \
         (in, out, count, type, op, comm, request))                                                                    \
    TOOL(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm * out), (comm, group, out))                            \
    TOOL(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* out), (comm, color, key, out))                      \
    TOOL(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* out),                            \
         (comm, type, key, info, out))                                                                                 \
    TOOL(Comm_group, (MPI_Comm comm, MPI_Group * group), (comm, group))                                                \
    TOOL(Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))                        \
    TOOL(Wait, (MPI_Request * request, MPI_Status * status), (request, status))                                        \
    TOOL(Win_set_attr, (MPI_Win win, int key, void* value), (win, key, value))                                         \
    TOOL(Win_create_keyval,                                                                                            \
         (MPI_Win_copy_attr_function * copy, MPI_Win_delete_attr_function * drop, int* key, void* extra),              \
         (copy, drop, key, extra))

#define TOOL(name, parameters, arguments) k##name,
enum { TOOL_TABLE kCalls };
#undef TOOL

static unsigned long counts[kCalls];

#define TOOL(name, parameters, arguments) \
    EXPORT int MPI_##name parameters {    \
        ++counts[k##name];                \
        return PMPI_##name arguments;     \
    }
TOOL_TABLE
#undef TOOL

EXPORT unsigned long tool_count(const char* mpi_function);
EXPORT int tool_knows(int index, const char** mpi_function);

/* How many calls of the function the tool has seen. */
unsigned long tool_count(const char* mpi_function) {
#define TOOL(name, parameters, arguments) \
    if (strcmp(mpi_function, "MPI_" #name) == 0) return counts[k##name];
    TOOL_TABLE
#undef TOOL
    return 0;
}

/* The names of the functions that the tool looks at, one by one; 0 at the end. */
int tool_knows(int index, const char** mpi_function) {
    static const char* const names[] = {
#define TOOL(name, parameters, arguments) "MPI_" #name,
        TOOL_TABLE
#undef TOOL
    };
    if (index < 0 || index >= kCalls) return 0;
    *mpi_function = names[index];
    return 1;
}
