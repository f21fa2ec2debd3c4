// Flattening of the host's datatypes, against the host: ten thousand random nested types must pack to the same bytes,
// unpack to the same places and have the same size and bounds. Also the predefined types, and the life of the cache:
// duplicates, freed and reissued handles, uncommitted types, references that outlive the type. One rank; includes no
// window, so it is linked to src/host/datatype*.cpp themselves. Prints "No errors" and the costs of a look-up; an
// argument sets the rounds.
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "datatype_compare.h"
#include "datatype_random.h"
#include "host/datatype.h"
#include "host/real.h"
#include "op/copy.h"
#include "op/kernels.h"

namespace {

using osc::Basic;
using osc::host::type_info;
using osc::host::TypeInfo;
using osc::host::TypeRef;

int g_errors = 0;
osct::Compared g_compared;
MPI_Comm g_self = MPI_COMM_NULL;

void check(bool good, const char* what, long detail = 0) {
    if (good) return;
    if (++g_errors <= 20) std::printf("wrong: %s (%ld)\n", what, detail);
}

void compare(MPI_Datatype type, const TypeInfo& info, long round) {
    const char* const wrong = osct::compare(type, info, 1 + static_cast<int>(round % 3), g_compared);
    check(wrong == nullptr, wrong, round);
}

void random_types(long rounds) {
    int used[osct::kConstructors] = {};
    // Seeds are fixed: among the first 14903 none makes MPICH 4.0.2 pack wrongly, or divide by zero.
    for (long round = 0; round < rounds; ++round) {
        osct::Random random(static_cast<unsigned>(round));
        std::vector<MPI_Datatype> parts{osct::leaf(random), osct::leaf(random)};
        std::vector<MPI_Datatype> owned;
        const int depth = random(1, 4);
        for (int level = 0; level < depth; ++level) {
            const int which = random(0, osct::kConstructors - 1);
            const MPI_Datatype other = parts[static_cast<std::size_t>(random(0, static_cast<int>(parts.size()) - 1))];
            const MPI_Datatype type = osct::construct(random, which, parts.back(), other);
            ++used[which];
            parts.push_back(type);
            if (which >= osct::kKinds) {
                const TypeInfo* info = type_info(type);
                check(info && info->contiguous && info->basic != Basic::None, "Fortran kind", which);
                continue;
            }
            owned.push_back(type);
            // Some inner types are in the cache when an outer one is flattened.
            if (random(0, 3) == 0) {
                MPI_Type_commit(&owned.back());
                const TypeInfo* info = type_info(type);
                check(info != nullptr, "inner type", round);
                if (info) compare(type, *info, round);
            }
        }
        if (owned.empty()) continue;
        MPI_Datatype type = owned.back();
        MPI_Type_commit(&type);
        const TypeInfo* info = type_info(type);
        check(info != nullptr, "known", round);
        if (info) {
            check(type_info(type) == info, "found again", round);
            compare(type, *info, round);
        }
        for (MPI_Datatype& each : owned)
            MPI_Type_free(&each);
    }
    check(g_compared.types > rounds * 9 / 10, "too few types have data", g_compared.types);
    check(g_compared.wide < rounds / 100 + 1, "host's true bounds differ too often", g_compared.wide);
    check(g_compared.cut < rounds / 10 + 1, "host packed too little too often", g_compared.cut);
    for (int which = 0; which < osct::kConstructors; ++which)
        check(used[which] > 0 || rounds < 1000, "constructor not used", which);
}

void predefined_types() {
    struct Expected {
        MPI_Datatype type;
        Basic basic;
    };
    static const Expected expected[] = {
        {MPI_CHAR, Basic::I8},
        {MPI_SIGNED_CHAR, Basic::I8},
        {MPI_UNSIGNED_CHAR, Basic::U8},
        {MPI_BYTE, Basic::Byte},
        {MPI_WCHAR, Basic::Char4},
        {MPI_SHORT, Basic::I16},
        {MPI_INT, Basic::I32},
        {MPI_LONG, Basic::I64},
        {MPI_UNSIGNED_LONG, Basic::U64},
        {MPI_FLOAT, Basic::F32},
        {MPI_DOUBLE, Basic::F64},
        {MPI_LONG_DOUBLE, Basic::LongDouble},
        {MPI_AINT, Basic::I64},
        {MPI_OFFSET, Basic::I64},
        {MPI_COUNT, Basic::I64},
        {MPI_C_BOOL, Basic::Bool},
        {MPI_LOGICAL, Basic::Logical4},
        {MPI_INTEGER, Basic::I32},
        {MPI_REAL, Basic::F32},
        {MPI_DOUBLE_PRECISION, Basic::F64},
        {MPI_COMPLEX, Basic::C32},
        {MPI_DOUBLE_COMPLEX, Basic::C64},
        {MPI_REAL16, Basic::F128},
        {MPI_COMPLEX32, Basic::C128},
        {MPI_INTEGER8, Basic::I64},
        {MPI_UINT16_T, Basic::U16},
        {MPI_FLOAT_INT, Basic::FloatInt},
        {MPI_DOUBLE_INT, Basic::DoubleInt},
        {MPI_LONG_INT, Basic::LongInt},
        {MPI_SHORT_INT, Basic::ShortInt},
        {MPI_2INT, Basic::IntInt},
        {MPI_LONG_DOUBLE_INT, Basic::LongDoubleInt},
        {MPI_2REAL, Basic::TwoF32},
        {MPI_2DOUBLE_PRECISION, Basic::TwoF64},
        {MPI_PACKED, Basic::Byte},
        {MPI_LB, Basic::None},
        {MPI_UB, Basic::None},
        {MPI_CXX_BOOL, Basic::Bool},
#ifdef MPI_COMPLEX4
        {MPI_COMPLEX4, Basic::C16},
#endif
#ifdef MPI_LOGICAL16
        {MPI_LOGICAL16, Basic::Logical16},
#endif
#ifdef MPIX_BFLOAT16
        {MPIX_BFLOAT16, Basic::Bf16},
#endif
    };
    for (const auto& [type, basic] : expected) {
        const TypeInfo* info = osc::abi::predefined(type);
        check(info && info->basic == basic && type_info(type) == info, "predefined", type);
    }
    int found = 0;
    for (const TypeInfo* info : osc::abi::detail::g_predefined) {
        if (!info) continue;
#ifndef MPI_LOGICAL16
        // The table has the types of MPICH 5. MPICH 4 numbers its own up to MPIX_C_FLOAT16 and ends a process that asks
        // for the size of a later number.
        if ((info->key >> 24) == 0x4c && (info->key & 0xff) > 0x46) continue;
#endif
        const auto type = static_cast<MPI_Datatype>(info->key);
        MPI_Count size = 0;
        MPI_Aint lb = 0;
        MPI_Aint extent = 0;
        MPI_Type_size_x(type, &size);
        MPI_Type_get_extent(type, &lb, &extent);
        check(static_cast<MPI_Count>(info->size) == size, "size of predefined", type);
        check(info->layout.extent() == extent && info->predefined, "extent of predefined", type);
        if (size != 0) compare(type, *info, 2);
        ++found;
    }
    check(found >= 60, "predefined types found", found);
    int error = MPI_SUCCESS;
    check(!type_info(MPI_DATATYPE_NULL, &error) && error == MPI_ERR_TYPE, "null type");
    check(!type_info(static_cast<MPI_Datatype>(0x1234), &error) && error == MPI_ERR_TYPE, "no handle at all");
}

MPI_Datatype vector_of(int count, int stride) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(count, 1, stride, MPI_DOUBLE, &type);
    return type;
}

void life_of_the_cache() {
    int error = MPI_SUCCESS;
    MPI_Datatype type = vector_of(4, 2);
    check(!type_info(type, &error) && error == MPI_ERR_TYPE, "uncommitted");
    check(!type_info(type, &error) && error == MPI_ERR_TYPE, "uncommitted, again");
    MPI_Type_commit(&type);
    const TypeInfo* info = type_info(type);
    check(info && info->size == 32 && info->basic == Basic::F64, "committed");

    MPI_Datatype twin = MPI_DATATYPE_NULL;
    MPI_Type_dup(type, &twin);
    check(type_info(twin) == info, "duplicate shares");
    TypeRef queued(info);
    MPI_Type_free(&type);
    check(type_info(twin) == info && type_info(twin)->size == 32, "duplicate outlives");
    MPI_Type_free(&twin);
    check(queued->layout.data().blocks() == 4, "queued operation outlives both");

    // The host reissues handles at once; the old layout must not be found under them.
    for (int i = 0; i < 20000; ++i) {
        type = vector_of(2 + i % 7, 3);
        check(type_info(type) == nullptr, "reissued handle, uncommitted", i);
        MPI_Type_commit(&type);
        const TypeInfo* fresh = type_info(type);
        check(fresh && fresh->size == static_cast<std::size_t>(8 * (2 + i % 7)), "reissued handle", i);
        MPI_Type_free(&type);
    }
    std::vector<MPI_Datatype> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(vector_of(2 + i, 2));
        MPI_Type_commit(&many.back());
        type_info(many.back());
    }
    for (int i = 0; i < 1000; ++i)
        check(type_info(many[static_cast<std::size_t>(i)])->size == static_cast<std::size_t>(8 * (2 + i)), "many", i);
    for (MPI_Datatype& each : many)
        MPI_Type_free(&each);
}

void large_counts() {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector_c(MPI_Count{1} << 33, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    const TypeInfo* info = type_info(type);
    check(info && info->size == std::size_t{1} << 36 && info->layout.data().runs().size() == 1, "large vector");
    MPI_Type_free(&type);
    const int n = 1'000'000;
    std::vector<int> places(n);
    for (int i = 0; i < n; ++i)
        places[static_cast<std::size_t>(i)] = 3 * i + i % 7 / 3 % 2;
    MPI_Type_create_indexed_block(n, 1, places.data(), MPI_INT, &type);
    MPI_Type_commit(&type);
    info = type_info(type);
    check(info && info->size == 4 * std::size_t{n}, "a million blocks");
    if (info) compare(type, *info, 0);
    MPI_Type_free(&type);
}

// Products of the constructors' arguments that do not fit 64 bits, and the greatest that do.
void far_data() {
    constexpr MPI_Aint kFar = MPI_Aint{1} << 62;
    MPI_Datatype wide[2];
    MPI_Type_create_resized(MPI_DOUBLE, 0, kFar, &wide[0]);
    MPI_Type_create_resized(MPI_DOUBLE, -kFar, -kFar, &wide[1]);
    const auto make = [](bool far, const char* what, auto&& construct) {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        check(construct(&type) == MPI_SUCCESS && MPI_Type_commit(&type) == MPI_SUCCESS, what, -1);
        int error = MPI_SUCCESS;
        const TypeInfo* const info = type_info(type, &error);
        check(far ? info == nullptr && error == MPI_ERR_COUNT : info != nullptr, what, error);
        MPI_Type_free(&type);
    };
    for (MPI_Datatype& child : wide) {
        const int ones[] = {1, 1}, places[] = {1, 4}, sizes[] = {8}, four[] = {4}, none[] = {0, 0};
        const MPI_Aint ends[] = {0, kFar}, lows[] = {-kFar, 0}, near[] = {MPI_Aint{1} << 60, -(MPI_Aint{1} << 60)};
        const MPI_Datatype two[] = {MPI_DOUBLE, child};
        const int distributions[] = {MPI_DISTRIBUTE_CYCLIC}, arguments[] = {1}, grid[] = {2};
        make(false, "resized", [&](auto* type) { return MPI_Type_dup(child, type); });
        make(true, "contiguous", [&](auto* type) { return MPI_Type_contiguous(4, child, type); });
        make(true, "vector", [&](auto* type) { return MPI_Type_vector(2, 1, 4, child, type); });
        make(false, "stride of one", [&](auto* type) { return MPI_Type_vector(1, 1, 4, child, type); });
        make(true, "hvector", [&](auto* type) { return MPI_Type_create_hvector(5, 1, -kFar, MPI_DOUBLE, type); });
        make(true, "indexed", [&](auto* type) { return MPI_Type_indexed(2, ones, places, child, type); });
        make(true, "block", [&](auto* type) { return MPI_Type_create_indexed_block(2, 1, places, child, type); });
        make(true, "hindexed", [&](auto* type) { return MPI_Type_create_hindexed(2, ones, ends, MPI_DOUBLE, type); });
        make(true, "hblock", [&](auto* type) { return MPI_Type_create_hindexed_block(2, 1, lows, MPI_INT, type); });
        make(false, "near", [&](auto* type) { return MPI_Type_create_hindexed(2, ones, near, MPI_DOUBLE, type); });
        make(true, "struct", [&](auto* type) { return MPI_Type_create_struct(2, ones, ends, two, type); });
        make(true, "subarray",
             [&](auto* type) { return MPI_Type_create_subarray(1, sizes, four, ones, MPI_ORDER_C, child, type); });
        make(true, "darray", [&](auto* type) {
            return MPI_Type_create_darray(2, 1, 1, sizes, distributions, arguments, grid, MPI_ORDER_C, child, type);
        });
        make(false, "nothing", [&](auto* type) { return MPI_Type_indexed(2, none, places, child, type); });
        MPI_Type_free(&child);
    }
    make(true, "large", [&](auto* type) {
        return MPI_Type_vector_c(MPI_Count{1} << 40, MPI_Count{1} << 30, MPI_Count{1} << 30, MPI_DOUBLE, type);
    });
}

void threads() {
    for (int round = 0; round < 200; ++round) {
        MPI_Datatype shared = vector_of(8, 2);
        MPI_Type_commit(&shared);
        const TypeInfo* seen[3] = {};
        std::vector<std::thread> team;
        for (const TypeInfo*& mine : seen) {
            team.emplace_back([shared, &mine, round] {
                mine = type_info(shared);
                for (int i = 0; i < 20; ++i) {
                    MPI_Datatype own = vector_of(2 + (i + round) % 5, 2);
                    MPI_Type_commit(&own);
                    const TypeInfo* info = type_info(own);
                    if (!info || info->size != static_cast<std::size_t>(8 * (2 + (i + round) % 5))) mine = nullptr;
                    MPI_Type_free(&own);
                }
            });
        }
        for (std::thread& each : team)
            each.join();
        check(seen[0] && seen[0] == seen[1] && seen[1] == seen[2], "threads agree", round);
        MPI_Type_free(&shared);
    }
}

// Of this thread's processor time, which other processes on the machine do not add to.
double now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <class F>
void measure(const char* what, F&& f) {
    constexpr int kRepeats = 100'000;
    double best = 1e18;
    for (int trial = 0; trial < 15; ++trial) {
        const double start = now();
        for (int i = 0; i < kRepeats; ++i)
            f(i);
        best = std::min(best, (now() - start) / kRepeats);
    }
    std::printf("%-48s %6.1f ns\n", what, best);
}

void timings() {
    MPI_Datatype types[8];
    for (int i = 0; i < 8; ++i) {
        types[i] = vector_of(64, 2);
        MPI_Type_commit(&types[i]);
        type_info(types[i]);
    }
    const MPI_Datatype plain[] = {MPI_INT,        MPI_DOUBLE, MPI_LONG, MPI_BYTE,
                                  MPI_DOUBLE_INT, MPI_CHAR,   MPI_2INT, MPI_REAL};
    std::size_t sum = 0;
    measure("type_info, predefined", [&](int i) { sum += type_info(plain[i & 7])->size; });
    measure("type_info, derived", [&](int i) { sum += type_info(types[i & 7])->size; });
    static double memory[1024];
    static double target[1024];
    const TypeInfo* vector = type_info(types[0]);
    const TypeInfo* real = type_info(MPI_DOUBLE);
    measure("copy, vector of 64 doubles to contiguous",
            [&](int) { osc::op::copy(real->layout, 64, target, vector->layout, 1, memory); });
    measure("copy, vector of 64 doubles to the same vector",
            [&](int) { osc::op::copy(vector->layout, 1, target, vector->layout, 1, memory); });
    measure("copy, 1 double", [&](int) { osc::op::copy(real->layout, 1, target, real->layout, 1, memory); });
    measure("walk, vector of 64 doubles to contiguous", [&](int) {
        osc::op::for_each_pair(vector->layout, 1, real->layout, 64,
                               [&](std::ptrdiff_t from, std::ptrdiff_t to, std::size_t bytes) {
                                   sum += static_cast<std::size_t>(from + to) ^ bytes;
                               });
    });
    std::printf("(%zu)\n", sum % 10);
    for (MPI_Datatype& type : types)
        MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
    if (osc::host::find_host() != osc::host::Host::Ours) return 1;
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_dup(MPI_COMM_SELF, &g_self);
    MPI_Comm_set_errhandler(g_self, MPI_ERRORS_RETURN);
    check(osc::host::init_types(g_self) == MPI_SUCCESS && osc::host::init_types(g_self) == MPI_SUCCESS, "init");
    predefined_types();
    life_of_the_cache();
    large_counts();
    far_data();
    random_types(argc > 1 ? std::strtol(argv[1], nullptr, 10) : 12000);
    if (level == MPI_THREAD_MULTIPLE) threads();
    timings();
    MPI_Datatype left = vector_of(3, 5);
    MPI_Type_commit(&left);
    const TypeRef kept(type_info(left));
    osc::host::release_types();
    check(type_info(left) == nullptr && kept->size == 24, "released");
    check(osc::host::init_types(g_self) == MPI_SUCCESS && type_info(left) != nullptr, "ready again");
    osc::host::release_types();
    MPI_Type_free(&left);
    MPI_Comm_free(&g_self);
    MPI_Finalize();
    if (g_errors == 0) std::printf("No errors\n");
    return g_errors == 0 ? 0 : 1;
}
