// Right and wrong programs with notified operations (osc/notify.h), in lock_all epochs. No origin completes its
// operations before the end: notifications, and messages after them, order.
#include <dlfcn.h>

#include "epochs.h"
#include "osc/notify.h"

using namespace races;

namespace {

// The program is not linked to libosc, which is preloaded.
template <class F>
F* find(F*, const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}
#define FUNCTION(name) find(&name, #name)

class NotifiedCase : public Case {
  public:
    explicit NotifiedCase(const char* name) : Case(name) {
        FUNCTION(OSC_Win_set_num_notify)(win(), MPI_INFO_NULL, 1);
        MPI_Win_lock_all(0, win());
    }
    ~NotifiedCase() {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(win());
    }
    NotifiedCase(const NotifiedCase&) = delete;
    NotifiedCase& operator=(const NotifiedCase&) = delete;
};

void pass_token(int from, int to) {
    int token = 0;
    if (g_rank == from) MPI_Send(&token, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    if (g_rank == to) MPI_Recv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// The target sees the notification and tells the second process, which gets what the first one has put.
void observed() {
    NotifiedCase at("notified.observed");
    at.expect_nothing();
    if (g_rank == g_first) FUNCTION(OSC_Put_notify)(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, 0, at.win());
    if (g_rank == 0) FUNCTION(OSC_Win_wait_notify)(at.win(), 0, 1, nullptr);
    pass_token(0, g_second);
    if (g_rank == g_second) MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
}

// The same by notifications alone, which are polled, with accumulates of different operations.
void chain() {
    NotifiedCase at("notified.chain");
    at.expect_nothing();
    if (g_rank == g_first)
        FUNCTION(OSC_Accumulate_notify)(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_SUM, 0, at.win());
    if (g_rank == 0) {
        int seen = 0;
        while (seen == 0)
            FUNCTION(OSC_Win_test_notify)(at.win(), 0, 1, &seen, nullptr);
        FUNCTION(OSC_Put_notify)(nullptr, 0, MPI_BYTE, g_second, 0, 0, MPI_BYTE, 0, at.win());
    }
    if (g_rank == g_second) {
        FUNCTION(OSC_Win_wait_notify)(at.win(), 0, 1, nullptr);
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_MAX, at.win());
    }
}

// The target sees both notifications after both puts have been issued.
void unordered() {
    NotifiedCase at("notified.unordered");
    at.expect_calls("OSC_Put_notify", "OSC_Put_notify", 8, 16);
    if (g_rank == g_first) FUNCTION(OSC_Put_notify)(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, 0, at.win());
    if (g_rank == g_second) FUNCTION(OSC_Put_notify)(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, 0, at.win());
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 0) FUNCTION(OSC_Win_wait_notify)(at.win(), 0, 2, nullptr);
}

// A notification says nothing of other operations.
void other_operation() {
    NotifiedCase at("notified.other_operation");
    at.expect_calls("MPI_Put", "MPI_Get", 8, 16);
    if (g_rank == g_first) {
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        FUNCTION(OSC_Put_notify)(at.value(), 1, MPI_LONG, 0, 32, 1, MPI_LONG, 0, at.win());
    }
    if (g_rank == 0) FUNCTION(OSC_Win_wait_notify)(at.win(), 0, 1, nullptr);
    pass_token(0, g_second);
    if (g_rank == g_second) MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
}

}  // namespace

void races::notified_cases() {
    observed();
    chain();
    unordered();
    other_operation();
}
