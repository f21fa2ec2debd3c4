// Makes known numbers of the calls of osc/notify.h on a named window, and prints them for job_records.py and
// timeline.py: "did WINDOW KIND|SYNC OPERATIONS BYTES", by rank. With statistics it also waits until a wait has had to
// wait.
#include <osc/notify_fallback.h>
#include <osc/osc.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "did.h"
#include "window_number.h"

#pragma weak osc_window_stat

namespace {

constexpr int kInts = 1 << 15;  // of the window
constexpr int kCounters = 9;

std::map<std::string, Did> g_did;

void count(const char* what, int ints = 0) {
    Did& did = g_did[what];
    ++did.calls;
    did.bytes += sizeof(int) * static_cast<unsigned>(ints);
}

// Every operation, each with a counter of its own, and every call on counters. All ranks do the same to the next one.
void every_call(MPI_Win win, int target) {
    std::vector<int> from(kInts, 1);
    std::vector<int> to(kInts);
    std::array<MPI_Request, 4> requests{};
    MPI_Count value = 0;
    int index = 0;
    int flag = 0;
    for (const int ints : {1, 16, 1000, kInts}) {
        OSC_Put_notify(from.data(), ints, MPI_INT, target, 0, ints, MPI_INT, 0, win);
        count("put_notify", ints);
        OSC_Get_notify(to.data(), ints, MPI_INT, target, 0, ints, MPI_INT, 1, win);
        count("get_notify", ints);
    }
    OSC_Put_notify(from.data(), 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, 0, win);  // not counted
    OSC_Accumulate_notify(from.data(), 10, MPI_INT, target, 0, 10, MPI_INT, MPI_SUM, 2, win);
    count("accumulate_notify", 10);
    OSC_Get_accumulate_notify(from.data(), 10, MPI_INT, to.data(), 10, MPI_INT, target, 0, 10, MPI_INT, MPI_SUM, 3,
                              win);
    count("get_accumulate_notify", 10);
    MPI_Win_flush_all(win);
    count("flush_all");
    OSC_Rput_notify(from.data(), 3, MPI_INT, target, 0, 3, MPI_INT, 4, win, &requests[0]);
    OSC_Rget_notify(to.data(), 3, MPI_INT, target, 4, 3, MPI_INT, 5, win, &requests[1]);
    OSC_Raccumulate_notify(from.data(), 3, MPI_INT, target, 8, 3, MPI_INT, MPI_SUM, 6, win, &requests[2]);
    OSC_Rget_accumulate_notify(from.data(), 3, MPI_INT, to.data() + 8, 3, MPI_INT, target, 12, 3, MPI_INT, MPI_SUM, 7,
                               win, &requests[3]);
    for (const char* kind : {"rput_notify", "rget_notify", "raccumulate_notify", "rget_accumulate_notify"})
        count(kind, 3);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (int counter = 0; counter < 7; ++counter) {
        OSC_Win_wait_notify(win, counter, counter < 2 ? 4 : 1, nullptr);
        count("wait_notify");
    }
    OSC_Win_wait_any_notify(win, 7, 1, 1, &index, &value);
    OSC_Win_test_notify(win, 7, 1, &flag, &value);
    OSC_Win_get_notify_value(win, 1, &value);
    OSC_Win_reset_notify_value(win, 1, &value);
    for (const char* call : {"wait_any_notify", "test_notify", "get_notify_value", "reset_notify_value"})
        count(call);
}

// Until a wait has slept: each rank answers the previous one's notification after a pause.
void wait_long(MPI_Win win, int rank, int ranks) {
    unsigned long long waited = 0;
    for (MPI_Count round = 1; waited == 0; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            ::usleep(5000);
            for (int target = 1; target < ranks; ++target) {
                OSC_Put_notify(nullptr, 0, MPI_INT, target, 0, 0, MPI_INT, 8, win);
                count("put_notify");
            }
        } else {
            OSC_Win_wait_notify(win, 8, round, nullptr);
            count("wait_notify");
            osc_window_stat(number_of(win), "wait_notify.waiting_ns", &waited);
        }
        MPI_Bcast(&waited, 1, MPI_UNSIGNED_LONG_LONG, ranks - 1, MPI_COMM_WORLD);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int rank = 0;
    int ranks = 0;
    int* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int)) * kInts, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     static_cast<void*>(&memory), &win);
    MPI_Win_set_name(win, "notified");
    // The windows of one process, at different numbers on the ranks.
    std::vector<MPI_Win> own(static_cast<std::size_t>(rank));
    for (MPI_Win& single : own)
        MPI_Win_create(memory, 4, 1, MPI_INFO_NULL, MPI_COMM_SELF, &single);
    OSC_Win_set_num_notify(win, MPI_INFO_NULL, kCounters);
    count("set_num_notify");
    MPI_Win_lock_all(0, win);
    count("lock_all");
    every_call(win, (rank + 1) % ranks);
    if (std::getenv("OSC_STATS") != nullptr) wait_long(win, rank, ranks);
    MPI_Win_unlock_all(win);
    count("unlock_all");
    std::string done;
    for (const auto& [what, did] : g_did)
        done += line_of("notified", what, did);
    print_together(done);
    for (MPI_Win& single : own)
        MPI_Win_free(&single);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
