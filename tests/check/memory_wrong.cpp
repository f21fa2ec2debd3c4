// Programs whose loads and stores conflict with operations, for OSC_CHECK=2. The runner reads the comments of this
// file: see cases.h. A barrier puts each access behind the call of the operation, which its epoch alone completes.
#include <cstring>

#include "memory_epochs.h"

namespace corpus {
namespace {

volatile int g_seen = 0;
volatile std::size_t g_bytes = 2 * sizeof(int);

void store_during_put() {
    IntWindow window;
    int value = 1;
    fence_epoch(
        window, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 3, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] { window.base()[3] = 7; });                                                // reported: conflicting accesses
}

void load_during_put() {
    IntWindow window;
    int value = 1;
    fence_epoch(
        window, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] { g_seen = window.base()[0]; });                                           // reported: conflicting accesses
}

void store_during_get() {
    IntWindow window;
    int value = 0;
    fence_epoch(
        window,
        [&] { MPI_Get(&value, 1, MPI_INT, kTarget, 63, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] { window.base()[63] = 7; });                                        // reported: conflicting accesses
}

void store_during_put_posted() {
    IntWindow window;
    int value = 1;
    post_epoch(
        window, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 3, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] { window.base()[3] = 7; });                                                // reported: conflicting accesses
}

void load_during_put_posted() {
    IntWindow window;
    int value = 1;
    post_epoch(
        window, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] { g_seen = window.base()[0]; });                                           // reported: conflicting accesses
}

void store_during_get_posted() {
    IntWindow window;
    int value = 0;
    post_epoch(
        window,
        [&] { MPI_Get(&value, 1, MPI_INT, kTarget, 63, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] { window.base()[63] = 7; });                                        // reported: conflicting accesses
}

void load_during_accumulate() {
    IntWindow window;
    const MPI_Win win = window;
    int one = 1;
    fence_epoch(
        win,
        [&] {
            MPI_Accumulate(&one, 1, MPI_INT, kTarget, 5, 1, MPI_INT, MPI_SUM, win);  // reported: conflicting accesses
        },
        [&] { g_seen = window.base()[5]; });  // reported: conflicting accesses
}

// Other bytes of the page come first, and nothing of the page is read at the call site of the store.
void store_after_other_accesses() {
    IntWindow window;
    int value = 1;
    fence_epoch(
        window, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 9, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] {
            g_seen = window.base()[20];
            window.base()[21] = 5;
            window.base()[9] += 1;  // reported: conflicting accesses
        });
}

// One load of a loop over the whole window conflicts.
void sweep() {
    IntWindow window;
    int value = 1;
    fence_epoch(
        window,
        [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 50, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] {
            for (int i = 0; i < 64; ++i)
                g_seen = g_seen + window.base()[i];  // reported: conflicting accesses
        });
}

// Most pages of a window stay closed while others are in use.
void several_pages() {
    IntWindow window(8192);
    int value = 1;
    fence_epoch(
        window,
        [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 5000, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] {
            std::memcpy(window.base() + 1000, window.base() + 7000, 100 * g_bytes);
            window.base()[5000] = 3;  // reported: conflicting accesses
        });
}

// The C library stores for the program.
void store_by_the_library() {
    IntWindow window;
    int value = 1;
    const int copy[2] = {};
    fence_epoch(
        window, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 8, 1, MPI_INT, window); },  // reported: conflicting accesses
        [&] {
            std::memcpy(window.base() + 8, copy, g_bytes);  // reported: conflicting accesses
        });
}

}  // namespace

#define CASE(name) \
    { #name, &name }

const std::vector<Case> kWrong = {CASE(store_during_put),
                                  CASE(load_during_put),
                                  CASE(store_during_get),
                                  CASE(store_during_put_posted),
                                  CASE(load_during_put_posted),
                                  CASE(store_during_get_posted),
                                  CASE(load_during_accumulate),
                                  CASE(store_after_other_accesses),
                                  CASE(sweep),
                                  CASE(several_pages),
                                  CASE(store_by_the_library)};
const std::vector<Case> kHanging = {};

}  // namespace corpus
