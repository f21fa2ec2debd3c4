// The fast paths on a window whose first bytes lie on a page with other data: they serve its whole pages, and the
// general path the rest, at every displacement and unit.
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

#include "adopt.h"

using namespace adopt;

namespace {

struct Straddling {
    char* pages = static_cast<char*>(map_pages(2 * kEnough));
    char* base;
    std::size_t bytes;
    MPI_Win win = MPI_WIN_NULL;
    Straddling(std::size_t lead, std::size_t tail, int unit) : base(pages + lead), bytes(2 * kEnough - lead - tail) {
        const Info info{{"osc_adopt", "always"}};
        CHECK_OK(MPI_Win_create(base, static_cast<MPI_Aint>(bytes), unit, info, MPI_COMM_WORLD, &win));
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        CHECK(is_shared(pages + kEnough));
        CHECK(!is_shared(pages));
    }
    ~Straddling() {
        CHECK_OK(MPI_Win_free(&win));
        ::munmap(pages, 2 * kEnough);
    }
    Straddling(const Straddling&) = delete;
    Straddling& operator=(const Straddling&) = delete;
};

}  // namespace

CASE(every_displacement_near_an_edge_is_right) {
    SKIP_IF(size() < 2);
    const int left = (rank() + size() - 1) % size();
    for (const int unit : {1, 3, 8}) {
        const Straddling window(1000, 504, unit);
        const auto last = static_cast<MPI_Aint>((window.bytes - 8) / static_cast<std::size_t>(unit));
        const MPI_Aint edges[] = {0, (4096 - 1000) / unit, static_cast<MPI_Aint>(2 * kEnough - 4096 - 1000) / unit,
                                  last};
        for (const MPI_Aint edge : edges)
            for (MPI_Aint disp = edge - 5; disp <= edge + 5; ++disp) {
                if (disp < 0 || disp > last) continue;
                const std::int64_t sent = 1000 * rank() + disp;
                const std::int64_t one = 1, bits = 2;
                std::int64_t got = -1, before = -1;
                MPI_Win_lock_all(0, window.win);
                CHECK_OK(MPI_Put(&sent, 1, MPI_INT64_T, right(), disp, 1, MPI_INT64_T, window.win));
                CHECK_OK(MPI_Win_flush(right(), window.win));
                CHECK_OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, right(), disp, MPI_SUM, window.win));
                CHECK_OK(MPI_Accumulate(&bits, 1, MPI_INT64_T, right(), disp, 1, MPI_INT64_T, MPI_BXOR, window.win));
                CHECK_OK(MPI_Win_flush(right(), window.win));
                CHECK_OK(MPI_Get(&got, 1, MPI_INT64_T, right(), disp, 1, MPI_INT64_T, window.win));
                CHECK_OK(MPI_Win_unlock_all(window.win));
                CHECK_EQ(before, sent);
                CHECK_EQ(got, (sent + 1) ^ 2);
                MPI_Barrier(MPI_COMM_WORLD);
                std::int64_t here = 0;
                std::memcpy(&here, window.base + disp * unit, sizeof here);
                CHECK_EQ(here, (1000 * left + disp + 1) ^ 2);
                MPI_Barrier(MPI_COMM_WORLD);
            }
    }
}

// The pieces of one operation lie before, across, between and behind the edges.
CASE(a_datatype_reaches_over_both_edges) {
    SKIP_IF(size() < 2);
    constexpr int kPiece = 3;
    const int left = (rank() + size() - 1) % size();
    const Straddling window(1000, 504, 8);
    constexpr MPI_Aint kHead = 4096 - 1000, kTail = 2 * kEnough - 4096 - 1000;
    const MPI_Aint at[] = {0, kHead - 8, kHead + 16, kTail - 64, kTail - 8, kTail + 16};
    constexpr int kPieces = std::size(at);
    MPI_Datatype pieces = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed_block(kPieces, kPiece, at, MPI_INT64_T, &pieces);
    MPI_Type_commit(&pieces);
    std::int64_t sent[kPieces * kPiece], got[kPieces * kPiece] = {};
    for (int i = 0; i < kPieces * kPiece; ++i)
        sent[i] = 1000 * rank() + i;
    MPI_Win_fence(0, window.win);
    CHECK_OK(MPI_Put(sent, kPieces * kPiece, MPI_INT64_T, right(), 0, 1, pieces, window.win));
    MPI_Win_fence(0, window.win);
    CHECK_OK(MPI_Get_accumulate(sent, kPieces * kPiece, MPI_INT64_T, got, kPieces * kPiece, MPI_INT64_T, right(), 0, 1,
                                pieces, MPI_SUM, window.win));
    MPI_Win_fence(0, window.win);
    for (int i = 0; i < kPieces * kPiece; ++i) {
        std::int64_t here = 0;
        std::memcpy(&here, window.base + at[i / kPiece] + i % kPiece * 8, sizeof here);
        CHECK_EQ(here, 2 * (1000 * left + i));
        CHECK_EQ(got[i], sent[i]);
    }
    CHECK_OK(MPI_Get(got, kPieces * kPiece, MPI_INT64_T, right(), 0, 1, pieces, window.win));
    MPI_Win_fence(0, window.win);
    for (int i = 0; i < kPieces * kPiece; ++i)
        CHECK_EQ(got[i], 2 * sent[i]);
    MPI_Type_free(&pieces);
}

// The owner's data around the window stays as it is, also for displacements whose product with the unit overflows.
CASE(displacements_beside_the_window_are_refused) {
    SKIP_IF(size() < 2);
    constexpr MPI_Aint kMost = std::numeric_limits<MPI_Aint>::max();
    for (const int unit : {1, 8}) {
        const Straddling window(1000, 504, unit);
        const auto end = static_cast<MPI_Aint>(window.bytes / static_cast<std::size_t>(unit));
        const std::int64_t value = -1;
        const std::int64_t row[32] = {};
        MPI_Win_lock_all(0, window.win);
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, right(), (kEnough / 8) * 8 / unit, 1, MPI_INT64_T, window.win));
        for (const MPI_Aint disp : {MPI_Aint{-1}, -kMost, end, end + 1, MPI_Aint{1} << 60, MPI_Aint{1} << 61, kMost,
                                    kMost - 8, MPI_Aint{-(MPI_Aint{1} << 61)}}) {
            CHECK(MPI_Put(&value, 1, MPI_INT64_T, right(), disp, 1, MPI_INT64_T, window.win) != MPI_SUCCESS);
            CHECK(MPI_Put(row, 32, MPI_INT64_T, right(), disp, 32, MPI_INT64_T, window.win) != MPI_SUCCESS);
            CHECK(MPI_Accumulate(&value, 1, MPI_INT64_T, right(), disp, 1, MPI_INT64_T, MPI_SUM, window.win) !=
                  MPI_SUCCESS);
        }
        CHECK_CLASS(MPI_Put(row, 32, MPI_INT64_T, right(), end - 1, 32, MPI_INT64_T, window.win), MPI_ERR_RMA_RANGE);
        CHECK(MPI_Put(row, -1, MPI_INT64_T, right(), (kEnough / 8) * 8 / unit, -1, MPI_INT64_T, window.win) !=
              MPI_SUCCESS);
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(window.pages, 1000, [](std::size_t) { return 0; });
        CHECK_ALL(window.base + window.bytes, 504, [](std::size_t) { return 0; });
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// OSC_ADOPT=auto copies no window of so few pages, but it loads and stores what is shared already (adopt.told.n2).
CASE(a_small_window_across_the_end_of_adopted_memory) {
    SKIP_IF(size() < 2);
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    adopt_once(memory, kEnough);
    constexpr std::size_t kBytes = 12288;
    char* const base = memory + kEnough - 8192;
    {
        const Window window(base, kBytes, "auto");
        CHECK(!is_shared(memory + kEnough));
        const std::vector<char> sent(kBytes, static_cast<char>(rank() + 1));
        MPI_Win_fence(0, window.win);
        CHECK_OK(MPI_Put(sent.data(), kBytes, MPI_CHAR, right(), 0, kBytes, MPI_CHAR, window.win));
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        const int left = (rank() + size() - 1) % size();
        CHECK_ALL(base, kBytes, [left](std::size_t) { return static_cast<char>(left + 1); });
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ::munmap(memory, 2 * kEnough);
}
