// Operands: the operations and datatypes that an accumulate accepts, ignored arguments, sizes that must agree, absolute
// addresses, and results with a layout of their own.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Raccumulate", "MPI_Get_accumulate",
             "MPI_Rget_accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap")

namespace {

void user_sum(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i)
        static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

}  // namespace

CASE_BY_KIND(operations_of_the_user) {
    HOST_CANNOT("the host alone takes them in part");
    Returning win(kind);
    MPI_Op mine;
    MPI_Op_create(user_sum, 1, &mine);
    const int one = 1;
    int result = -1;
    const MPI_Aint at = win.at(right(), 0);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Accumulate(&one, 1, MPI_INT, right(), at, 1, MPI_INT, mine, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Raccumulate(&one, 1, MPI_INT, right(), at, 1, MPI_INT, mine, win, &request), MPI_ERR_OP);
    CHECK_CLASS(MPI_Get_accumulate(&one, 1, MPI_INT, &result, 1, MPI_INT, right(), at, 1, MPI_INT, mine, win),
                MPI_ERR_OP);
    CHECK_CLASS(MPI_Fetch_and_op(&one, &result, MPI_INT, right(), at, mine, win), MPI_ERR_OP);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<int>()[0], 0);
    CHECK_EQ(result, -1);
    MPI_Op_free(&mine);
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE_BY_KIND(no_op_only_fetches) {
    HOST_CANNOT("the host alone takes it in an accumulate");
    Returning win(kind);
    win.base<long>()[0] = 1000 + rank();
    win.base<long>()[1] = 2000 + rank();
    MPI_Win_fence(0, win);
    const long other[2] = {5, 6};
    long seen[2] = {-1, -1};
    const MPI_Aint at = win.at(right(), 0);
    for (int count : {1, 2})
        CHECK_CLASS(MPI_Accumulate(other, count, MPI_LONG, right(), at, count, MPI_LONG, MPI_NO_OP, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate_c(other, 1, MPI_LONG, right(), at, 1, MPI_LONG, MPI_NO_OP, win), MPI_ERR_OP);
    // Where it is allowed, the origin's arguments mean nothing, whatever they are.
    CHECK_OK(MPI_Get_accumulate(nullptr, -5, MPI_DATATYPE_NULL, seen, 2, MPI_LONG, right(), at, 2, MPI_LONG, MPI_NO_OP,
                                win));
    long fetched = -1;
    CHECK_OK(MPI_Fetch_and_op(nullptr, &fetched, MPI_LONG, right(), at, MPI_NO_OP, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(fetched, 1000L + right());
    CHECK_EQ(seen[0], 1000L + right());
    CHECK_EQ(seen[1], 2000L + right());
    MPI_Win_lock_all(0, win);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_Raccumulate(other, 1, MPI_LONG, right(), at, 1, MPI_LONG, MPI_NO_OP, win, &request), MPI_ERR_OP);
    CHECK_OK(
        MPI_Rget_accumulate(other, 2, MPI_LONG, seen, 2, MPI_LONG, right(), at, 2, MPI_LONG, MPI_NO_OP, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(seen[0], 1000L + right());
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<long>()[0], 1000L + rank());
    CHECK_EQ(win.base<long>()[1], 2000L + rank());
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE_BY_KIND(accumulates_of_one_predefined_type) {
    HOST_CANNOT("the host alone does not check this");
    Returning win(kind, 128);
    MPI_Datatype mixed, ints, strided;
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, 8};
    const MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, parts, &mixed);
    MPI_Type_contiguous(4, MPI_INT, &ints);
    MPI_Type_vector(4, 1, 2, MPI_INT, &strided);
    for (MPI_Datatype* type : {&mixed, &ints, &strided})
        MPI_Type_commit(type);
    int out[8] = {1, 2, 3, 4, 5, 6, 7, 8}, result[8] = {};
    const MPI_Aint at = win.at(right(), 0);
    MPI_Win_fence(0, win);
    CHECK_CLASS(MPI_Accumulate(out, 1, MPI_INT, right(), at, 1, MPI_FLOAT, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(out, 2, MPI_INT, right(), at, 1, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(out, 1, mixed, right(), at, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(out, 1, mixed, right(), at, 1, mixed, MPI_REPLACE, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Get_accumulate(out, 1, MPI_INT, result, 1, mixed, right(), at, 1, MPI_INT, MPI_SUM, win),
                MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Fetch_and_op(out, result, ints, right(), at, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Compare_and_swap(out, out, result, ints, right(), at, win), MPI_ERR_TYPE);
    // Both sides of MPI_INT, in layouts that differ.
    CHECK_OK(MPI_Accumulate(out, 1, ints, right(), at, 1, strided, MPI_SUM, win));
    CHECK_OK(MPI_Accumulate(out, 1, strided, right(), at, 4, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    const int wanted[] = {1 + 1, 3, 2 + 5, 7, 3, 0, 4, 0};
    CHECK_ALL(win.base<int>(), 8u, [&](std::size_t i) { return wanted[i]; });
    for (MPI_Datatype* type : {&mixed, &ints, &strided})
        MPI_Type_free(type);
}

// As over MPICH; the target's type decides.
CASE_BY_KIND(integers_of_the_other_sign) {
    Window win(kind, 64);
    const long wide[] = {-3, -3};
    const unsigned narrow[] = {7, 7};
    int seen[] = {-1, -1};
    const MPI_Aint at = win.at(right(), 0);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Accumulate(wide, 1, MPI_LONG, right(), at, 1, MPI_UNSIGNED_LONG, MPI_SUM, win));
    CHECK_OK(MPI_Accumulate(narrow, 2, MPI_UNSIGNED, right(), at + 16, 2, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Get_accumulate(narrow, 2, MPI_UNSIGNED, seen, 2, MPI_INT, right(), at + 16, 2, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(0, win);
    if (osct::served_by_osc())
        CHECK_OK(MPI_Accumulate(wide, 1, MPI_LONG, right(), at + 24, 1, MPI_UNSIGNED_LONG, MPI_MAX, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(win.base<long>()[0], -3L);
    CHECK_ALL(win.base<int>() + 4, 2u, [](std::size_t) { return 14; });
    CHECK_ALL(seen, 2u, [](std::size_t) { return 7; });
    if (osct::served_by_osc()) CHECK_EQ(win.base<long>()[3], -3L);
}

// Both hosts take it; MPICH moves the data of a put all the same.
CASE_BY_KIND(data_onto_no_elements) {
    HOST_CANNOT("the host alone writes behind the target's elements");
    Returning win(kind);
    int values[2] = {5, 5};
    const MPI_Aint at = win.at(right(), 0);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(values, 1, MPI_INT, right(), at, 0, MPI_INT, win));
    CHECK_OK(MPI_Put(values, 2, MPI_INT, right(), at, 0, MPI_DOUBLE, win));
    CHECK_OK(MPI_Get(values, 0, MPI_INT, right(), at, 2, MPI_INT, win));
    CHECK_OK(MPI_Accumulate(values, 2, MPI_INT, right(), at, 0, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_ALL(win.base<int>(), 8u, [](std::size_t) { return 0; });
    CHECK_ALL(values, 2u, [](std::size_t) { return 5; });
}

CASE_BY_KIND(data_that_does_not_fit) {
    HOST_CANNOT("the host alone writes behind the buffer or crashes");
    Returning win(kind);
    for (int i = 0; i < 8; ++i)
        win.base<int>()[i] = 7;
    MPI_Win_fence(0, win);
    int buffer[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const MPI_Aint at = win.at(right(), 0);
    CHECK_CLASS(MPI_Get(buffer, 2, MPI_INT, right(), at, 4, MPI_INT, win), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Put(buffer, 4, MPI_INT, right(), at, 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Get_accumulate(buffer, 4, MPI_INT, buffer + 4, 2, MPI_INT, right(), at, 4, MPI_INT, MPI_SUM, win),
                MPI_ERR_TRUNCATE);
    CHECK_ALL(buffer, 8u, [](std::size_t) { return -1; });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_ALL(win.base<int>(), 8u, [](std::size_t) { return 7; });
}

CASE_BY_KIND(absolute_addresses_at_the_origin) {
    Window win(kind, 64);
    int first[2] = {rank() * 10 + 1, rank() * 10 + 2}, second = rank() * 10 + 3;
    int got[2] = {-1, -1}, last = -1;
    const auto absolute = [](int* pair, int* single) {
        const int lengths[] = {2, 1};
        MPI_Aint places[2];
        MPI_Get_address(pair, &places[0]);
        MPI_Get_address(single, &places[1]);
        MPI_Datatype type;
        MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
        MPI_Type_commit(&type);
        return type;
    };
    MPI_Datatype from = absolute(first, &second), into = absolute(got, &last);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(MPI_BOTTOM, 1, from, right(), win.at(right(), 0), 3, MPI_INT, win));
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Accumulate(MPI_BOTTOM, 1, from, right(), win.at(right(), 0), 3, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Get(MPI_BOTTOM, 1, into, right(), win.at(right(), 0), 3, MPI_INT, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_ALL(win.base<int>(), 3u, [](std::size_t i) { return 2 * (left() * 10 + static_cast<int>(i) + 1); });
    CHECK_EQ(got[0], 2 * (rank() * 10 + 1));
    CHECK_EQ(got[1], 2 * (rank() * 10 + 2));
    CHECK_EQ(last, 2 * (rank() * 10 + 3));
    MPI_Type_free(&from);
    MPI_Type_free(&into);
}

// Origin, result and target of one get_accumulate each in a layout of their own.
CASE_BY_KIND(results_of_another_layout) {
    Window win(kind, 256);
    MPI_Datatype pairs, strided;
    MPI_Type_contiguous(2, MPI_LONG, &pairs);
    MPI_Type_vector(4, 1, 3, MPI_LONG, &strided);
    MPI_Type_commit(&pairs);
    MPI_Type_commit(&strided);
    for (int i = 0; i < 8; ++i)
        win.base<long>()[i] = rank() * 100 + i;
    MPI_Win_fence(0, win);
    const long out[4] = {1000, 2000, 3000, 4000};
    long result[12];
    std::fill_n(result, 12, -9L);
    CHECK_OK(
        MPI_Get_accumulate(out, 2, pairs, result, 1, strided, right(), win.at(right(), 16), 4, MPI_LONG, MPI_SUM, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_ALL(result, 12u,
              [](std::size_t i) { return i % 3 == 0 ? right() * 100 + static_cast<long>(i / 3) + 2 : -9L; });
    CHECK_ALL(win.base<long>(), 8u, [](std::size_t i) {
        const long before = rank() * 100 + static_cast<long>(i);
        return i >= 2 && i < 6 ? before + 1000 * (static_cast<long>(i) - 1) : before;
    });
    MPI_Type_free(&pairs);
    MPI_Type_free(&strided);
}
