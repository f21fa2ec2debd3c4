// Derived datatypes whose operations may go another way than those of single elements, and types that the user frees
// while the operation may still be queued.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Win_flush")

// Many pieces, `stride` elements apart, may go another way to a target's memory than one element: by its agent, where
// the element goes by process_vm_*. Accumulates of a process keep their order all the same, and no process's is lost.
static void many_pieces_and_single_elements(WindowKind kind, int stride) {
    constexpr int kPieces = 300;
    constexpr int kRounds = 40;
    MPI_Datatype pieces;
    MPI_Type_vector(kPieces, 1, stride, MPI_INT, &pieces);
    MPI_Type_commit(&pieces);
    const std::vector<int> ones(kPieces, 1);
    std::vector<int> fetched(kPieces), expected(kPieces);
    const std::size_t apart = static_cast<std::size_t>(stride) * sizeof(int);
    Window win(kind, kPieces * apart);
    MPI_Win_lock_all(0, win);
    const int next = right();
    for (int round = 0; round < kRounds; ++round) {
        const int value = round * 100;
        const auto element = static_cast<std::size_t>(round * 7 % kPieces);
        CHECK_OK(MPI_Accumulate(ones.data(), kPieces, MPI_INT, next, win.at(next, 0), 1, pieces, MPI_SUM, win));
        CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT, next, win.at(next, element * apart), 1, MPI_INT, MPI_REPLACE, win));
        CHECK_OK(MPI_Get_accumulate(ones.data(), kPieces, MPI_INT, fetched.data(), kPieces, MPI_INT, next,
                                    win.at(next, 0), 1, pieces, MPI_SUM, win));
        MPI_Win_flush(next, win);
        for (int& one : expected)
            ++one;
        expected[element] = value;
        CHECK(fetched == expected);
        for (int& one : expected)
            ++one;
    }
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    // All processes on the gaps of rank 0, which nothing has touched.
    for (int round = 0; round < kRounds; ++round) {
        MPI_Accumulate(ones.data(), kPieces, MPI_INT, 0, win.at(0, 4), 1, pieces, MPI_SUM, win);
        for (std::size_t i = 0; i < kPieces; i += 5)
            MPI_Accumulate(ones.data(), 1, MPI_INT, 0, win.at(0, 4 + i * apart), 1, MPI_INT, MPI_SUM, win);
    }
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Get_accumulate(ones.data(), 0, MPI_INT, fetched.data(), kPieces, MPI_INT, 0, win.at(0, 4), 1, pieces, MPI_NO_OP,
                       win);
    MPI_Win_flush(0, win);
    CHECK_ALL(fetched.data(), fetched.size(), [](std::size_t i) { return size() * kRounds * (i % 5 == 0 ? 2 : 1); });
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&pieces);
}
CASE_BY_KIND(many_pieces_and_single_elements) {
    many_pieces_and_single_elements(kind, 3);
    many_pieces_and_single_elements(kind, 1030);
}

CASE_BY_KIND(freed_while_queued) {
    Window win(kind, 1024);
    const int target = right();
    std::vector<int> out(64);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < 50; ++round) {
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = round * 100 + static_cast<int>(i);
        MPI_Datatype from, to, unrelated;
        MPI_Type_vector(8, 1, 8, MPI_INT, &from);
        MPI_Type_vector(4, 2, 5, MPI_INT, &to);
        MPI_Type_commit(&from);
        MPI_Type_commit(&to);
        MPI_Put(out.data(), 1, from, target, win.at(target, 0), 1, to, win);
        MPI_Accumulate(out.data(), 1, from, target, win.at(target, 512), 1, to, MPI_REPLACE, win);
        MPI_Type_free(&from);
        MPI_Type_free(&to);
        // Takes the freed handle over, for other pieces.
        MPI_Type_vector(3, 9, 11, MPI_DOUBLE, &unrelated);
        MPI_Type_commit(&unrelated);
        MPI_Win_flush(target, win);
        MPI_Type_free(&unrelated);
        for (std::size_t place : {0, 512}) {
            int in[20];
            MPI_Get(in, 20, MPI_INT, target, win.at(target, place), 20, MPI_INT, win);
            MPI_Win_flush(target, win);
            for (int i = 0; i < 8; ++i)
                CHECK_EQ(in[i / 2 * 5 + i % 2], round * 100 + i * 8);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}
