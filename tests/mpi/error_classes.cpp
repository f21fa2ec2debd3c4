// Every error class of the chapter, each kind of call out of turn, and that a window works on after all of them.
#include <functional>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Win_lock", "MPI_Win_start", "MPI_Win_post", "MPI_Win_fence",
             "MPI_Win_create_dynamic")

CASE(every_class) {
    HOST_CANNOT("the host alone gives other classes, or does not check");
    const osct::WithoutObject without_object;
    Returning window, dynamic(WindowKind::Dynamic);
    const MPI_Win win = window;
    const ReturningComm comm;
    char memory[64] = "";
    int value = 0;
    MPI_Win none = MPI_WIN_NULL;
    CHECK_CLASS(MPI_Win_fence(0, none), MPI_ERR_WIN);
    CHECK_CLASS(MPI_Win_create(nullptr, 64, 1, MPI_INFO_NULL, comm, &none), MPI_ERR_BASE);
    CHECK_CLASS(MPI_Win_create(memory, -64, 1, MPI_INFO_NULL, comm, &none), MPI_ERR_SIZE);
    CHECK_CLASS(MPI_Win_create(memory, 64, -1, MPI_INFO_NULL, comm, &none), MPI_ERR_DISP);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED + MPI_LOCK_EXCLUSIVE, 0, 0, win), MPI_ERR_LOCKTYPE);
    CHECK_CLASS(MPI_Win_lock_all(MPI_MODE_NOSTORE, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, right(), 1000, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, right(), -1, 1, MPI_INT, win), MPI_ERR_DISP);
    MPI_Win_unlock_all(win);
    CHECK_CLASS(MPI_Win_attach(dynamic, dynamic.base(), 8), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory, 8), MPI_ERR_RMA_FLAVOR);
}

CASE(null_results) {
    HOST_CANNOT("the host alone does not check all of these");
    Returning win;
    void* base = nullptr;
    MPI_Aint bytes = 0;
    int number = 0;
    CHECK_CLASS(MPI_Win_get_attr(win, MPI_WIN_BASE, nullptr, &number), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_get_attr(win, MPI_WIN_SIZE, static_cast<void*>(&base), nullptr), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_shared_query(win, 0, nullptr, &number, static_cast<void*>(&base)), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_shared_query(win, 0, &bytes, nullptr, static_cast<void*>(&base)), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Win_shared_query_c(win, 0, &bytes, &bytes, nullptr), MPI_ERR_ARG);
    const Group own(rank());
    CHECK_OK(MPI_Win_post(own, 0, win));
    CHECK_CLASS(MPI_Win_test(win, nullptr), MPI_ERR_ARG);
    CHECK_OK(MPI_Win_start(own, 0, win));
    CHECK_OK(MPI_Win_complete(win));
    CHECK_OK(MPI_Win_wait(win));
}

// After a returned error the window serves the next call as if there had been none.
CASE_BY_KIND(windows_work_on_after_errors) {
    HOST_CANNOT("the host alone does not check all of these");
    Returning win(kind);
    int value = 0, result = 0;
    const Group own(rank());
    const MPI_Aint there = win.at(right(), 0);
    const std::function<int()> wrong[] = {
        [&] { return MPI_Win_unlock(0, win); },
        [&] { return MPI_Win_lock(-1, 0, 0, win); },
        [&] { return MPI_Win_complete(win); },
        [&] { return MPI_Win_wait(win); },
        [&] { return MPI_Win_fence(-1, win); },
        [&] { return MPI_Put(&value, 1, MPI_INT, right(), there, 1, MPI_INT, win); },
        [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size(), 0, win); },
        [&] { return MPI_Win_post(MPI_GROUP_NULL, 0, win); },
        [&] { return MPI_Win_start(own, MPI_MODE_NOPUT, win); },
    };
    const std::function<int()> wrong_while_locked[] = {
        [&] { return MPI_Put(&value, 1, MPI_INT, size(), there, 1, MPI_INT, win); },
        [&] { return MPI_Put(&value, -1, MPI_INT, right(), there, 1, MPI_INT, win); },
        [&] { return MPI_Put(&value, 1, MPI_DATATYPE_NULL, right(), there, 1, MPI_INT, win); },
        [&] { return MPI_Get(&value, 1, MPI_INT, right(), win.at(right(), 128), 1, MPI_INT, win); },
        [&] { return MPI_Accumulate(&value, 1, MPI_INT, right(), there, 1, MPI_INT, MPI_OP_NULL, win); },
        [&] { return MPI_Fetch_and_op(&value, &result, MPI_FLOAT, right(), there, MPI_BAND, win); },
        [&] { return MPI_Compare_and_swap(&value, &value, &result, MPI_FLOAT, right(), there, win); },
        [&] { return MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win); },
        [&] { return MPI_Win_fence(0, win); },
    };
    int done = 0;
    const auto put_and_check = [&] {
        const int out = rank() * 100 + ++done;
        int in = -1;
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), there, 1, MPI_INT, win));
        CHECK_OK(MPI_Win_flush(right(), win));
        CHECK_OK(MPI_Get(&in, 1, MPI_INT, right(), there, 1, MPI_INT, win));
        CHECK_OK(MPI_Win_flush(right(), win));
        CHECK_EQ(in, out);
    };
    for (const auto& call : wrong) {
        CHECK(call() != MPI_SUCCESS);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win));
        put_and_check();
        CHECK_OK(MPI_Win_unlock(right(), win));
    }
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win));
    for (const auto& call : wrong_while_locked) {
        // A target that is asked by message may be the one to refuse.
        CHECK(call() != MPI_SUCCESS || MPI_Win_flush(right(), win) != MPI_SUCCESS);
        put_and_check();
    }
    CHECK_OK(MPI_Win_unlock(right(), win));
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Win_fence(0, win));
}

CASE(handles_that_are_no_windows) {
    HOST_CANNOT("the host alone takes a freed window for a live one and crashes");
    const osct::WithoutObject without_object;
    long* base = nullptr;
    MPI_Win freed = MPI_WIN_NULL;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &freed);
    MPI_Win copy = freed;
    CHECK_OK(MPI_Win_free(&copy));
    CHECK(copy == MPI_WIN_NULL);
#ifdef MPI_ABI_VERSION
    const MPI_Win other = MPI_WIN_NULL;  // MPICH 5.0.2 crashes on others
#else
    const MPI_Win other = osct::no_handle<MPI_Win>();
#endif
    for (const MPI_Win win : {MPI_WIN_NULL, freed, other}) {
        long value = 0;
        void* attribute = nullptr;
        int flag = 0;
        MPI_Info info;
        MPI_Request request;
        MPI_Group group;
        MPI_Aint bytes = 0;
        MPI_Win handle = win;
        CHECK_CLASS(MPI_Win_free(&handle), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Get_c(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Rput(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win, &request), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Fetch_and_op(&value, &value, MPI_LONG, 0, 0, MPI_SUM, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Compare_and_swap(&value, &value, &value, MPI_LONG, 0, 0, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_flush(0, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_post(MPI_GROUP_EMPTY, 0, win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_attach(win, &value, 8), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_get_attr(win, MPI_WIN_BASE, static_cast<void*>(&attribute), &flag), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_get_info(win, &info), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_get_group(win, &group), MPI_ERR_WIN);
        CHECK_CLASS(MPI_Win_shared_query(win, 0, &bytes, &flag, static_cast<void*>(&attribute)), MPI_ERR_WIN);
    }
    // The host gives the same handle to a new window, which is one again.
    for (int i = 0; i < 3; ++i) {
        MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &copy);
        CHECK_OK(MPI_Win_fence(0, copy));
        CHECK_OK(MPI_Win_free(&copy));
    }
}

// MPI_Alloc_mem's memory is given back once, by its own address, and by nothing else.
CASE(memory_that_was_not_allocated) {
    HOST_CANNOT("the host alone gives any pointer to free()");
    const osct::WithoutObject without_object;
    char own[64];
    char *block = nullptr, *base = nullptr;
    CHECK_OK(MPI_Alloc_mem(256, MPI_INFO_NULL, &block));
    CHECK_CLASS(MPI_Free_mem(own), MPI_ERR_BASE);
    CHECK_CLASS(MPI_Free_mem(block + 64), MPI_ERR_BASE);
    block[255] = 1;
    CHECK_OK(MPI_Free_mem(block));
    CHECK_CLASS(MPI_Free_mem(block), MPI_ERR_BASE);
    MPI_Win win;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CHECK_CLASS(MPI_Free_mem(base), MPI_ERR_BASE);
    const char out = static_cast<char>(rank() + 1);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_CHAR, right(), 63, 1, MPI_CHAR, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(base[63], static_cast<char>(left() + 1));
    MPI_Win_free(&win);
}

CASE(locks_out_of_turn) {
    HOST_CANNOT("the host alone does not check all of these");
    Returning win;
    CHECK_CLASS(MPI_Win_unlock(right(), win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), MPI_MODE_NOCHECK, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    if (size() > 1) CHECK_CLASS(MPI_Win_unlock(rank(), win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock(right(), win));
    CHECK_CLASS(MPI_Win_unlock(right(), win), MPI_ERR_RMA_SYNC);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(rank(), win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock_all(win));
    // None of these calls has left a lock held: all processes acquire all locks exclusively.
    for (int target = 0; target < size(); ++target) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        CHECK_OK(MPI_Win_unlock(target, win));
    }
}

CASE(fences_out_of_turn) {
    HOST_CANNOT("the host alone does not check all of these");
    Returning win;
    int value = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock(right(), win);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock_all(win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_complete(win);
    MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
    CHECK_CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_wait(win);
    // And the other way round: a fence epoch that has operations admits no other.
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, right(), 0, 1, MPI_INT, win));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_post(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(right(), win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

CASE(start_and_post_out_of_turn) {
    HOST_CANNOT("the host alone does not check all of these");
    Returning win;
    int flag = 0;
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_complete(win));
    CHECK_CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
    CHECK_CLASS(MPI_Win_post(MPI_GROUP_EMPTY, 0, win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_wait(win));
    CHECK_CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
}

CASE_BY_KIND(targets_outside_the_started_group) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host alone does not check this");
    Returning win(kind);
    const Group origins(left()), targets(right());
    const int out = rank() + 5, no = -1;
    MPI_Win_post(origins, 0, win);
    MPI_Win_start(targets, 0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
    CHECK_CLASS(MPI_Put(&no, 1, MPI_INT, rank(), win.at(rank(), 4), 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_complete(win));
    MPI_Win_wait(win);
    CHECK_EQ(win.base<int>()[0], left() + 5);
    CHECK_EQ(win.base<int>()[1], 0);
}

CASE(groups_with_foreign_processes) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host alone does not check this");
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &half);
    int* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, half, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const Group stranger(right()), own(rank());
    MPI_Group both = group_of({rank(), right()});
    if (right() % 2 != rank() % 2) {
        CHECK_CLASS(MPI_Win_post(stranger, 0, win), MPI_ERR_GROUP);
        CHECK_CLASS(MPI_Win_start(both, 0, win), MPI_ERR_GROUP);
    }
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    CHECK_OK(MPI_Win_post(own, 0, win));
    CHECK_OK(MPI_Win_start(own, 0, win));
    CHECK_OK(MPI_Win_complete(win));
    CHECK_OK(MPI_Win_wait(win));
    MPI_Group_free(&both);
    MPI_Win_free(&win);
    MPI_Comm_free(&half);
}

CASE(requests_outside_epochs) {
    HOST_CANNOT("the host alone does not check this");
    Returning win;
    int value = 1, result = 0;
    const auto refused = [&] {
        MPI_Request r = MPI_REQUEST_NULL;
        CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT, right(), 0, 1, MPI_INT, win, &r), MPI_ERR_RMA_SYNC);
        CHECK_CLASS(MPI_Rget(&result, 1, MPI_INT, right(), 0, 1, MPI_INT, win, &r), MPI_ERR_RMA_SYNC);
        CHECK_CLASS(MPI_Raccumulate(&value, 1, MPI_INT, right(), 0, 1, MPI_INT, MPI_SUM, win, &r), MPI_ERR_RMA_SYNC);
        CHECK_CLASS(
            MPI_Rget_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, right(), 0, 1, MPI_INT, MPI_SUM, win, &r),
            MPI_ERR_RMA_SYNC);
        CHECK_CLASS(MPI_Rput_c(&value, 1, MPI_INT, right(), 0, 1, MPI_INT, win, &r), MPI_ERR_RMA_SYNC);
        CHECK(r == MPI_REQUEST_NULL);
    };
    MPI_Group all;
    MPI_Win_get_group(win, &all);
    refused();
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, right(), 4, 1, MPI_INT, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    refused();
    MPI_Win_post(all, 0, win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
    refused();
    MPI_Win_complete(win);
    MPI_Win_start(all, 0, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    refused();
    CHECK_EQ(win.base<int>()[0], 0);
    CHECK_EQ(win.base<int>()[1], 1);
    MPI_Group_free(&all);
}

CASE(predefined_attributes_are_fixed) {
    OPENMPI_DECIDES("it raises MPI_ERR_OTHER");
    Returning win;
    int mine = 0;
    for (const int key : {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT, MPI_WIN_CREATE_FLAVOR, MPI_WIN_MODEL}) {
        void *before = nullptr, *after = nullptr;
        int found = 0;
        CHECK_OK(MPI_Win_get_attr(win, key, static_cast<void*>(&before), &found));
        CHECK_CLASS(MPI_Win_set_attr(win, key, &mine), MPI_ERR_KEYVAL);
        CHECK_CLASS(MPI_Win_delete_attr(win, key), MPI_ERR_KEYVAL);
        CHECK_OK(MPI_Win_get_attr(win, key, static_cast<void*>(&after), &found));
        CHECK(found);
        CHECK(after == before);
    }
}

CASE(segments_of_ranks_that_are_not_there) {
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make");
    Returning window;
    MPI_Aint bytes = -1;
    int unit = -1;
    void* base = nullptr;
    for (const int peer : {size(), -100})
        CHECK_CLASS(MPI_Win_shared_query(window, peer, &bytes, &unit, &base), MPI_ERR_RANK);
}

CASE(dynamic_windows_have_no_segment) {
    HOST_CANNOT("the host alone gives another class");
    Returning window(WindowKind::Dynamic);
    MPI_Aint bytes = -1;
    int unit = -1;
    void* base = nullptr;
    CHECK_CLASS(MPI_Win_shared_query(window, rank(), &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
    CHECK_CLASS(MPI_Win_shared_query(window, MPI_PROC_NULL, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
}

CASE(units_beyond_int_and_no_info) {
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make");
    constexpr MPI_Aint kUnit = MPI_Aint{1} << 33;
    void* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate_c(8, kUnit, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Aint bytes = -1, wide = -1;
    int unit = -1;
    CHECK_CLASS(MPI_Win_shared_query(win, rank(), &bytes, &unit, static_cast<void*>(&base)), MPI_ERR_DISP);
    CHECK_OK(MPI_Win_shared_query_c(win, rank(), &bytes, &wide, static_cast<void*>(&base)));
    CHECK_EQ(wide, kUnit);
    CHECK_CLASS(MPI_Win_set_info(win, MPI_INFO_NULL), MPI_ERR_INFO);
    const auto no_info = osct::no_handle<MPI_Info>();
    CHECK_CLASS(MPI_Win_set_info(win, no_info), MPI_ERR_INFO);
    MPI_Win_free(&win);
    const osct::WithoutObject without_object;
    CHECK_CLASS(MPI_Alloc_mem(8, no_info, static_cast<void*>(&base)), MPI_ERR_INFO);
    const ReturningComm comm;
    CHECK_CLASS(MPI_Win_allocate(8, 1, no_info, comm, static_cast<void*>(&base), &win), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Win_create_dynamic(no_info, comm, &win), MPI_ERR_INFO);
}
