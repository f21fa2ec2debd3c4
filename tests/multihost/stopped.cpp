// A process is stopped for longer than OSC_DEBUG=peer_timeout, as by a debugger or a batch system, in each role in
// turn; the others wait for it meanwhile. It lives, so every call works and the data is right.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "debug_setting.h"

namespace {

constexpr int kVictim = 1;

int g_rank = 0;
int g_size = 0;
int g_failures = 0;
const char* g_role = "";
long* g_base = nullptr;
MPI_Win g_win = MPI_WIN_NULL;
const long kValue = 4;

void expect(bool good, const char* what) {
    if (good) return;
    ++g_failures;
    std::printf("FAILED: rank %d, %s: %s\n", g_rank, g_role, what);
}

bool ok(int error) {
    return error == MPI_SUCCESS;
}

// Stops this process until a child continues it.
void stop() {
    const pid_t parent = ::getpid();
    const double seconds = 2.5 * std::atof(osct::debug_setting("peer_timeout").c_str());
    const pid_t child = ::fork();
    if (child == 0) {
        ::usleep(static_cast<useconds_t>(seconds * 1e6));
        while (::kill(parent, SIGCONT) == 0 && ::getppid() == parent)
            ::usleep(100000);
        ::_exit(0);
    }
    ::kill(parent, SIGSTOP);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

// The others begin when the victim has stopped, or is about to.
template <class Victim, class Others>
void run(const char* role, Victim&& victim, Others&& others) {
    g_role = role;
    g_base[0] = g_base[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    if (g_rank == kVictim)
        victim();
    else
        others();
    std::printf("rank %d: %s took %.1f s\n", g_rank, role, MPI_Wtime() - began);
    MPI_Barrier(MPI_COMM_WORLD);
}

void put_and_get() {
    long seen = -1;
    expect(ok(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kVictim, 0, g_win)), "lock");
    expect(ok(MPI_Put(&kValue, 1, MPI_LONG, kVictim, 0, 1, MPI_LONG, g_win)), "put");
    expect(ok(MPI_Win_flush(kVictim, g_win)), "flush");
    expect(ok(MPI_Get(&seen, 1, MPI_LONG, kVictim, 0, 1, MPI_LONG, g_win)), "get");
    expect(ok(MPI_Win_unlock(kVictim, g_win)), "unlock");
    expect(seen == kValue, "what was put");
}

void as_target() {
    run(
        "the target of passive epochs", [] { stop(); }, [] { put_and_get(); });
}

void as_holder() {
    run(
        "the holder of a lock",
        [] {
            expect(ok(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, g_win)), "lock");
            expect(ok(MPI_Put(&kValue, 1, MPI_LONG, 0, 1, 1, MPI_LONG, g_win)), "put");
            expect(ok(MPI_Win_flush(0, g_win)), "flush");
            MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            stop();
            expect(ok(MPI_Win_unlock(0, g_win)), "unlock");
        },
        [] {
            if (g_rank != 0) return;
            MPI_Recv(nullptr, 0, MPI_BYTE, kVictim, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(ok(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, g_win)), "lock");
            expect(g_base[1] == kValue, "what the holder has put");
            expect(ok(MPI_Win_unlock(0, g_win)), "unlock");
        });
}

void fence() {
    expect(ok(MPI_Win_fence(0, g_win)), "fence");
    expect(ok(MPI_Put(&kValue, 1, MPI_LONG, (g_rank + 1) % g_size, 0, 1, MPI_LONG, g_win)), "put");
    expect(ok(MPI_Win_fence(0, g_win)), "second fence");
    expect(g_base[0] == kValue, "what was put");
}

void in_fence() {
    run(
        "a member of a fence",
        [] {
            stop();
            fence();
        },
        [] { fence(); });
}

void expose(MPI_Group group) {
    expect(ok(MPI_Win_post(group, 0, g_win)), "post");
    expect(ok(MPI_Win_wait(g_win)), "wait");
    expect(g_base[0] == kValue, "what was put");
}

void access(MPI_Group group, int target, bool stops) {
    expect(ok(MPI_Win_start(group, 0, g_win)), "start");
    if (stops) stop();
    expect(ok(MPI_Put(&kValue, 1, MPI_LONG, target, 0, 1, MPI_LONG, g_win)), "put");
    expect(ok(MPI_Win_complete(g_win)), "complete");
}

void in_pscw(MPI_Group zero, MPI_Group victim) {
    run(
        "an origin", [&] { access(zero, 0, true); },
        [&] {
            if (g_rank == 0) expose(victim);
        });
    run(
        "an exposed process",
        [&] {
            stop();
            expose(zero);
        },
        [&] {
            if (g_rank == 0) access(victim, kVictim, false);
        });
}

void create() {
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    if (!ok(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win))) return expect(false, "creation");
    expect(ok(MPI_Win_free(&win)), "free");
}

void in_creation() {
    run(
        "a member of a new window",
        [] {
            stop();
            create();
        },
        [] { create(); });
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_base, &g_win);
    MPI_Win_set_errhandler(g_win, MPI_ERRORS_RETURN);
    MPI_Group all, zero, victim;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    const int ranks[] = {0, kVictim};
    MPI_Group_incl(all, 1, &ranks[0], &zero);
    MPI_Group_incl(all, 1, &ranks[1], &victim);
    as_target();
    as_holder();
    in_fence();
    in_pscw(zero, victim);
    in_creation();
    int failures = 0;
    MPI_Allreduce(&g_failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (g_rank == 0) std::printf("%s\n", failures == 0 ? "PASSED" : "FAILED");
    for (MPI_Group* group : {&all, &zero, &victim})
        MPI_Group_free(group);
    MPI_Win_free(&g_win);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
