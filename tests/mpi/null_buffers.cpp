// Null buffers: MPI_ERR_BUFFER where an operation reads or writes them, on targets that no operation has opened and on
// open ones, and legal where it does not.
#include <functional>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Raccumulate", "MPI_Get_accumulate",
             "MPI_Rput", "MPI_Rget", "MPI_Rget_accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap")

namespace {

// Calls of every function with a null buffer and data to move, at byte 64 of the target. `types` have data at the
// buffer's begin.
void refused(const Window& window, MPI_Datatype type, int count) {
    const MPI_Win win = window;
    const MPI_Aint at = window.at(right(), 64);
    std::vector<double> memory(256, 1.0);
    double* const here = memory.data();
    const int to = right();
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_Put(nullptr, count, type, to, at, count, type, win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Get(nullptr, count, type, to, at, count, type, win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Put_c(nullptr, count, type, to, at, count, type, win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Rput(nullptr, count, type, to, at, count, type, win, &request), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Rget(nullptr, count, type, to, at, count, type, win, &request), MPI_ERR_BUFFER);
    for (const MPI_Op op : {MPI_SUM, MPI_REPLACE, MPI_MAX}) {
        CHECK_CLASS(MPI_Accumulate(nullptr, count, type, to, at, count, type, op, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Raccumulate(nullptr, count, type, to, at, count, type, op, win, &request), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Get_accumulate(nullptr, count, type, here, count, type, to, at, count, type, op, win),
                    MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Get_accumulate(here, count, type, nullptr, count, type, to, at, count, type, op, win),
                    MPI_ERR_BUFFER);
        CHECK_CLASS(
            MPI_Rget_accumulate(here, count, type, nullptr, count, type, to, at, count, type, op, win, &request),
            MPI_ERR_BUFFER);
    }
    CHECK_CLASS(MPI_Get_accumulate(nullptr, 0, type, nullptr, count, type, to, at, count, type, MPI_NO_OP, win),
                MPI_ERR_BUFFER);
    CHECK(request == MPI_REQUEST_NULL);
}

void refused_elements(const Window& window, MPI_Datatype type, bool swaps) {
    const MPI_Win win = window;
    const MPI_Aint at = window.at(right(), 64);
    const long one = 1;
    long result = -1;
    for (const MPI_Op op : {MPI_SUM, MPI_REPLACE, MPI_MAX})
        CHECK_CLASS(MPI_Fetch_and_op(nullptr, &result, type, right(), at, op, win), MPI_ERR_BUFFER);
    for (const MPI_Op op : {MPI_SUM, MPI_NO_OP})
        CHECK_CLASS(MPI_Fetch_and_op(&one, nullptr, type, right(), at, op, win), MPI_ERR_BUFFER);
    if (swaps) {
        CHECK_CLASS(MPI_Compare_and_swap(nullptr, &one, &result, type, right(), at, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Compare_and_swap(&one, nullptr, &result, type, right(), at, win), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Compare_and_swap(&one, &one, nullptr, type, right(), at, win), MPI_ERR_BUFFER);
    }
    CHECK_EQ(result, -1);
}

void refused_in_an_epoch(const Window& window) {
    MPI_Datatype strided;
    MPI_Type_vector(3, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    for (const MPI_Datatype type : {MPI_LONG, MPI_INT, MPI_DOUBLE, MPI_CHAR, strided})
        for (const int count : {1, 2, 40})
            refused(window, type, count);
    refused_elements(window, MPI_LONG, true);
    refused_elements(window, MPI_INT, true);
    refused_elements(window, MPI_DOUBLE, false);
    refused_elements(window, MPI_CHAR, true);
    MPI_Type_free(&strided);
}

}  // namespace

CASE_BY_KIND(null_buffers_with_data) {
    HOST_CANNOT("the host alone gives MPI_ERR_ARG for single elements");
    Returning win(kind, 2048);
    const std::vector<std::function<void(bool)>> epochs = {
        [&](bool opens) { MPI_Win_fence(opens ? 0 : MPI_MODE_NOSUCCEED, win); },
        [&](bool opens) { opens ? MPI_Win_lock_all(0, win) : MPI_Win_unlock_all(win); },
        [&](bool opens) { opens ? MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win) : MPI_Win_unlock(right(), win); }};
    for (const auto& epoch : epochs) {
        const long mine = 7;
        epoch(true);
        refused_in_an_epoch(win);
        CHECK_OK(MPI_Put(&mine, 1, MPI_LONG, right(), win.at(right(), 0), 1, MPI_LONG, win));
        CHECK_OK(MPI_Accumulate(&mine, 1, MPI_LONG, right(), win.at(right(), 8), 1, MPI_LONG, MPI_SUM, win));
        refused_in_an_epoch(win);
        epoch(false);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK_ALL(win.base<long>(), 256u, [](std::size_t i) { return i == 0 ? 7 : i == 1 ? 21 : 0; });
    MPI_Barrier(MPI_COMM_WORLD);
}

// Nothing to move, MPI_NO_OP's origin, and MPI_BOTTOM.
CASE_BY_KIND(null_buffers_without_data) {
    Returning win(kind);
    MPI_Datatype empty, here;
    MPI_Type_contiguous(0, MPI_LONG, &empty);
    long value = 5, result = -1;
    const int one = 1;
    MPI_Aint address = 0;
    MPI_Get_address(&value, &address);
    MPI_Type_create_hindexed(1, &one, &address, MPI_LONG, &here);
    MPI_Type_commit(&empty);
    MPI_Type_commit(&here);
    const int to = right();
    const MPI_Aint at = win.at(to, 0);
    MPI_Win_fence(0, win);
    for (int round = 0; round < 2; ++round) {
        for (const MPI_Datatype type : {MPI_LONG, MPI_CHAR, here}) {
            CHECK_OK(MPI_Put(nullptr, 0, type, to, at, 0, MPI_LONG, win));
            CHECK_OK(MPI_Get(nullptr, 0, type, to, at, 0, MPI_LONG, win));
            CHECK_OK(MPI_Accumulate(nullptr, 0, type, to, at, 0, type, MPI_SUM, win));
        }
        CHECK_OK(MPI_Put(nullptr, 3, empty, to, at, 0, MPI_LONG, win));
        CHECK_OK(MPI_Fetch_and_op(nullptr, &result, MPI_LONG, to, at, MPI_NO_OP, win));
        CHECK_OK(MPI_Put(MPI_BOTTOM, 1, here, to, win.at(to, 8), 1, MPI_LONG, win));
        CHECK_OK(MPI_Accumulate(MPI_BOTTOM, 1, here, to, win.at(to, 16), 1, MPI_LONG, MPI_SUM, win));
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(result, 0);
    CHECK_EQ(win.base<long>()[1], 5);
    CHECK_EQ(win.base<long>()[2], 10);
    MPI_Type_free(&empty);
    MPI_Type_free(&here);
}

CASE(null_buffers_to_no_process) {
    HOST_CANNOT("the host alone checks them");
    Returning win;
    MPI_Request request[4];
    MPI_Win_lock_all(0, win);
    for (const MPI_Datatype type : {MPI_LONG, MPI_SHORT}) {
        CHECK_OK(MPI_Put(nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, win));
        CHECK_OK(MPI_Get(nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, win));
        CHECK_OK(MPI_Accumulate(nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, MPI_SUM, win));
        CHECK_OK(MPI_Get_accumulate(nullptr, 2, type, nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, MPI_SUM, win));
        CHECK_OK(MPI_Fetch_and_op(nullptr, nullptr, type, MPI_PROC_NULL, 0, MPI_SUM, win));
        CHECK_OK(MPI_Compare_and_swap(nullptr, nullptr, nullptr, type, MPI_PROC_NULL, 0, win));
        CHECK_OK(MPI_Rput(nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, win, &request[0]));
        CHECK_OK(MPI_Rget(nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, win, &request[1]));
        CHECK_OK(MPI_Raccumulate(nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, MPI_SUM, win, &request[2]));
        CHECK_OK(MPI_Rget_accumulate(nullptr, 2, type, nullptr, 2, type, MPI_PROC_NULL, 0, 2, type, MPI_SUM, win,
                                     &request[3]));
        CHECK_OK(MPI_Waitall(4, request, MPI_STATUSES_IGNORE));
    }
    MPI_Win_unlock_all(win);
}
