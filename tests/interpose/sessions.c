/* sessions.c: windows of a program that uses sessions: on communicators of sessions, so that nothing may depend on
 * MPI_COMM_WORLD, of several sessions in turn or at once, and before and after MPI_Init. MPICH before 4.1.1 crashes in
 * the second MPI_Session_init of a process, and in any window or communicator made from a session's communicator of a
 * single process: there the program has one session. */
#include <mpi.h>
#include <osc/osc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MPI_SESSION_NULL
int main(void) {
    puts("SKIPPED: the host has no sessions: all right");
    return 0;
}
#else

#pragma weak osc_served
#pragma weak osc_forwarded

static int failures;
static int windows;
static int rank, size;
static int makes_types = 1;

static void expect(int fine, const char* what) {
    if (fine) return;
    ++failures;
    printf("rank %d: not true: %s\n", rank, what);
}

struct session {
    MPI_Session handle;
    MPI_Comm comm;
};

static struct session begin(const char* name) {
    struct session made;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made.handle);
    MPI_Group_from_session_pset(made.handle, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made.comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(made.comm, &rank);
    MPI_Comm_size(made.comm, &size);
    return made;
}

static void end(struct session* session) {
    MPI_Comm_free(&session->comm);
    MPI_Session_finalize(&session->handle);
}

struct window {
    MPI_Win handle;
    long* memory;
};

static struct window allocate(MPI_Comm comm) {
    struct window made;
    MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, comm, &made.memory, &made.handle);
    memset(made.memory, 0, 4 * sizeof(long));
    ++windows;
    return made;
}

/* Puts under fences, tickets under locks, and requests, of a window whose memory is zero. */
static void use(struct window window, MPI_Comm comm, long base) {
    MPI_Request request = MPI_REQUEST_NULL;
    const long value = base + rank, one = 1;
    const int next = (rank + 1) % size, prev = (rank + size - 1) % size;
    long got = -1;
    memset(window.memory, 0, 4 * sizeof(long));
    MPI_Win_fence(0, window.handle);
    MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, window.handle);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.handle);
    expect(window.memory[0] == base + prev, "a put under fence arrives");
    for (int i = 0; i < 100; ++i) {
        long before = -1;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.handle);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 1, MPI_SUM, window.handle);
        MPI_Win_unlock(0, window.handle);
        expect(before >= i, "tickets grow");
    }
    MPI_Win_lock_all(0, window.handle);
    MPI_Rget(&got, 1, MPI_LONG, next, 0, 1, MPI_LONG, window.handle, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window.handle);
    expect(got == value, "a request gets what was put");
    MPI_Barrier(comm);
    if (rank == 0) expect(window.memory[1] == 100L * size, "every ticket was drawn");
}

static void use_new(MPI_Comm comm, long base) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    struct window window = allocate(comm);
    long own[4] = {0};
    struct window created = {MPI_WIN_NULL, own};
    void* piece = NULL;
    use(window, comm, base);
    MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, comm, &created.handle);
    use(created, comm, base + 10);
    if (makes_types) {
        MPI_Type_vector(2, 1, 2, MPI_LONG, &type);
        MPI_Type_commit(&type);
        MPI_Win_fence(0, window.handle);
        MPI_Put(own, 1, type, rank, 0, 1, type, window.handle);
        MPI_Win_fence(0, window.handle);
        expect(window.memory[2] == own[2], "a put of a derived type");
        MPI_Type_free(&type);
    }
    expect(MPI_Alloc_mem(1000, MPI_INFO_NULL, &piece) == MPI_SUCCESS && MPI_Free_mem(piece) == MPI_SUCCESS,
           "MPI_Alloc_mem and MPI_Free_mem");
    MPI_Win_free(&created.handle);
    MPI_Win_free(&window.handle);
}

static void one_after_the_other(void) {
    for (int cycle = 0; cycle < 3; ++cycle) {
        struct session session = begin("libosc.test.cycle");
        use_new(session.comm, 100 * cycle);
        end(&session);
    }
}

/* Each session ends while a window of the next one lives. */
static void a_chain(void) {
    struct session session = begin("libosc.test.chain");
    struct window window = allocate(session.comm);
    for (int link = 0; link < 3; ++link) {
        struct session next = begin("libosc.test.next");
        struct window of_next = allocate(next.comm);
        use(window, session.comm, 1000 + link);
        MPI_Win_free(&window.handle);
        end(&session);
        use(of_next, next.comm, 1100 + link);
        session = next;
        window = of_next;
    }
    MPI_Win_free(&window.handle);
    end(&session);
}

/* A session without windows lives longer, and the other way round. */
static void nested(void) {
    struct session outer = begin("libosc.test.outer");
    for (int inner = 0; inner < 2; ++inner) {
        struct session session = begin("libosc.test.inner");
        use_new(session.comm, 2000 + inner);
        end(&session);
    }
    use_new(outer.comm, 2100);
    end(&outer);
}

/* The communicator goes before its window, and a session leaves a window. */
static void left(int leaves) {
    struct session session = begin("libosc.test.left");
    struct window window = allocate(session.comm);
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(session.comm, &copy);
    MPI_Comm_free(&session.comm);
    use(window, copy, 3000);
    if (!leaves) MPI_Win_free(&window.handle);
    MPI_Comm_free(&copy);
    MPI_Session_finalize(&session.handle);
}

/* The world begins when no session lives, has one beside it, and ends before another one. */
static void around_the_world(void) {
    int provided = 0;
    struct session inside, outside;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    use_new(MPI_COMM_WORLD, 4000);
    inside = begin("libosc.test.inside");
    use_new(inside.comm, 4100);
    end(&inside);
    outside = begin("libosc.test.outside");
    struct window window = allocate(outside.comm);
    use_new(MPI_COMM_WORLD, 4200);
    use(window, outside.comm, 4300);
    MPI_Finalize();
    use(window, outside.comm, 4400);
    MPI_Win_free(&window.handle);
    use_new(outside.comm, 4500);
    end(&outside);
}

/* libosc sets what Intel MPI reads at its start, and takes it back whether the host starts or not. */
static void a_start_that_may_fail(void) {
    const int set = getenv("I_MPI_THREAD_YIELD") != NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "no such level");
    if (MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS) MPI_Session_finalize(&session);
    MPI_Info_free(&info);
    expect((getenv("I_MPI_THREAD_YIELD") != NULL) == set, "the environment is as before");
}

int main(int argc, char** argv) {
    int version = 0, subversion = 0, all = 0;
    MPI_Get_version(&version, &subversion);
    if (version * 100 + subversion >= 401) a_start_that_may_fail();
    struct session session = begin("libosc.test.sessions");
    if (size > 1) use_new(session.comm, 40);
    end(&session);
    if (version * 100 + subversion >= 401) {
        makes_types = version >= 5; /* MPICH 4.2 takes a committed type of a second cycle for an uncommitted one */
        one_after_the_other();
        a_chain();
        nested();
        left(0);
        left(1);
        one_after_the_other();
        if (argc > 1 && strcmp(argv[1], "world") == 0) around_the_world();
        session = begin("libosc.test.end");
        MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, session.comm);
        end(&session);
    } else {
        all = failures;
    }
    if (osc_served != NULL && getenv("OSC_DISABLE") == NULL &&
        (osc_served("MPI_Win_allocate") != (unsigned long long)windows || osc_served("MPI_Put") == 0 ||
         osc_forwarded("MPI_Win_allocate") != 0)) {
        printf("libosc did not serve the windows\n");
        all = 1;
    }
    if (rank == 0 && all == 0) printf("all right\n");
    return all == 0 ? 0 : 1;
}
#endif
