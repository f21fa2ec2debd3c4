// Counts and sizes that do not fit an int, through the _c forms: the calls with ordinary values everywhere; with
// OSC_TEST_FULL=1, and memory to spare, 3 GiB in one call and more than 2^31 elements.
#include <climits>
#include <cstring>
#include <fstream>
#include <string>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put_c", "MPI_Get_c", "MPI_Accumulate_c", "MPI_Get_accumulate_c", "MPI_Rput_c",
             "MPI_Rget_c", "MPI_Raccumulate_c", "MPI_Rget_accumulate_c", "MPI_Win_create_c", "MPI_Win_allocate_c",
             "MPI_Win_allocate_shared_c", "MPI_Win_shared_query_c")

namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

// Whether all ranks together can have `bytes` bytes: the verdict is the same on all.
bool enough_memory(std::size_t bytes) {
    std::ifstream file("/proc/meminfo");
    std::string word;
    while (word != "MemAvailable:" && file >> word) {
    }
    unsigned long available = 0;  // KiB
    file >> available;
    MPI_Bcast(&available, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    return available > (bytes + kGiB) >> 10;
}

unsigned char pattern(std::size_t at) {
    return static_cast<unsigned char>((at >> 12) * 31 + at * 7 + 1);
}

// Rank 0 puts 3 GiB less a few bytes to rank 1 and gets them back; all bytes are compared at both ends.
void put_and_get_gibibytes(MPI_Win win, unsigned char* mine, std::size_t bytes) {
    const auto check = [&](const unsigned char* data) {
        std::size_t wrong = 0;
        for (std::size_t at = 0; at < bytes; ++at)
            wrong += data[at] != pattern(at);
        CHECK_EQ(wrong, 0u);
    };
    std::vector<unsigned char> data;
    MPI_Win_fence(0, win);
    if (rank() == 0) {
        data.resize(bytes);
        for (std::size_t at = 0; at < bytes; ++at)
            data[at] = pattern(at);
        const auto count = static_cast<MPI_Count>(bytes);
        CHECK_OK(MPI_Put_c(data.data(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, win));
    }
    MPI_Win_fence(0, win);
    if (rank() == 1) check(mine);
    if (rank() == 0) {
        std::memset(data.data(), 0, bytes);
        const auto count = static_cast<MPI_Count>(bytes);
        CHECK_OK(MPI_Get_c(data.data(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, win));
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank() == 0) check(data.data());
}

}  // namespace

CASE_BY_KIND(every_form_with_ordinary_counts) {
    Window win(kind, 64 * sizeof(long));
    const int target = right();
    const MPI_Aint at = win.at(target, 0);
    long out[8], back[8];
    for (int i = 0; i < 8; ++i)
        out[i] = rank() * 10 + i;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    CHECK_OK(MPI_Put_c(out, 8, MPI_LONG, target, at, 8, MPI_LONG, win));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_OK(MPI_Accumulate_c(out, 8, MPI_LONG, target, at, 8, MPI_LONG, MPI_SUM, win));
    CHECK_OK(MPI_Raccumulate_c(out, 8, MPI_LONG, target, at, 8, MPI_LONG, MPI_SUM, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Get_accumulate_c(out, 8, MPI_LONG, back, 8, MPI_LONG, target, at, 8, MPI_LONG, MPI_SUM, win));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_ALL(back, 8, [&](std::size_t i) { return 3 * out[i]; });
    CHECK_OK(MPI_Rget_accumulate_c(out, 8, MPI_LONG, back, 8, MPI_LONG, target, at, 8, MPI_LONG, MPI_REPLACE, win,
                                   &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_ALL(back, 8, [&](std::size_t i) { return 4 * out[i]; });
    CHECK_OK(MPI_Get_c(back, 8, MPI_LONG, target, at, 8, MPI_LONG, win));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_ALL(back, 8, [&](std::size_t i) { return out[i]; });
    CHECK_OK(MPI_Rput_c(out + 4, 4, MPI_LONG, target, at, 4, MPI_LONG, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_OK(MPI_Rget_c(back, 4, MPI_LONG, target, at, 4, MPI_LONG, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_ALL(back, 4, [&](std::size_t i) { return out[i + 4]; });
    MPI_Win_unlock(target, win);
}

// A displacement unit beyond an int, and the query that can report it.
CASE(windows_of_large_units) {
    HOST_CANNOT("the host keeps displacement units in an int");
    constexpr MPI_Aint kUnit = MPI_Aint{5} << 30;
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_allocate_shared_c(64, kUnit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Aint bytes = 0, unit = 0;
    long* there = nullptr;
    CHECK_OK(MPI_Win_shared_query_c(win, rank(), &bytes, &unit, &there));
    CHECK_EQ(bytes, MPI_Aint{64});
    CHECK_EQ(unit, kUnit);
    CHECK(there == base);
    const int target = right();
    const long value = rank() + 5;
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    // The product of displacement and unit does not wrap around.
    CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, target, MPI_Aint{1} << 62, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(base[0], left() + 5L);
    CHECK_OK(MPI_Win_free(&win));
    std::vector<long> own(8);
    CHECK_OK(MPI_Win_create_c(own.data(), 64, kUnit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_allocate_c(64, kUnit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    CHECK_OK(MPI_Win_free(&win));
}

// Products of counts and extents, at the operation and in the datatype, do not wrap around.
CASE(extents_near_two_to_the_62) {
    HOST_CANNOT("the host computes modulo 2^64");
    constexpr MPI_Aint kFar = MPI_Aint{1} << 62;
    for (const MPI_Aint extent : {kFar, -kFar}) {
        MPI_Datatype wide = MPI_DATATYPE_NULL, four = MPI_DATATYPE_NULL, still = MPI_DATATYPE_NULL;
        MPI_Type_create_resized(MPI_LONG, extent < 0 ? extent : 0, extent, &wide);
        MPI_Type_contiguous(4, wide, &four);
        MPI_Type_create_resized(MPI_LONG, 0, 0, &still);
        for (MPI_Datatype* const type : {&wide, &four, &still})
            MPI_Type_commit(type);
        for (const WindowKind kind : kAllWindowKinds) {
            Returning win(kind, 8 * sizeof(long));
            const int target = right();
            const MPI_Aint at = win.at(target, 0);
            long values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8] = {};
            CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
            CHECK_OK(MPI_Put(values, 1, wide, target, at, 1, wide, win));
            CHECK_OK(MPI_Win_flush(target, win));
            CHECK_CLASS(MPI_Put(values, 4, MPI_LONG, target, at, 4, wide, win), MPI_ERR_RMA_RANGE);
            CHECK_CLASS(MPI_Put(values, INT_MAX, wide, target, at, INT_MAX, MPI_LONG, win), MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Get(back, 4, wide, target, at, 4, MPI_LONG, win), MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Accumulate(values, 4, wide, target, at, 4, MPI_LONG, MPI_SUM, win), MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Get_accumulate(values, 4, MPI_LONG, back, 4, wide, target, at, 4, MPI_LONG, MPI_SUM, win),
                        MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Put(values, 4, MPI_LONG, target, at, 1, four, win), MPI_ERR_TYPE);
            CHECK_CLASS(MPI_Get(back, 1, four, target, at, 4, MPI_LONG, win), MPI_ERR_TYPE);
            // 2^61 longs at one place are 2^64 bytes.
            const MPI_Count many = MPI_Count{1} << 61;
            CHECK_CLASS(MPI_Put_c(values, 0, MPI_LONG, target, at, many, still, win), MPI_ERR_RMA_RANGE);
            CHECK_CLASS(MPI_Get_c(back, many, still, target, at, many, still, win), MPI_ERR_COUNT);
            CHECK_CLASS(MPI_Put_c(values, many, MPI_LONG, target, at, many, MPI_LONG, win), MPI_ERR_COUNT);
            CHECK_OK(MPI_Get(back, 8, MPI_LONG, target, at, 8, MPI_LONG, win));
            CHECK_OK(MPI_Win_unlock(target, win));
            CHECK_ALL(back, 8, [](std::size_t i) { return i == 0 ? 1 : 0; });
        }
        for (MPI_Datatype* const type : {&wide, &four, &still})
            MPI_Type_free(type);
    }
}

// Displacement 1 of units that do not fit an int, and the attribute, which is an int.
CASE(elements_at_large_units) {
    HOST_CANNOT("the host keeps displacement units in an int");
    for (const MPI_Aint unit : {MPI_Aint{INT_MAX} + 1, (MPI_Aint{1} << 32) - 8, MPI_Aint{1} << 32}) {
        // An RDMA device keeps every page of a window in memory.
        SKIP_IF(!enough_memory(static_cast<std::size_t>(size()) * static_cast<std::size_t>(unit)));
        char* base = nullptr;
        MPI_Win win = MPI_WIN_NULL;
        CHECK_OK(MPI_Win_allocate_c(unit + 64, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        const int target = right();
        const long value = rank() + 5;
        long sum = -1;
        MPI_Win_fence(0, win);
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
        MPI_Win_fence(0, win);
        CHECK_OK(MPI_Accumulate(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, win));
        MPI_Win_fence(0, win);
        CHECK_OK(MPI_Get(&sum, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        CHECK_EQ(sum, 2 * value);
        long mine = 0;
        std::memcpy(&mine, base + unit, sizeof mine);
        CHECK_EQ(mine, 2 * (left() + 5L));
        int* shown = nullptr;
        int found = 0;
        CHECK_OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &shown, &found));
        CHECK(found != 0 && *shown == INT_MAX);
        CHECK_OK(MPI_Win_free(&win));
    }
}

CASE(three_gibibytes) {
    SKIP_IF(!osct::full());
    HOST_CANNOT("MPICH 4.0.2 crashes in the put");
    SKIP_IF(size() != 2);
    SKIP_IF(!enough_memory(9 * kGiB));
    const std::size_t bytes = 3 * kGiB + 12345;
    for (const bool shared : {true, false}) {
        unsigned char* base = nullptr;
        MPI_Win win = MPI_WIN_NULL;
        const auto mine = static_cast<MPI_Aint>(rank() == 1 ? bytes : 1);
        std::vector<unsigned char> own;
        if (shared) {
            CHECK_OK(MPI_Win_allocate(mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        } else {
            own.resize(static_cast<std::size_t>(mine));
            base = own.data();
            CHECK_OK(MPI_Win_create(base, mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        }
        put_and_get_gibibytes(win, base, bytes);
        CHECK_OK(MPI_Win_free(&win));
    }
}

// More than 2^31 elements of one accumulate.
CASE(elements_beyond_an_int) {
    SKIP_IF(!osct::full());
    HOST_CANNOT("MPICH 4.0.2 takes the size for a negative one");
    SKIP_IF(size() != 2);
    SKIP_IF(!enough_memory(5 * kGiB));
    constexpr std::size_t kElements = (std::size_t{1} << 31) + 1000;
    signed char* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const std::size_t mine = rank() == 1 ? kElements : 1;
    CHECK_OK(MPI_Win_allocate(static_cast<MPI_Aint>(mine), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    std::memset(base, 3, mine);
    MPI_Win_fence(0, win);
    if (rank() == 0) {
        const std::vector<signed char> ones(kElements, 1);
        const auto count = static_cast<MPI_Count>(kElements);
        CHECK_OK(MPI_Accumulate_c(ones.data(), count, MPI_SIGNED_CHAR, 1, 0, count, MPI_SIGNED_CHAR, MPI_SUM, win));
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank() == 1) CHECK_ALL(base, kElements, [](std::size_t) { return 4; });
    CHECK_OK(MPI_Win_free(&win));
}
