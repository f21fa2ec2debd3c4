// What the cases of notified RMA share. On the host alone they run over osc/notify_fallback.h.
#pragma once

#include "harness.h"
#include "osc/notify_fallback.h"
#include "windows.h"

namespace osct {

// A window with counters, in a lock_all epoch.
struct Notified : Window {
    Notified(WindowKind kind, std::size_t bytes, int counters) : Window(kind, bytes) {
        CHECK_OK(OSC_Win_set_num_notify(handle(), MPI_INFO_NULL, counters));
        CHECK_OK(MPI_Win_lock_all(0, handle()));
    }
    ~Notified() { CHECK_OK(MPI_Win_unlock_all(handle())); }
    Notified(const Notified&) = delete;
    Notified& operator=(const Notified&) = delete;

    void put(const void* from, int count, MPI_Datatype type, int target, std::size_t byte, int counter) const {
        CHECK_OK(OSC_Put_notify(from, count, type, target, at(target, byte), count, type, counter, handle()));
    }
    // A notification without data.
    void signal(int target, int counter) const { put(nullptr, 0, MPI_BYTE, target, 0, counter); }
    MPI_Count await(int counter, MPI_Count threshold) const {
        MPI_Count value = -1;
        CHECK_OK(OSC_Win_wait_notify(handle(), counter, threshold, &value));
        return value;
    }
    MPI_Count value(int counter) const {
        MPI_Count value = -1;
        CHECK_OK(OSC_Win_get_notify_value(handle(), counter, &value));
        return value;
    }
};

inline int rounds(int served) {
    return served_by_osc() ? (full() ? 20 * served : served) : 5;
}

}  // namespace osct
