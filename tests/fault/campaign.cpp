// A script of epochs in which one process meets a fault at a chosen moment: campaign.py makes the table and runs it.
//
//   fault_campaign EPOCH VICTIM FAULT MOMENT STEP [private]
//
// EPOCH: lock, lock_all, request, fence, pscw, dynamic, window. VICTIM: a rank; 2 is the target, 0 and 1 are origins, 3
// only takes part in what is collective. FAULT: kill, stop (continued later), abort, pause (until the launcher ends the
// job); or a fault of this program, which campaign.py must find: hang, corrupt (what follows is wrong), litter (a
// process stays). MOMENT: before, in or after the STEP of that name in the round kFault. Every call must succeed, or
// report the death if there is one.
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "survivors.h"

namespace {

using namespace fault;

constexpr int kTarget = 2, kRounds = 12, kFault = 6;
constexpr int kBlock = 2000;
constexpr int kWords = 2 * kBlock + 4;  // a block and a counter of each origin

const char *g_fault, *g_moment, *g_step;
int g_victim = 0;
int g_round = 0;
bool g_private = false;
bool g_reached = false;
bool g_corrupts = false;

void suffer() {
    g_reached = true;
    if (std::strcmp(g_fault, "stop") == 0) ::waitpid(stop_after(0), nullptr, 0);
    if (std::strcmp(g_fault, "kill") == 0) {
        meet_survivors("reached", false);
        ::kill(::getpid(), SIGKILL);
    }
    if (std::strcmp(g_fault, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
    if (std::strcmp(g_fault, "hang") == 0) sleep_for(3600);
    if (std::strcmp(g_fault, "corrupt") == 0) g_corrupts = true;
    if (std::strcmp(g_fault, "litter") == 0 && ::fork() == 0) {
        ::setsid();  // the launcher ends the processes of its own session
        ::execlp("sleep", "sleep", "20", nullptr);
    }
    if (std::strcmp(g_fault, "pause") == 0) {
        meet_survivors("reached", false);
        sleep_for(3600);
    }
}

bool is(const char* word, const char* wanted) {
    return std::strcmp(word, wanted) == 0;
}

bool now_at(const char* moment, const char* step) {
    return g_round == kFault && !g_reached && is(g_moment, moment) && is(g_step, step);
}

// Whether a call waits for other processes, which come late then.
bool waits(const char* name) {
    constexpr const char* kWaiting[] = {"lock", "fence", "last_fence", "start", "complete",
                                        "post", "wait",  "create",     "free",  "compute"};
    return std::any_of(std::begin(kWaiting), std::end(kWaiting), [&](const char* one) { return is(name, one); });
}

// One call of the script; false if it reports a death.
template <class Call>
bool step(const char* name, Call&& call) {
    std::thread during;
    pid_t child = 0;
    if (now_at("in", name)) {
        if (g_rank == g_victim) {
            std::mt19937 random{std::random_device{}()};
            const double after = waits(name) ? 0.05 : std::uniform_real_distribution<>(0, 0.0002)(random);
            g_reached = true;
            if (is(name, "lock")) sleep_for(0.03);  // the other origin has the lock
            if (is(g_fault, "stop"))
                child = stop_after(after);
            else
                during = std::thread([after] {
                    sleep_for(after);
                    suffer();
                });
        } else if (waits(name) && !is(name, "lock")) {
            sleep_for(0.15);
        }
    }
    if (g_rank == g_victim && now_at("before", name)) suffer();
    const int error = timed(name, call);
    if (during.joinable()) during.join();
    if (child != 0) ::waitpid(child, nullptr, 0);
    if (g_rank == g_victim && now_at("after", name)) suffer();
    const bool may_fail = is(g_fault, "kill");
    check(error == MPI_SUCCESS || (may_fail && error == MPI_ERR_OTHER), name, error, MPI_SUCCESS);
    return error == MPI_SUCCESS;
}

struct Window {
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Aint target = 0;  // displacement of the target's memory
};

constexpr MPI_Aint kBytes = kWords * static_cast<MPI_Aint>(sizeof(long));

bool create(Window& w) {
    const bool good = step("create", [&] {
        if (!g_private) return MPI_Win_allocate(kBytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w.base, &w.win);
        w.base = static_cast<long*>(std::calloc(kWords, sizeof(long)));
        return MPI_Win_create(w.base, kBytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w.win);
    });
    if (good) MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    if (good && !g_private) std::memset(w.base, 0, static_cast<std::size_t>(kBytes));
    return good;
}

// A dynamic window, before the rounds, and the memory that the target attaches in each of them.
void create_dynamic(Window& w) {
    w.base = static_cast<long*>(std::calloc(kWords, sizeof(long)));
    if (!g_private) MPI_Alloc_mem(kBytes, MPI_INFO_NULL, static_cast<void*>(&w.base));
    must_work("create_dynamic", [&] { return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w.win); });
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    MPI_Get_address(w.base, &w.target);
    MPI_Bcast(&w.target, 1, MPI_AINT, kTarget, MPI_COMM_WORLD);
}

bool release(Window& w) {
    const bool good = step("free", [&] { return MPI_Win_free(&w.win); });
    if (good && g_private) std::free(w.base);
    return good;
}

// The origin's block of the target's memory gets the round's number.
bool put(const Window& w, std::vector<long>& block) {
    block.assign(kBlock, g_round);
    if (g_corrupts) block.back() = -1;
    const MPI_Aint unit = w.target != 0 ? sizeof(long) : 1;
    return step("put", [&] {
        return MPI_Put(block.data(), kBlock, MPI_LONG, kTarget, w.target + g_rank * kBlock * unit, kBlock, MPI_LONG,
                       w.win);
    });
}

void holds(const long* block, const char* what) {
    for (int i = 0; i < kBlock; ++i)
        if (block[i] != g_round) return check_eq(block[i], g_round, what);
    check_eq(g_round, g_round, what);
}

bool origin() {
    return g_rank < 2;
}

// The blocks at the target after a synchronisation that reports no death.
void both_hold(const Window& w) {
    for (int from = 0; from < 2 && g_rank == kTarget; ++from)
        holds(w.base + from * kBlock, "what an epoch has completed");
}

// What a process does that takes no part in an epoch.
bool compute() {
    return step("compute", [] {
        sleep_for(0.002);
        return MPI_SUCCESS;
    });
}

bool lock(const Window& w, std::vector<long>& block) {
    if (!origin()) return compute();
    if (!step("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, w.win); })) return false;
    if (now_at("in", "lock") && g_rank != g_victim) sleep_for(0.15);
    static const long one = 1;
    long seen = -1;
    std::vector<long> back(kBlock, -1);
    bool good =
        put(w, block) &&
        step("accumulate",
             [&] {
                 return MPI_Accumulate(&one, 1, MPI_LONG, kTarget, 2 * kBlock + g_rank, 1, MPI_LONG, MPI_SUM, w.win);
             }) &&
        step("flush", [&] { return MPI_Win_flush(kTarget, w.win); });
    good = good && step("get", [&] {
               // A call that has reported a death has no data, and the flush need not report it again.
               int error = MPI_Get(&seen, 1, MPI_LONG, kTarget, 2 * kBlock + g_rank, 1, MPI_LONG, w.win);
               if (error != MPI_SUCCESS) return error;
               error = MPI_Get(back.data(), kBlock, MPI_LONG, kTarget, g_rank * kBlock, kBlock, MPI_LONG, w.win);
               return error != MPI_SUCCESS ? error : MPI_Win_flush(kTarget, w.win);
           });
    if (good) check_eq(seen, g_round, "a counter of this process");
    if (good) holds(back.data(), "what this process has put");
    return step("unlock", [&] { return MPI_Win_unlock(kTarget, w.win); }) && good;
}

bool lock_all(const Window& w, std::vector<long>& block) {
    if (!origin()) return compute();
    if (!step("lock_all", [&] { return MPI_Win_lock_all(0, w.win); })) return false;
    const bool good = put(w, block) && step("flush_all", [&] { return MPI_Win_flush_all(w.win); });
    return step("unlock_all", [&] { return MPI_Win_unlock_all(w.win); }) && good;
}

// A request that was made must end, also if the target has died.
bool await(const char* name, MPI_Request& request) {
    return step(name, [&] { return MPI_Wait(&request, MPI_STATUS_IGNORE); });
}

bool request(const Window& w, std::vector<long>& block) {
    if (!origin()) return compute();
    if (!step("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, w.win); })) return false;
    MPI_Request put_request = MPI_REQUEST_NULL, get_request = MPI_REQUEST_NULL;
    std::vector<long> back(kBlock, -1);
    block.assign(kBlock, g_round);
    const MPI_Aint at = g_rank * kBlock;
    bool good =
        step("rput",
             [&] {
                 return MPI_Rput(block.data(), kBlock, MPI_LONG, kTarget, at, kBlock, MPI_LONG, w.win, &put_request);
             }) &&
        await("wait_rput", put_request) && step("flush", [&] { return MPI_Win_flush(kTarget, w.win); });
    good = good &&
           step("rget",
                [&] {
                    return MPI_Rget(back.data(), kBlock, MPI_LONG, kTarget, at, kBlock, MPI_LONG, w.win, &get_request);
                }) &&
           await("wait_rget", get_request);
    if (good) holds(back.data(), "what this process has put");
    return step("unlock", [&] { return MPI_Win_unlock(kTarget, w.win); }) && good;
}

bool fence(const Window& w, std::vector<long>& block) {
    bool good = step("fence", [&] { return MPI_Win_fence(0, w.win); });
    if (good && origin()) good = put(w, block);
    good = good && step("last_fence", [&] { return MPI_Win_fence(0, w.win); });
    if (good) both_hold(w);
    return good;
}

bool pscw(const Window& w, std::vector<long>& block, MPI_Group origins, MPI_Group target) {
    if (origin())
        return step("start", [&] { return MPI_Win_start(target, 0, w.win); }) && put(w, block) &&
               step("complete", [&] { return MPI_Win_complete(w.win); });
    if (g_rank != kTarget) return true;
    const bool good = step("post", [&] { return MPI_Win_post(origins, 0, w.win); }) &&
                      step("wait", [&] { return MPI_Win_wait(w.win); });
    if (good) both_hold(w);
    return good;
}

bool dynamic(const Window& w, std::vector<long>& block) {
    bool good = g_rank != kTarget || step("attach", [&] { return MPI_Win_attach(w.win, w.base, kBytes); });
    good = good && fence(w, block);
    return good && (g_rank != kTarget || step("detach", [&] { return MPI_Win_detach(w.win, w.base); }));
}

bool window() {
    Window w;
    std::vector<long> block;
    return create(w) && fence(w, block) && release(w);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (g_size != 4 || argc < 6) return 1;
    const char* epoch = g_scenario = argv[1];
    g_victim = std::atoi(argv[2]);
    g_fault = argv[3];
    g_moment = argv[4];
    g_step = argv[5];
    g_private = argc > 6;
    Window w;
    std::vector<long> block;
    MPI_Group origins = group_of({0, 1}), target = group_of({kTarget});
    bool good = create(w);
    // A call of each rank that libosc serves, which leave() counts.
    must_work("own lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, w.win); });
    must_work("own unlock", [&] { return MPI_Win_unlock(g_rank, w.win); });
    Window attached;
    if (is(epoch, "dynamic")) create_dynamic(attached);
    MPI_Barrier(MPI_COMM_WORLD);
    for (g_round = 1; good && g_round <= kRounds; ++g_round)
        good = is(epoch, "lock")       ? lock(w, block)
               : is(epoch, "lock_all") ? lock_all(w, block)
               : is(epoch, "request")  ? request(w, block)
               : is(epoch, "fence")    ? fence(w, block)
               : is(epoch, "pscw")     ? pscw(w, block, origins, target)
               : is(epoch, "dynamic")  ? dynamic(attached, block)
                                       : window();
    // Processes that end would take the job down before the victim meets its fault.
    if (g_rank != g_victim && (is(g_fault, "abort") || is(g_fault, "pause"))) sleep_for(3600);
    if (g_rank == g_victim) check(g_reached, "the fault's moment", 0, 1);
    // No other process ends before the victim has met its fault, however late it runs.
    if (g_rank != g_victim && is(g_fault, "kill")) await_process("reached", g_victim);
    if (is(g_fault, "stop") && good) must_work("free", [&] { return MPI_Win_free(&w.win); });
    // In PSCW a process that waits for one whose call failed learns of its end.
    leave(!is(epoch, "pscw") || good);
}
