// Derived datatypes on either side, different ones on each, compared with what the host's MPI_Pack and MPI_Unpack do;
// more pieces than one system call takes; and types that the user frees while the operation may still be queued.
#include <algorithm>
#include <cstring>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Win_flush")

namespace {

// Each holds 24 ints, in a span of at most kSpan bytes around its origin, which lies kBefore bytes into a buffer.
constexpr int kInts = 24;
constexpr std::size_t kSpan = 4096, kBefore = 1024;

std::vector<MPI_Datatype> layouts() {
    std::vector<MPI_Datatype> all(10);
    int lengths[] = {3, 0, 5, 4}, places[] = {0, 90, 10, 40};
    MPI_Aint offsets[] = {400, 0, 16, 120};
    MPI_Type_contiguous(kInts, MPI_INT, &all[0]);
    MPI_Type_vector(8, 3, 7, MPI_INT, &all[1]);
    MPI_Datatype twelve, six;
    MPI_Type_indexed(4, lengths, places, MPI_INT, &twelve);
    MPI_Type_create_hvector(2, 1, 500, twelve, &all[2]);
    MPI_Type_hindexed(4, lengths, offsets, MPI_INT, &six);
    MPI_Type_create_hvector(2, 1, 600, six, &all[3]);
    // Negative strides and lower bounds.
    MPI_Type_vector(6, 4, -9, MPI_INT, &all[4]);
    int sizes[] = {5, 6, 7}, part[] = {2, 3, 4}, from[] = {1, 2, 3};
    MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_C, MPI_INT, &all[5]);
    MPI_Type_create_subarray(3, sizes, part, from, MPI_ORDER_FORTRAN, MPI_INT, &all[6]);
    MPI_Datatype one;
    MPI_Type_create_resized(MPI_INT, -4, 12, &one);
    MPI_Type_contiguous(kInts, one, &all[7]);
    MPI_Datatype members[] = {MPI_INT, one, MPI_INT};
    int counts[] = {4, 6, 14};
    MPI_Aint starts[] = {200, 4, 300};
    MPI_Type_create_struct(3, counts, starts, members, &all[8]);
    int ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 1};
    int grid[] = {2, 2}, whole[] = {8, 12};
    MPI_Type_create_darray(4, 1, 2, whole, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &all[9]);
    for (MPI_Datatype& type : all)
        MPI_Type_commit(&type);
    for (MPI_Datatype* type : {&twelve, &six, &one})
        MPI_Type_free(type);
    return all;
}

using Buffer = std::vector<char>;

Buffer numbered(int seed) {
    Buffer buffer(kSpan);
    for (std::size_t i = 0; i < kSpan / 4; ++i) {
        const int value = seed * 10000 + static_cast<int>(i);
        std::memcpy(&buffer[i * 4], &value, 4);
    }
    return buffer;
}

// Computes the expected contents of a buffer after a transfer from one layout to the other.
void move(const Buffer& from, MPI_Datatype from_type, Buffer& to, MPI_Datatype to_type) {
    char packed[kInts * 4];
    int position = 0;
    MPI_Pack(&from[kBefore], 1, from_type, packed, sizeof packed, &position, MPI_COMM_SELF);
    CHECK_EQ(position, kInts * 4);
    position = 0;
    MPI_Unpack(packed, sizeof packed, &position, &to[kBefore], 1, to_type, MPI_COMM_SELF);
}

void check_ints(const Buffer& got, const Buffer& wanted, const char* what, std::size_t a, std::size_t b) {
    if (got == wanted) return;
    const auto at = std::mismatch(got.begin(), got.end(), wanted.begin()).first - got.begin();
    osct::fail(__FILE__, __LINE__,
               std::string(what) + " of layouts " + std::to_string(a) + " and " + std::to_string(b) +
                   ": first wrong byte " + std::to_string(at));
}

}  // namespace

CASE(each_layout_with_each) {
    std::vector<MPI_Datatype> types = layouts();
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, kSpan);
        const MPI_Win w = win;
        const int target = right();
        const MPI_Aint at = win.at(target, kBefore);
        constexpr int kAll = static_cast<int>(kSpan);
        const Buffer old = numbered(7), mine = numbered(3 + rank());
        Buffer seen(kSpan);
        MPI_Win_lock_all(0, w);
        const auto reset = [&] {
            MPI_Put(old.data(), kAll, MPI_BYTE, target, win.at(target, 0), kAll, MPI_BYTE, w);
            MPI_Win_flush(target, w);
        };
        const auto look = [&] {
            MPI_Win_flush(target, w);
            MPI_Get(seen.data(), kAll, MPI_BYTE, target, win.at(target, 0), kAll, MPI_BYTE, w);
            MPI_Win_flush(target, w);
        };
        for (std::size_t a = 0; a < types.size(); ++a) {
            for (std::size_t b = 0; b < types.size(); ++b) {
                Buffer wanted = old, fetched = mine, wanted_fetched = mine;
                reset();
                CHECK_OK(MPI_Put(&mine[kBefore], 1, types[a], target, at, 1, types[b], w));
                look();
                move(mine, types[a], wanted, types[b]);
                check_ints(seen, wanted, "put", a, b);
                CHECK_OK(MPI_Get(&fetched[kBefore], 1, types[b], target, at, 1, types[a], w));
                MPI_Win_flush(target, w);
                move(wanted, types[a], wanted_fetched, types[b]);
                check_ints(fetched, wanted_fetched, "get", a, b);
                reset();
                wanted = wanted_fetched = old;
                move(mine, types[a], wanted, types[b]);
                fetched = wanted_fetched = mine;
                move(old, types[b], wanted_fetched, types[a]);
                CHECK_OK(MPI_Get_accumulate(&mine[kBefore], 1, types[a], &fetched[kBefore], 1, types[a], target, at, 1,
                                            types[b], MPI_REPLACE, w));
                look();
                check_ints(seen, wanted, "get_accumulate", a, b);
                check_ints(fetched, wanted_fetched, "get_accumulate's result", a, b);
            }
        }
        MPI_Win_unlock_all(w);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (MPI_Datatype& type : types)
        MPI_Type_free(&type);
}

// 5,000 pieces on one side and on both, more than a vectored system call takes.
CASE(five_thousand_pieces) {
    constexpr int kPieces = 5000;
    std::vector<int> lengths(kPieces), places(kPieces), out(kPieces * 4), in(kPieces * 4, -1);
    int total = 0;
    for (int i = 0; i < kPieces; ++i) {
        const auto at = static_cast<std::size_t>(i);
        lengths[at] = 1 + i % 2;
        places[at] = i * 4;
        total += lengths[at];
    }
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<int>(i) + rank();
    MPI_Datatype pieces;
    MPI_Type_indexed(kPieces, lengths.data(), places.data(), MPI_INT, &pieces);
    MPI_Type_commit(&pieces);
    const int target = right();
    const auto covered = [](std::size_t i) { return i % 4 < 1 + i / 4 % 2; };
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, out.size() * 4);
        MPI_Win_lock_all(0, win);
        CHECK_OK(MPI_Put(out.data(), 1, pieces, target, win.at(target, 0), 1, pieces, win));
        MPI_Win_flush(target, win);
        const int all = kPieces * 4;
        MPI_Get(in.data(), all, MPI_INT, target, win.at(target, 0), all, MPI_INT, win);
        MPI_Win_flush(target, win);
        CHECK_ALL(in.data(), in.size(), [&](std::size_t i) { return covered(i) ? static_cast<int>(i) + rank() : 0; });
        std::fill(in.begin(), in.end(), -1);
        MPI_Get(in.data(), total, MPI_INT, target, win.at(target, 0), 1, pieces, win);
        MPI_Win_flush(target, win);
        std::size_t next = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (covered(i)) CHECK_EQ(in[next++], static_cast<int>(i) + rank());
        }
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&pieces);
}

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
