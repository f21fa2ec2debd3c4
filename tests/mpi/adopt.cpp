// MPI_Win_create over a program's own arrays, whose pages become shared in place (OSC_ADOPT): what becomes shared, what
// stays private, and that operations reach every byte with one atomicity. adopt_life.cpp has what the program does with
// such memory afterwards.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "adopt_exercise.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Put", "MPI_Get", "MPI_Fetch_and_op", "MPI_Accumulate",
             "MPI_Compare_and_swap", "MPI_Get_accumulate")

using namespace adopt;

namespace {

alignas(8) char static_array[3 * kEnough];
alignas(8) char static_data[2 * kEnough] = {1};

}  // namespace

CASE(arrays_of_every_kind_become_shared) {
    std::vector<char> heap(kEnough * 4);
    auto* const mapped = static_cast<char*>(map_pages(2 * kEnough));
    char* const given[] = {heap.data(), mapped, static_array, static_data + 5};
    const std::size_t sizes[] = {heap.size(), 2 * kEnough, sizeof static_array, sizeof static_data - 9};
    for (std::size_t i = 0; i < std::size(given); ++i) {
        for (std::size_t at = 0; at < sizes[i]; ++at)
            given[i][at] = static_cast<char>(at * 5 + i);
        const Window window(given[i], sizes[i], "always");
        CHECK(is_shared(given[i] + sizes[i] / 2));
        CHECK_ALL(given[i], sizes[i], [i](std::size_t at) { return static_cast<char>(at * 5 + i); });
        exercise(window.win, given[i], sizes[i]);
    }
    ::munmap(mapped, 2 * kEnough);
}

// The C library gives a large piece pages of its own: no byte of it stays private.
CASE(a_large_piece_of_malloc_has_no_edges) {
    auto* const piece = static_cast<char*>(std::malloc(64 * kEnough));
    std::memset(piece, 1, 64 * kEnough);
    {
        const Window window(piece, 64 * kEnough, "always");
        CHECK(is_shared(piece));
        CHECK(is_shared(piece + 64 * kEnough - 1));
        exercise(window.win, piece, 64 * kEnough);
    }
    std::free(piece);
}

CASE(small_stack_and_other_memory_stays_private) {
    std::vector<char> small(kEnough / 8);
    char stack[2 * kEnough];
    std::memset(stack, 3, sizeof stack);
    {
        const Window window(small.data(), small.size());
        CHECK(!is_shared(small.data() + small.size() / 2));
        exercise(window.win, small.data(), small.size());
    }
    const Window window(stack, sizeof stack, "always");
    CHECK(!is_shared(stack + kEnough));
    exercise(window.win, stack, sizeof stack);
}

CASE(the_info_key_decides) {
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    {
        const Window window(memory, 2 * kEnough, "off");
        CHECK(!is_shared(memory + kEnough));
        CHECK_EQ(osct::info_value(window.win, "osc_adopt"), "off");
        exercise(window.win, memory, 2 * kEnough);
    }
    {
        const Window window(memory, 8192, "always");
        CHECK(is_shared(memory + 4096));
        CHECK(!is_shared(memory + 8192));
        CHECK_EQ(osct::info_value(window.win, "osc_adopt"), "always");
        exercise(window.win, memory, 8192);
    }
    ::munmap(memory, 2 * kEnough);
}

// The window's first and last bytes lie on pages with data of the owner, which stores there all the time.
CASE(neighbours_on_the_edges_stay_private) {
    SKIP_IF(size() < 2);
    auto* const pages = static_cast<char*>(map_pages(4 * kEnough));
    char* const base = pages + 1000;
    const std::size_t bytes = 4 * kEnough - 3000;
    const Window window(base, bytes);
    CHECK(is_shared(base + bytes / 2));
    CHECK(!is_shared(pages));
    CHECK(!is_shared(base + bytes));
    store_beside(window.win, base, bytes, 0);
    ::munmap(pages, 4 * kEnough);
}

// Elements on both sides of an edge and across it, updated by all ranks at once, the owner included. The displacements
// are no multiples of eight, so some elements lie on two pages.
CASE(atomics_are_atomic_on_and_across_edges) {
    auto* const pages = static_cast<char*>(map_pages(2 * kEnough));
    char* const base = pages + 4096 - 36;  // the first page has four elements and a half
    const Window window(base, 2 * kEnough - 8192, "always");
    CHECK(is_shared(pages + 4096));
    update_words(window.win, base, 0);
    ::munmap(pages, 2 * kEnough);
}

CASE(windows_may_overlap) {
    auto* const memory = static_cast<char*>(map_pages(6 * kEnough));
    {
        const Window first(memory, 3 * kEnough);
        const Window second(memory + kEnough, 4 * kEnough);
        const Window third(memory, 6 * kEnough);
        for (const std::size_t at : {std::size_t{0}, 4 * kEnough, 6 * kEnough - 1})
            CHECK(is_shared(memory + at));
        exercise(first.win, memory, 3 * kEnough);
        exercise(second.win, memory + kEnough, 4 * kEnough);
        exercise(third.win, memory, 6 * kEnough);
    }
    ::munmap(memory, 6 * kEnough);
}

// The first and last bytes of an array in adopted memory are shared already. A query returns what can be loaded.
CASE(a_window_inside_adopted_memory_has_no_edges) {
    SKIP_IF(size() < 2);
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    adopt_once(memory, 2 * kEnough);
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{5000}, kEnough}) {
        const Window window(memory + 4000, bytes);
        MPI_Aint found = 0;
        int unit = 0;
        void* base = nullptr;
        CHECK_OK(MPI_Win_shared_query(window.win, (rank() + 1) % size(), &found, &unit, &base));
        CHECK_EQ(found, static_cast<MPI_Aint>(bytes));
        exercise(window.win, memory + 4000, bytes);
    }
    ::munmap(memory, 2 * kEnough);
}

// Another window has the memory already, private: operations through it may run while pages would be exchanged.
CASE(memory_of_a_private_window_stays_private) {
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    {
        const Window first(memory, 2 * kEnough, "off");
        const Window second(memory, 2 * kEnough);
        CHECK(!is_shared(memory + kEnough));
        exercise(first.win, memory, 2 * kEnough);
        exercise(second.win, memory, 2 * kEnough);
    }
    ::munmap(memory, 2 * kEnough);
}

// The copy pays with the second window, and ever later if the program frees the memory after each.
CASE(auto_copies_large_memory_late) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    int adoptions = 0;
    for (int window = 1; window <= 8; ++window) {
        std::memset(memory, window, kLarge);
        const Window created(memory, kLarge, "auto");
        const bool shared = is_shared(memory + kLarge / 2);
        CHECK_EQ(shared, window == 2 || window == 6);
        CHECK_ALL(memory, kLarge, [window](std::size_t) { return static_cast<char>(window); });
        adoptions += shared ? 1 : 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (shared)
            CHECK(::mmap(memory, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                  memory);
    }
    CHECK_EQ(adoptions, 2);
    {
        const Window created(memory, kSmall, "auto");
        CHECK(is_shared(memory + kSmall / 2));
    }
    ::munmap(memory, kLarge);
}

CASE(beside_another_thread_only_if_asked_for) {
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    std::atomic<bool> end{false};
    std::thread other([&] {
        while (!end.load())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    {
        const Window window(memory, 2 * kEnough);
        CHECK(!is_shared(memory + kEnough));
    }
    {
        const Window window(memory, 2 * kEnough, "always");
        CHECK(is_shared(memory + kEnough));
        exercise(window.win, memory, 2 * kEnough);
    }
    end.store(true);
    other.join();
    ::munmap(memory, 2 * kEnough);
}

namespace {

// Where the handler stores, and how often it did. The handler may run in the host's thread too, at the same time.
struct Ticks {
    long* in_memory = nullptr;
    std::atomic<long> counted{0};
    [[nodiscard]] long seen() const { return std::atomic_ref<long>(*in_memory).load(); }
};
std::array<Ticks, 20> rounds;
std::atomic<Ticks*> current{nullptr};
void tick(int) {
    Ticks& ticks = *current.load();
    std::atomic_ref<long>(*ticks.in_memory).fetch_add(1);
    ticks.counted.fetch_add(1);
}

}  // namespace

// A handler stores into the memory while its pages are exchanged, again and again: no store is lost. The memory stays
// mapped and the handler stays set: the host's thread may begin a handler after the timer has stopped.
CASE(stores_of_a_signal_handler_survive) {
    struct sigaction action = {};
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, nullptr);
    itimerval often{};
    often.it_interval.tv_usec = often.it_value.tv_usec = 200;
    for (Ticks& ticks : rounds) {
        auto* const memory = static_cast<char*>(map_pages(8 * kEnough));
        std::memset(memory, 1, 8 * kEnough);
        ticks.in_memory = reinterpret_cast<long*>(memory + 4 * kEnough);
        *ticks.in_memory = 0;
        current.store(&ticks);
        ::setitimer(ITIMER_REAL, &often, nullptr);
        {
            const Window window(memory, 8 * kEnough);
            CHECK(is_shared(memory + 4 * kEnough));
        }
        const itimerval never{};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        const double begin = osct::now();
        while (ticks.seen() != ticks.counted.load() && osct::now() < begin + 5) {  // a handler has yet to return
        }
        CHECK_EQ(ticks.seen(), ticks.counted.load());
    }
}

CASE(limits_keep_memory_private) {
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    auto* const second = static_cast<char*>(map_pages(2 * kEnough));
    std::memset(memory, 7, 2 * kEnough);
    {
        const Window window(memory, 2 * kEnough);  // so the file is as long as it will be
        CHECK(is_shared(memory));
    }
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit low{std::uint64_t{1} << 40, limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &low);
    {
        const Window window(second, 2 * kEnough);
        CHECK(!is_shared(second + kEnough));
        exercise(window.win, second, 2 * kEnough);
    }
    ::setrlimit(RLIMIT_FSIZE, &limit);
    if (::mlock(second, 4096) == 0) {
        const Window window(second, 2 * kEnough);
        CHECK(!is_shared(second + kEnough));
        exercise(window.win, second, 2 * kEnough);
        ::munlock(second, 4096);
    }
    ::munmap(memory, 2 * kEnough);
    ::munmap(second, 2 * kEnough);
}

// As many areas as the system allows: the window works, shared or not.
CASE(near_the_most_mappings) {
    SKIP_IF(!osct::full());
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    std::memset(memory, 7, 2 * kEnough);
    constexpr std::size_t kMost = 80000;
    auto* const room = static_cast<char*>(map_pages(kMost * 4096));
    for (std::size_t i = 0; i < kMost; i += 2)
        if (::mprotect(room + i * 4096, 4096, PROT_READ) != 0) break;
    // Leaves some for the others: libraries map too.
    ::munmap(room, 400 * 4096);
    {
        const Window window(memory, 2 * kEnough);
        CHECK(!is_shared(memory + kEnough));
        exercise(window.win, memory, 2 * kEnough);
    }
    ::munmap(room, kMost * 4096);
    ::munmap(memory, 2 * kEnough);
}
