// Windows in delete callbacks of MPI_COMM_SELF's attributes, which run inside MPI_Finalize while all of MPI still works
// (MPI 4.1 section 11.2.4), the last one that was set first.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "plain_checks.h"

namespace {

using osct::expect;

int rank = 0;
int size = 1;
int called = 0;
bool leaves = false;  // one window is left, which the host alone does not survive

int right() {
    return (rank + 1) % size;
}

int left() {
    return (rank + size - 1) % size;
}

struct Window {
    MPI_Win handle = MPI_WIN_NULL;
    long* memory = nullptr;
    MPI_Aint at = 0;  // of the right neighbour's memory, in bytes
};
// Made before MPI_Finalize.
Window allocated, created, dynamic, kept, opened;
long own[8];
long attached[8];
MPI_Datatype pair = MPI_DATATYPE_NULL;
void* piece = nullptr;

void put_and_get(const Window& window, long value, const char* what) {
    long got = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.handle);
    MPI_Put(&value, 1, MPI_LONG, right(), window.at, 1, MPI_LONG, window.handle);
    MPI_Win_flush(right(), window.handle);
    MPI_Get(&got, 1, MPI_LONG, right(), window.at, 1, MPI_LONG, window.handle);
    MPI_Win_unlock(right(), window.handle);
    expect(got == value, what);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(window.memory[0] == value - rank + left(), what);
    MPI_Barrier(MPI_COMM_WORLD);
}

using Callback = int (*)(MPI_Comm, int, void*, void*);

// What a callback expects of MPI, and its place in their order.
void enter(int place) {
    int finalized = 1;
    MPI_Finalized(&finalized);
    expect(finalized == 0, "MPI is not finalized");
    expect(called++ == place, "the callbacks come in the opposite order of their setting");
}

int queries(MPI_Comm, int, void*, void*) {
    enter(0);
    void* base = nullptr;
    int found = 0;
    MPI_Group group = MPI_GROUP_NULL;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Win_get_attr(allocated.handle, MPI_WIN_BASE, static_cast<void*>(&base), &found);
    expect(found != 0 && base == allocated.memory, "the base");
    MPI_Win_get_group(allocated.handle, &group);
    MPI_Group_size(group, &length);
    expect(length == size, "the group");
    MPI_Group_free(&group);
    MPI_Win_set_name(allocated.handle, "late");
    MPI_Win_get_name(allocated.handle, name, &length);
    expect(std::strcmp(name, "late") == 0, "the name");
    MPI_Win_get_info(allocated.handle, &info);
    MPI_Info_free(&info);
    return MPI_SUCCESS;
}

int operations(MPI_Comm, int, void*, void*) {
    enter(1);
    put_and_get(allocated, 100 + rank, "an allocated window");
    put_and_get(created, 200 + rank, "a window over own memory");
    put_and_get(dynamic, 300 + rank, "a dynamic window");
    put_and_get(kept, 400 + rank, "a window for all callbacks");
    // An epoch that has begun before MPI_Finalize.
    const long value = 500 + rank;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Rput(&value, 1, pair, right(), 0, 1, pair, opened.handle, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(opened.handle);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(opened.memory[0] == 500 + left(), "an epoch that was open");
    return MPI_SUCCESS;
}

int new_window(MPI_Comm, int, void*, void*) {
    enter(2);
    Window window;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&window.memory), &window.handle);
    const long value = 600 + rank;
    MPI_Win_fence(0, window.handle);
    MPI_Put(&value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, window.handle);
    MPI_Win_fence(0, window.handle);
    expect(window.memory[0] == 600 + left(), "a window that a callback makes");
    MPI_Win_free(&window.handle);
    return MPI_SUCCESS;
}

int frees(MPI_Comm, int, void*, void*) {
    enter(3);
    for (Window* window : {&allocated, &created, &dynamic, &opened}) {
        expect(MPI_Win_free(&window->handle) == MPI_SUCCESS && window->handle == MPI_WIN_NULL, "a free in a callback");
    }
    MPI_Type_free(&pair);
    expect(MPI_Free_mem(piece) == MPI_SUCCESS, "MPI_Free_mem in a callback");
    MPI_Alloc_mem(64, MPI_INFO_NULL, static_cast<void*>(&piece));
    expect(MPI_Free_mem(piece) == MPI_SUCCESS, "MPI_Alloc_mem in a callback");
    return MPI_SUCCESS;
}

// The first attribute that the program sets, before it makes any window.
int last(MPI_Comm, int, void*, void*) {
    enter(4);
    put_and_get(kept, 700 + rank, "a window in the last callback");
    if (!leaves) MPI_Win_free(&kept.handle);
    int all = 0;
    MPI_Allreduce(&osct::g_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    osct::g_failures = all;
    if (rank == 0 && all == 0) std::printf("all right\n");
    return MPI_SUCCESS;
}

void at_finalize(Callback callback) {
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &keyval, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
    MPI_Comm_free_keyval(&keyval);
}

void allocate(Window& window) {
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&window.memory), &window.handle);
    window.memory[0] = -1;
}

}  // namespace

// The argument "leaves" leaves a window, "threads" is for MPI_THREAD_MULTIPLE.
int main(int argc, char** argv) {
    int provided = 0;
    leaves = argc > 1 && std::strcmp(argv[1], "leaves") == 0;
    if (argc > 1 && !leaves)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    at_finalize(last);
    MPI_Alloc_mem(4096, MPI_INFO_NULL, static_cast<void*>(&piece));
    at_finalize(frees);
    allocate(allocated);
    allocate(kept);
    allocate(opened);
    MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created.handle);
    created.memory = own;
    at_finalize(new_window);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic.handle);
    MPI_Win_attach(dynamic.handle, attached, sizeof attached);
    dynamic.memory = attached;
    MPI_Aint here = 0;
    MPI_Get_address(attached, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, left(), 0, &dynamic.at, 1, MPI_AINT, right(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Type_vector(1, 1, 2, MPI_LONG, &pair);
    MPI_Type_commit(&pair);
    at_finalize(operations);
    at_finalize(queries);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, opened.handle);
    MPI_Finalize();
    if (called != 5) std::printf("rank %d: %d callbacks of 5 were called\n", rank, called);
    return osct::g_failures == 0 && called == 5 ? 0 : 1;
}
