// The info keys of windows: initial values, accepted values, and changes by MPI_Win_set_info; and right results under
// every promise that a program makes with them.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_get_info", "MPI_Win_set_info", "MPI_Accumulate", "MPI_Win_fence")

using osct::info_value;

namespace {

void set(MPI_Win win, const char* key, const char* value) {
    const Info hints{{key, value}};
    CHECK_OK(MPI_Win_set_info(win, hints));
}

// Puts and sums to the right neighbour in fence and in post-start epochs, `rounds` times.
void exchange(MPI_Win win, const long* base, long rounds) {
    const int target = right(), source = left();
    const Group to(target), from(source);
    for (long round = 1; round <= rounds; ++round) {
        const long out = rank() * 100 + round, one = 1;
        MPI_Win_fence(0, win);
        CHECK_OK(MPI_Put(&out, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, target, 8, 1, MPI_LONG, MPI_SUM, win));
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, target, 8, 1, MPI_LONG, MPI_SUM, win));
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        CHECK_EQ(base[0], source * 100 + round);
        CHECK_EQ(base[1], 2 * round);
    }
}

}  // namespace

CASE_BY_KIND(defaults) {
    Window win(kind, 64);
    CHECK_EQ(info_value(win, "no_locks"), std::string("false"));
    CHECK_EQ(info_value(win, "accumulate_ordering"), std::string("rar,raw,war,waw"));
    CHECK_EQ(info_value(win, "accumulate_ops"), std::string("same_op_no_op"));
    CHECK_EQ(info_value(win, "mpi_accumulate_granularity"), std::string("0"));
    CHECK_EQ(info_value(win, "same_size"), std::string("false"));
    CHECK_EQ(info_value(win, "same_disp_unit"), std::string("false"));
    if (kind == WindowKind::Shared && osct::shares_memory(MPI_COMM_WORLD))
        CHECK_EQ(info_value(win, "alloc_shared_noncontig"), std::string("false"));
}

CASE(values_that_are_taken) {
    const std::pair<const char*, std::vector<const char*>> taken[] = {
        {"no_locks", {"false", "true"}},
        {"accumulate_ordering", {"none", "rar", "raw", "war", "waw", "waw,rar", "rar,raw,war", "rar,raw,war,waw"}},
        {"accumulate_ops", {"same_op", "same_op_no_op"}},
        {"same_size", {"true", "false"}},
        {"same_disp_unit", {"true", "false"}}};
    const std::pair<const char*, std::vector<const char*>> refused[] = {
        {"no_locks", {"yes", "TRUE", "1"}},
        {"accumulate_ordering", {"all", "rar,", ",rar", "rar,,raw", "rar raw", "none,rar", "rarraw"}},
        {"accumulate_ops", {"same", "same_op,no_op"}},
        {"same_size", {"maybe"}},
        {"same_disp_unit", {"8"}},
        // The library keeps its own choice.
        {"mpi_accumulate_granularity", {"64", "8", "-1"}}};
    Window window(WindowKind::Allocate, 64);
    for (const auto& [key, values] : taken) {
        for (const char* value : values) {
            const Info hints{{key, value}};
            void* base = nullptr;
            MPI_Win win;
            CHECK_OK(MPI_Win_allocate(64, 1, hints, MPI_COMM_WORLD, &base, &win));
            CHECK_EQ(info_value(win, key), std::string(value));
            CHECK_OK(MPI_Win_free(&win));
            set(window, key, value);
            CHECK_EQ(info_value(window, key), std::string(value));
        }
    }
    for (const auto& [key, values] : refused) {
        const std::string before = info_value(window, key);
        for (const char* value : values) {
            set(window, key, value);
            CHECK_EQ(info_value(window, key), before);
        }
    }
}

CASE(set_info_leaves_other_keys_unchanged) {
    const Info at_creation{
        {"no_locks", "true"}, {"accumulate_ordering", "waw"}, {"same_size", "true"}, {"a_key_of_nobody", "x"}};
    void* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, 1, at_creation, MPI_COMM_WORLD, &base, &win);
    CHECK_EQ(info_value(win, "a_key_of_nobody"), std::string("(none)"));
    set(win, "accumulate_ops", "same_op");
    CHECK_EQ(info_value(win, "no_locks"), std::string("true"));
    CHECK_EQ(info_value(win, "accumulate_ordering"), std::string("waw"));
    CHECK_EQ(info_value(win, "same_size"), std::string("true"));
    set(win, "accumulate_ordering", "none");
    CHECK_EQ(info_value(win, "accumulate_ops"), std::string("same_op"));
    CHECK_EQ(info_value(win, "same_size"), std::string("true"));
    const Info nothing{};
    CHECK_OK(MPI_Win_set_info(win, nothing));
    CHECK_EQ(info_value(win, "accumulate_ordering"), std::string("none"));
    // One window's hints are not another's.
    Window other(WindowKind::Allocate, 64);
    CHECK_EQ(info_value(other, "accumulate_ops"), std::string("same_op_no_op"));
    MPI_Win_free(&win);
}

// Creation fixes the layout and alignment of memory: later values have no effect and are not reported.
CASE(hints_of_creation_only) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    for (const bool noncontiguous : {false, true}) {
        const Info hints{{"alloc_shared_noncontig", noncontiguous ? "true" : "false"},
                         {"mpi_minimum_memory_alignment", "4096"}};
        char* base = nullptr;
        MPI_Win win;
        CHECK_OK(MPI_Win_allocate_shared(40, 1, hints, MPI_COMM_WORLD, &base, &win));
        set(win, "alloc_shared_noncontig", noncontiguous ? "false" : "true");
        set(win, "mpi_minimum_memory_alignment", "65536");
        CHECK_EQ(info_value(win, "alloc_shared_noncontig"), std::string(noncontiguous ? "true" : "false"));
        CHECK_EQ(info_value(win, "mpi_minimum_memory_alignment"), std::string("4096"));
        char *before = nullptr, *here = nullptr;
        for (int peer = 0; peer < size(); ++peer) {
            MPI_Aint bytes = 0;
            int unit = 0;
            CHECK_OK(MPI_Win_shared_query(win, peer, &bytes, &unit, &here));
            if (!noncontiguous && before != nullptr) CHECK(here == before + 40);
            if (noncontiguous || peer == 0) CHECK_EQ(reinterpret_cast<std::uintptr_t>(here) % 4096, 0u);
            before = here;
        }
        MPI_Win_free(&win);
    }
}

CASE(without_locks) {
    const Info hints{{"no_locks", "true"}};
    std::vector<long> own(8, 0);
    long* base = nullptr;
    MPI_Win wins[3];
    MPI_Win_create(own.data(), 64, 1, hints, MPI_COMM_WORLD, &wins[0]);
    exchange(wins[0], own.data(), 10);
    MPI_Win_allocate(64, 1, hints, MPI_COMM_WORLD, &base, &wins[1]);
    base[0] = base[1] = 0;
    exchange(wins[1], base, 10);
    // The free of such a window may be local work, and is none the less complete.
    const long out = rank() + 7;
    MPI_Win_fence(0, wins[0]);
    CHECK_OK(MPI_Put(&out, 1, MPI_LONG, right(), 16, 1, MPI_LONG, wins[0]));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[0]);
    CHECK_OK(MPI_Win_free(&wins[0]));
    CHECK_EQ(own[2], left() + 7L);
    own[2] = -1;
    if (osct::shares_memory(MPI_COMM_WORLD))
        MPI_Win_allocate_shared(64, 1, hints, MPI_COMM_WORLD, &base, &wins[2]);
    else
        MPI_Win_allocate(64, 1, hints, MPI_COMM_WORLD, &base, &wins[2]);
    base[0] = base[1] = 0;
    exchange(wins[2], base, 10);
    CHECK_OK(MPI_Win_free(&wins[2]));
    CHECK_OK(MPI_Win_free(&wins[1]));
    CHECK_EQ(own[2], -1L);
}

CASE(same_sizes_and_units) {
    const Info hints{{"same_size", "true"}, {"same_disp_unit", "true"}};
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, 1, hints, MPI_COMM_WORLD, &base, &win);
    base[0] = base[1] = 0;
    exchange(win, base, 10);
    MPI_Win_free(&win);
}

// Sums are exact with one operation, mixed with reads, and without ordering. Reads have buffers of their own: none is
// complete before the fence. same_op allows no MPI_NO_OP, so a sum with zeros reads.
CASE(promises_about_accumulates) {
    for (const Info& hints : {Info{{"accumulate_ops", "same_op"}}, Info{{"accumulate_ops", "same_op_no_op"}},
                              Info{{"accumulate_ordering", "none"}}, Info{{"mpi_accumulate_granularity", "8"}}}) {
        long* base = nullptr;
        MPI_Win win;
        MPI_Win_allocate(8 * 64, 8, hints, MPI_COMM_WORLD, &base, &win);
        std::fill_n(base, 64, 0L);
        MPI_Win_fence(0, win);
        const bool only_sums = info_value(win, "accumulate_ops") == "same_op";
        const std::vector<long> ones(64, 1), zeros(64, 0);
        std::vector<long> seen(64 * 20 * static_cast<std::size_t>(size()), 0);
        long* result = seen.data();
        for (int round = 0; round < 20; ++round) {
            for (int target = 0; target < size(); ++target, result += 64) {
                CHECK_OK(MPI_Accumulate(ones.data(), 64, MPI_LONG, target, 0, 64, MPI_LONG, MPI_SUM, win));
                CHECK_OK(MPI_Accumulate(ones.data(), 1, MPI_LONG, target, 5, 1, MPI_LONG, MPI_SUM, win));
                CHECK_OK(MPI_Get_accumulate(zeros.data(), 64, MPI_LONG, result, 64, MPI_LONG, target, 0, 64, MPI_LONG,
                                            only_sums ? MPI_SUM : MPI_NO_OP, win));
            }
        }
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        const auto sum = [](std::size_t i) { return (i == 5 ? 40L : 20L) * size(); };
        CHECK_ALL(base, 64u, sum);
        // A read follows this process's own sums unless it is without order.
        const bool ordered = info_value(win, "accumulate_ordering") != "none";
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const long round = static_cast<long>(i) / (64 * size());
            CHECK(seen[i] >= (ordered ? round + 1 : 0) && seen[i] <= sum(i % 64));
        }
        MPI_Win_free(&win);
    }
}

// The pairs that the key names stay ordered; in libosc all pairs do.
CASE(order_that_was_kept) {
    for (const char* kept : {"waw", "raw,waw", "rar,raw,war,waw"}) {
        const Info hints{{"accumulate_ordering", kept}};
        for (WindowKind kind : kAllWindowKinds) {
            Window win(kind, 2048 * sizeof(int), MPI_COMM_WORLD, hints);
            const MPI_Aint at = win.at(right(), 0);
            MPI_Win_lock_all(0, win);
            std::vector<int> all(2048);
            for (int round = 1; round <= 20; ++round) {
                const int last = round * 2 + 1;
                std::fill(all.begin(), all.end(), round * 2);
                int read = -1;
                CHECK_OK(MPI_Accumulate(all.data(), 2048, MPI_INT, right(), at, 2048, MPI_INT, MPI_REPLACE, win));
                CHECK_OK(MPI_Accumulate(&last, 1, MPI_INT, right(), at, 1, MPI_INT, MPI_REPLACE, win));
                CHECK_OK(MPI_Fetch_and_op(nullptr, &read, MPI_INT, right(), at, MPI_NO_OP, win));
                MPI_Win_flush(right(), win);
                if (kept[0] == 'r') CHECK_EQ(read, last);
                MPI_Get(all.data(), 1, MPI_INT, right(), at, 1, MPI_INT, win);
                MPI_Win_flush(right(), win);
                CHECK_EQ(all[0], last);
            }
            MPI_Win_unlock_all(win);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}
