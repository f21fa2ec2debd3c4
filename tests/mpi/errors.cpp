// The error class of each misuse, returned through the window's handler, and through the communicator's at creation.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Win_lock", "MPI_Win_allocate", "MPI_Win_create")

CASE(arguments_of_operations) {
    const Returning win;
    int value = 0;
    MPI_Datatype uncommitted;
    MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, size(), 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, -77, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, 0, 0, -1, MPI_INT, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Get(&value, 1, MPI_INT, 0, 0, 1, uncommitted, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    // The host alone takes an operation that the type does not admit, and fails later.
    if (osct::served_by_osc())
        CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Raccumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_flush(size(), win), MPI_ERR_RANK);
    MPI_Win_unlock_all(win);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, size(), 0, win), MPI_ERR_RANK);
    MPI_Type_free(&uncommitted);
}

CASE(lock_types_and_assertions) {
    HOST_CANNOT("the host gives MPI_ERR_ARG instead");
    const Returning win;
    CHECK_CLASS(MPI_Win_lock(12345, 0, 0, win), MPI_ERR_LOCKTYPE);
    CHECK_CLASS(MPI_Win_fence(1 << 30, win), MPI_ERR_ASSERT);
}

CASE(ranges) {
    HOST_CANNOT("the host does not check ranges");
    const Returning win;
    std::vector<char> data(8192);
    const int target = right();
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Put(data.data(), 8192, MPI_CHAR, target, 0, 8192, MPI_CHAR, win), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(MPI_Get(data.data(), 1, MPI_CHAR, target, 1 << 20, 1, MPI_CHAR, win), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(MPI_Put(data.data(), 1, MPI_CHAR, target, -8, 1, MPI_CHAR, win), MPI_ERR_DISP);
    CHECK_OK(MPI_Put(data.data(), 64, MPI_CHAR, target, 0, 64, MPI_CHAR, win));
    MPI_Win_unlock_all(win);
}

CASE(epochs) {
    const Returning win;
    int value = 0;
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    // The host alone lets an operation through to a target that is not locked.
    if (size() > 1 && osct::served_by_osc())
        CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, right(), 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock(rank(), win);
}

CASE(freeing_inside_an_epoch) {
    HOST_CANNOT("not all ranks of the host agree, and it may free the window");
    void* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_OK(MPI_Win_free(&win));
}

CASE(creation) {
    const ReturningComm comm;
    char memory[64];
    void* base = nullptr;
    MPI_Win win;
    CHECK_CLASS(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, comm, &win), MPI_ERR_SIZE);
    CHECK_CLASS(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_SIZE);
    CHECK_CLASS(MPI_Win_create(memory, 64, 0, MPI_INFO_NULL, comm, &win), MPI_ERR_DISP);
    CHECK_CLASS(MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, nullptr, &win), MPI_ERR_ARG);
    // A host that counts the processes as nodes checks either first.
    const int error = MPI_Win_allocate_shared(64, -4, MPI_INFO_NULL, comm, &base, &win);
    const bool either = !osct::served_by_osc() && osct::error_class(error) == MPI_ERR_DISP;
    CHECK_CLASS(error, osct::shares_memory(comm) || either ? MPI_ERR_DISP : MPI_ERR_RMA_SHARED);
}

CASE(attach_and_query) {
    void* base = nullptr;
    char memory[64];
    MPI_Aint bytes = 0;
    int unit = 0;
    const Returning win(WindowKind::Create);
    CHECK_CLASS(MPI_Win_attach(win, memory, 64), MPI_ERR_RMA_FLAVOR);
    CHECK_CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_FLAVOR);
    SKIP_IF(size() < 2);
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make (MPI 4.1 admits it)");
    // Memory that loads and stores do not reach is no error but has no bytes.
    CHECK_OK(MPI_Win_shared_query(win, right(), &bytes, &unit, &base));
    CHECK_EQ(bytes, MPI_Aint{0});
}
