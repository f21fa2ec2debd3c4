// Makes known numbers of operations and synchronisation calls on named windows, and prints them for job_records.py,
// which compares them with the JSON of OSC_STATS: "did WINDOW KIND|SYNC OPERATIONS BYTES", by rank. It asks
// osc_window_stat() for the same numbers itself. Without libosc, or without OSC_STATS, it prints them all the same.
#include <mpi.h>
#include <osc/osc.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "did.h"
#include "large_forms.h"
#include "window_number.h"

#pragma weak osc_window_stat

namespace {

constexpr int kInts = 1 << 15;  // of a window
constexpr int kThreads = 4;
constexpr int kRounds = 300;  // of each thread
int g_rank = 0;
int g_size = 0;
int g_failures = 0;

std::string g_done;  // lines

// A window, what was done with it, and the calls. All ranks use it alike, with the next rank as target.
class Window {
  public:
    Window(const char* name, MPI_Win win, int target, MPI_Aint place = 0)
        : name_(name), win_(win), target_(target), place_(place) {
        MPI_Win_set_name(win, name);
    }

    void count(const char* what, unsigned long long bytes = 0) {
        Did& did = did_[what];
        ++did.calls;
        did.bytes += bytes;
    }
    void put(int count_of) {
        MPI_Put(from_.data(), count_of, MPI_INT, target_, place_, count_of, MPI_INT, win_);
        count("put", sizeof(int) * static_cast<unsigned>(count_of));
    }
    void get(int count_of) {
        MPI_Get(to_.data(), count_of, MPI_INT, target_, place_, count_of, MPI_INT, win_);
        count("get", sizeof(int) * static_cast<unsigned>(count_of));
    }

    // Puts and gets, each between two on the other window, so that the way of the one must not be counted for the
    // other. On a node those on private memory come in a long run.
    void run_beside(Window& other) {
        for (Window* window : {this, &other})
            MPI_Win_lock_all(0, window->win_);
        for (int i = 0; i < 100; ++i)
            put(2), other.put(1), get(2), other.get(1);
        for (Window* window : {this, &other}) {
            MPI_Win_unlock_all(window->win_);
            window->count("lock_all"), window->count("unlock_all");
        }
    }

    // Every kind once or more, in a lock_all epoch.
    void every_kind() {
        long one = 1;
        long none = 0;
        std::array<MPI_Request, 4> requests{};
        MPI_Datatype column = MPI_DATATYPE_NULL;
        MPI_Type_vector(3, 2, 5, MPI_INT, &column);
        MPI_Type_commit(&column);
        MPI_Win_lock_all(0, win_);
        for (const int size : {1, 2, 16, 100, 1000, 8000, kInts})
            put(size), get(size);
        MPI_Put_c(from_.data(), 3, MPI_INT, target_, 0, 3, MPI_INT, win_);
        count("put", 3 * sizeof(int));
        MPI_Put(from_.data(), 1, column, target_, 0, 6, MPI_INT, win_);
        count("put", 6 * sizeof(int));
        MPI_Put(from_.data(), 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win_);  // not counted
        MPI_Win_flush(target_, win_);
        for (int i = 0; i < 5; ++i)
            MPI_Accumulate(&one, 1, MPI_LONG, target_, 0, 1, MPI_LONG, MPI_SUM, win_), count("accumulate", sizeof one);
        MPI_Accumulate(from_.data(), 50, MPI_INT, target_, 0, 50, MPI_INT, MPI_MAX, win_);
        count("accumulate", 50 * sizeof(int));
        for (int i = 0; i < 3; ++i)
            MPI_Get_accumulate(&one, 1, MPI_LONG, &none, 1, MPI_LONG, target_, 0, 1, MPI_LONG, MPI_NO_OP, win_),
                count("get_accumulate", sizeof one);
        for (int i = 0; i < 4; ++i)
            MPI_Fetch_and_op(&one, &none, MPI_LONG, target_, 0, MPI_SUM, win_), count("fetch_and_op", sizeof one);
        MPI_Compare_and_swap(&one, &none, &none, MPI_LONG, target_, 0, win_);
        count("compare_and_swap", sizeof one);
        MPI_Win_flush_all(win_);
        MPI_Win_flush_local(target_, win_);
        MPI_Win_flush_local_all(win_);
        MPI_Rput(from_.data(), 4, MPI_INT, target_, 0, 4, MPI_INT, win_, &requests[0]);
        MPI_Rget(to_.data(), 4, MPI_INT, target_, 0, 4, MPI_INT, win_, &requests[1]);
        MPI_Raccumulate(&one, 1, MPI_LONG, target_, 0, 1, MPI_LONG, MPI_SUM, win_, &requests[2]);
        MPI_Rget_accumulate(&one, 1, MPI_LONG, &none, 1, MPI_LONG, target_, 0, 1, MPI_LONG, MPI_SUM, win_,
                            &requests[3]);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        count("rput", 4 * sizeof(int)), count("rget", 4 * sizeof(int));
        count("raccumulate", sizeof one), count("rget_accumulate", sizeof one);
        MPI_Win_sync(win_);
        MPI_Win_unlock_all(win_);
        for (const char* call :
             {"lock_all", "flush", "flush_all", "flush_local", "flush_local_all", "sync", "unlock_all"})
            count(call);
        MPI_Type_free(&column);
    }

    // Fences, locks, and post-start-complete-wait with both neighbours in the ring being the same process or another.
    void every_epoch(int source) {
        for (int i = 0; i < 3; ++i)
            MPI_Win_fence(0, win_), count("fence"), put(1);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win_);
        count("fence");
        for (int i = 0; i < 4; ++i) {
            MPI_Win_lock(i % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target_, 0, win_);
            put(2);
            MPI_Win_unlock(target_, win_);
            count("lock"), count("unlock");
        }
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Group to = MPI_GROUP_NULL;
        MPI_Group from = MPI_GROUP_NULL;
        MPI_Win_get_group(win_, &all);
        MPI_Group_incl(all, 1, &target_, &to);
        MPI_Group_incl(all, 1, &source, &from);
        MPI_Win_post(from, 0, win_);
        MPI_Win_start(to, 0, win_);
        put(1);
        MPI_Win_complete(win_);
        MPI_Win_wait(win_);
        for (const char* call : {"post", "start", "complete", "wait"})
            count(call);
        for (MPI_Group* group : {&all, &to, &from})
            MPI_Group_free(group);
    }

    void threads() {
        MPI_Win_lock_all(0, win_);
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t)
            threads.emplace_back([this] {
                const int value = 1;
                for (int i = 0; i < kRounds; ++i) {
                    MPI_Put(&value, 1, MPI_INT, target_, 0, 1, MPI_INT, win_);
                    MPI_Win_flush(target_, win_);
                }
            });
        threads.clear();
        MPI_Win_unlock_all(win_);
        for (int i = 0; i < kThreads * kRounds; ++i)
            count("put", sizeof(int)), count("flush");
        count("lock_all"), count("unlock_all");
    }

    // osc_window_stat() knows the same. Appends them all to g_done.
    void report() const {
        for (const auto& [what, did] : did_) {
            g_done.append(line_of(name_, what, did));
            if (std::getenv("TEST_SERVED") == nullptr) continue;
            unsigned long long calls = 0;
            unsigned long long bytes = 0;
            const bool is_sync = osc_window_stat(number_of(win_), (what + ".calls").c_str(), &calls) == 0;
            if (!is_sync) osc_window_stat(number_of(win_), (what + ".operations").c_str(), &calls);
            if (!is_sync) osc_window_stat(number_of(win_), (what + ".bytes").c_str(), &bytes);
            if (calls == did.calls && bytes == did.bytes) continue;
            std::printf("FAILED: rank %d, %s: osc_window_stat gives %llu, %llu for %s\n", g_rank, name_.c_str(), calls,
                        bytes, what.c_str());
            ++g_failures;
        }
    }

  private:
    const std::string name_;
    MPI_Win win_;
    const int target_;
    const MPI_Aint place_;
    std::map<std::string, Did> did_;
    std::vector<int> from_ = std::vector<int>(kInts), to_ = std::vector<int>(kInts);
};

// A dynamic window with `bytes` bytes of each rank, and where they lie on the target.
MPI_Win attach(void* memory, MPI_Aint bytes, int target, MPI_Aint& place) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, bytes);
    MPI_Aint mine = 0;
    MPI_Get_address(memory, &mine);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(g_size));
    MPI_Allgather(&mine, 1, MPI_AINT, all.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    place = all[static_cast<std::size_t>(target)];
    return win;
}

// A dynamic window over private memory, and one over memory of MPI_Alloc_mem. Each operation looks its region up.
void regions(int target) {
    constexpr MPI_Aint kBytes = 64;
    std::array<int, 16> memory{};
    void* shared = nullptr;
    MPI_Alloc_mem(kBytes, MPI_INFO_NULL, static_cast<void*>(&shared));
    std::array<MPI_Aint, 2> places{};
    std::array<MPI_Win, 2> wins{attach(memory.data(), kBytes, target, places[0]),
                                attach(shared, kBytes, target, places[1])};
    Window first("attached", wins[0], target, places[0]);
    Window second("mapped", wins[1], target, places[1]);
    first.run_beside(second);
    first.report();
    second.report();
    for (MPI_Win& win : wins)
        MPI_Win_free(&win);
    MPI_Free_mem(shared);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "kinds";
    int level = 0;
    MPI_Init_thread(&argc, &argv, mode == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    const int target = (g_rank + 1) % g_size;
    const int source = (g_rank + g_size - 1) % g_size;
    constexpr MPI_Aint kBytes = kInts * sizeof(int);
    void* shared = nullptr;
    std::vector<int> memory(kInts);
    MPI_Win allocated = MPI_WIN_NULL;
    MPI_Win created = MPI_WIN_NULL;
    MPI_Win_allocate(kBytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&shared), &allocated);
    // The windows of one process come between those of all, at different numbers on the ranks.
    std::vector<MPI_Win> own(static_cast<std::size_t>(g_rank));
    for (MPI_Win& win : own)
        MPI_Win_create(memory.data(), 4, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_create(memory.data(), kBytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    {
        // A name that JSON must escape, with a byte that is not UTF-8.
        Window first("al\"lo\\ca\ated \xc3\xa9\xff", allocated, target);
        Window second("created", created, target);
        for (Window* window : {&first, &second}) {
            if (mode == "threads")
                window->threads();
            else
                window->every_kind();
            MPI_Barrier(MPI_COMM_WORLD);
            if (mode != "threads") window->every_epoch(source);
        }
        for (const Window* window : {&first, &second})
            window->report();
    }
    if (mode != "threads") regions(target);
    MPI_Win_free(&allocated);  // the other one is left to MPI_Finalize
    for (MPI_Win& win : own)
        MPI_Win_free(&win);
    print_together(g_done);
    MPI_Finalize();
    return g_failures == 0 ? 0 : 1;
}
