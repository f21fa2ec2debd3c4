/* notify_fallback.h: the calls of notify.h over any MPI-3 library, for C and C++ (GCC and Clang). Include it in place
 * of notify.h. A window that libosc serves uses libosc's notified operations. Any other window keeps its counters in a
 * second window: an operation is followed by a flush, an MPI_Accumulate on the target's counter and another flush.
 *
 * Differences there: every call waits for the operation's completion, waits poll, the processes of the window must be
 * in MPI_COMM_WORLD, and the window's memory model must be MPI_WIN_UNIFIED. Without libosc a wait does not notice a
 * dead process. The second window lives until the first one is freed.
 *
 * Link with the library of dlsym (-ldl) where it is not in libc. */
#ifndef OSC_NOTIFY_FALLBACK_H
#define OSC_NOTIFY_FALLBACK_H

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "notify.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OSC_FALLBACK static __attribute__((unused))

/* The counters of a window that libosc does not serve. */
struct osc_fallback_state {
    MPI_Comm comm;  /* the window's processes */
    MPI_Win shadow; /* the counters, of 8 bytes, in an open lock_all epoch */
    int me;
    int* numbers; /* of the counters of each process */
};

/* One object in the program, whatever the number of its source files. */
__attribute__((weak)) int osc_fallback_keyval = MPI_KEYVAL_INVALID;

/* Stores the address of a function of libosc, or null, in a pointer to a function. */
OSC_FALLBACK void osc_fallback_find(const char* name, void* function) {
    void* const program = dlopen(NULL, RTLD_LAZY);
    void* const found = program != NULL ? dlsym(program, name) : NULL;
    memcpy(function, &found, sizeof found);
}

/* Whether libosc serves the window. */
OSC_FALLBACK int osc_fallback_served(MPI_Win win) {
    static int (*serves)(MPI_Win);
    static int known;
    if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
        osc_fallback_find("OSC_Win_serves_notify", &serves);
        __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
    }
    return serves != NULL && serves(win);
}

/* Returns what libosc's function returns, if libosc serves the window. */
#define OSC_FALLBACK_NATIVE(name, win, arguments)                                \
    do {                                                                         \
        static __typeof__(&name) native;                                         \
        static int known;                                                        \
        if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {                        \
            osc_fallback_find(#name, &native);                                   \
            __atomic_store_n(&known, 1, __ATOMIC_RELEASE);                       \
        }                                                                        \
        if (native != NULL && osc_fallback_served(win)) return native arguments; \
    } while (0)

OSC_FALLBACK int osc_fallback_drop(MPI_Win win, int keyval, void* value, void* extra) {
    struct osc_fallback_state* const state = (struct osc_fallback_state*)value;
    (void)win, (void)keyval, (void)extra;
    MPI_Win_unlock_all(state->shadow);
    MPI_Win_free(&state->shadow);
    MPI_Comm_free(&state->comm);
    free(state->numbers);
    free(state);
    return MPI_SUCCESS;
}

OSC_FALLBACK struct osc_fallback_state* osc_fallback_of(MPI_Win win) {
    void* state = NULL;
    int found = 0;
    if (osc_fallback_keyval == MPI_KEYVAL_INVALID || win == MPI_WIN_NULL) return NULL;
    MPI_Win_get_attr(win, osc_fallback_keyval, &state, &found);
    return found ? (struct osc_fallback_state*)state : NULL;
}

OSC_FALLBACK int osc_fallback_raise(MPI_Win win, int error) {
    if (win != MPI_WIN_NULL) {
        MPI_Win_call_errhandler(win, error);
        return error;
    }
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_WIN);
    return MPI_ERR_WIN;
}

/* A communicator of the window's processes. Its group is made from their ranks: MPICH 4.0 crashes on a window's own. */
OSC_FALLBACK int osc_fallback_communicator(MPI_Win win, struct osc_fallback_state* state) {
    MPI_Group group, world, members;
    int size = 0, rank, error = MPI_ERR_NO_MEM;
    int* ranks;
    MPI_Win_get_group(win, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(group, &size);
    MPI_Group_rank(group, &state->me);
    state->numbers = (int*)malloc((size_t)size * sizeof(int));
    ranks = (int*)malloc(2 * (size_t)size * sizeof(int));
    if (state->numbers != NULL && ranks != NULL) {
        for (rank = 0; rank < size; ++rank)
            ranks[rank] = rank;
        MPI_Group_translate_ranks(group, size, ranks, world, ranks + size);
        error = MPI_Group_incl(world, size, ranks + size, &members);
        if (error == MPI_SUCCESS) {
            error = MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &state->comm);
            MPI_Group_free(&members);
        }
    }
    free(ranks);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    return error;
}

/* A window over all the counters, each process's number before its counters. */
OSC_FALLBACK int osc_fallback_allocate(struct osc_fallback_state* state, int num) {
    long long* counters = NULL;
    int error = MPI_Win_allocate(((MPI_Aint)num + 1) * 8, 8, MPI_INFO_NULL, state->comm, &counters, &state->shadow);
    if (error != MPI_SUCCESS) return error;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, state->me, 0, state->shadow);
    memset(counters, 0, ((size_t)num + 1) * 8);
    MPI_Win_unlock(state->me, state->shadow);
    error = MPI_Allgather(&num, 1, MPI_INT, state->numbers, 1, MPI_INT, state->comm);
    if (error == MPI_SUCCESS) error = MPI_Barrier(state->comm);
    return error == MPI_SUCCESS ? MPI_Win_lock_all(0, state->shadow) : error;
}

OSC_FALLBACK int osc_fallback_set(MPI_Win win, int num) {
    struct osc_fallback_state* state = osc_fallback_of(win);
    const int wanted = num;
    int error = MPI_SUCCESS;
    if (win == MPI_WIN_NULL) return osc_fallback_raise(win, MPI_ERR_WIN);
    if (num < 0) num = 0;
    if (state == NULL) {
        if (osc_fallback_keyval == MPI_KEYVAL_INVALID)
            MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, osc_fallback_drop, &osc_fallback_keyval, NULL);
        state = (struct osc_fallback_state*)calloc(1, sizeof *state);
        if (state == NULL) return osc_fallback_raise(win, MPI_ERR_NO_MEM);
        error = osc_fallback_communicator(win, state);
        if (error == MPI_SUCCESS) error = osc_fallback_allocate(state, num);
        if (error == MPI_SUCCESS) error = MPI_Win_set_attr(win, osc_fallback_keyval, state);
    } else {
        MPI_Win_unlock_all(state->shadow);
        MPI_Win_free(&state->shadow);
        error = osc_fallback_allocate(state, num);
    }
    if (error == MPI_SUCCESS && wanted < 0) error = MPI_ERR_ARG;
    return error != MPI_SUCCESS ? osc_fallback_raise(win, error) : MPI_SUCCESS;
}

/* The state of a window in which a process has counter `idx`, or null with `error`. */
OSC_FALLBACK struct osc_fallback_state* osc_fallback_counter(MPI_Win win, int rank, int idx, int* error) {
    struct osc_fallback_state* const state = osc_fallback_of(win);
    int size = 0;
    *error = MPI_SUCCESS;
    if (state != NULL) {
        MPI_Comm_size(state->comm, &size);
        if (rank == -1) rank = state->me;
        if (rank < 0 || rank >= size)
            *error = MPI_ERR_RANK;
        else if (idx >= 0 && idx < state->numbers[rank])
            return state;
    }
    *error = osc_fallback_raise(win, *error != MPI_SUCCESS ? *error : MPI_ERR_ARG);
    return NULL;
}

/* Applies `op` with `with` to one of this process's counters, and stores what it was. */
OSC_FALLBACK int osc_fallback_fetch(struct osc_fallback_state* state, int idx, MPI_Op op, long long with,
                                    MPI_Count* value) {
    long long old = 0;
    int error = MPI_Fetch_and_op(&with, &old, MPI_LONG_LONG, state->me, 1 + (MPI_Aint)idx, op, state->shadow);
    if (error == MPI_SUCCESS) error = MPI_Win_flush(state->me, state->shadow);
    if (value != NULL) *value = (MPI_Count)old;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return error;
}

/* Completes an operation at the target, then counts it. */
OSC_FALLBACK int osc_fallback_notify(struct osc_fallback_state* state, int target, int idx, MPI_Win win) {
    const long long one = 1;
    int error = MPI_Win_flush(target, win);
    if (error == MPI_SUCCESS)
        error =
            MPI_Accumulate(&one, 1, MPI_LONG_LONG, target, 1 + (MPI_Aint)idx, 1, MPI_LONG_LONG, MPI_SUM, state->shadow);
    return error == MPI_SUCCESS ? MPI_Win_flush(target, state->shadow) : error;
}

OSC_FALLBACK int osc_fallback_set_num_notify(MPI_Win win, MPI_Info info, int num) {
    OSC_FALLBACK_NATIVE(OSC_Win_set_num_notify, win, (win, info, num));
    return osc_fallback_set(win, num);
}

OSC_FALLBACK int osc_fallback_get_num_notify(MPI_Win win, int target_rank, int* num) {
    struct osc_fallback_state* state;
    int size = 0;
    OSC_FALLBACK_NATIVE(OSC_Win_get_num_notify, win, (win, target_rank, num));
    if (win == MPI_WIN_NULL) return osc_fallback_raise(win, MPI_ERR_WIN);
    if (num == NULL) return osc_fallback_raise(win, MPI_ERR_ARG);
    state = osc_fallback_of(win);
    *num = 0;
    if (state == NULL) return MPI_SUCCESS;
    MPI_Comm_size(state->comm, &size);
    if (target_rank < 0 || target_rank >= size) return osc_fallback_raise(win, MPI_ERR_RANK);
    *num = state->numbers[target_rank];
    return MPI_SUCCESS;
}

OSC_FALLBACK int osc_fallback_get_notify_value(MPI_Win win, int idx, MPI_Count* value) {
    struct osc_fallback_state* state;
    int error;
    OSC_FALLBACK_NATIVE(OSC_Win_get_notify_value, win, (win, idx, value));
    if (value == NULL) return osc_fallback_raise(win, MPI_ERR_ARG);
    state = osc_fallback_counter(win, -1, idx, &error);
    return state != NULL ? osc_fallback_fetch(state, idx, MPI_NO_OP, 0, value) : error;
}

OSC_FALLBACK int osc_fallback_reset_notify_value(MPI_Win win, int idx, MPI_Count* value) {
    struct osc_fallback_state* state;
    int error;
    OSC_FALLBACK_NATIVE(OSC_Win_reset_notify_value, win, (win, idx, value));
    state = osc_fallback_counter(win, -1, idx, &error);
    return state != NULL ? osc_fallback_fetch(state, idx, MPI_REPLACE, 0, value) : error;
}

OSC_FALLBACK int osc_fallback_test_notify(MPI_Win win, int idx, MPI_Count threshold, int* flag, MPI_Count* value) {
    struct osc_fallback_state* state;
    MPI_Count now = 0;
    int error;
    OSC_FALLBACK_NATIVE(OSC_Win_test_notify, win, (win, idx, threshold, flag, value));
    if (flag == NULL) return osc_fallback_raise(win, MPI_ERR_ARG);
    state = osc_fallback_counter(win, -1, idx, &error);
    if (state == NULL) return error;
    error = osc_fallback_fetch(state, idx, MPI_NO_OP, 0, &now);
    *flag = now >= threshold;
    if (value != NULL) *value = now;
    return error;
}

OSC_FALLBACK int osc_fallback_wait_any_notify(MPI_Win win, int first, int count, MPI_Count threshold, int* idx,
                                              MPI_Count* value) {
    struct osc_fallback_state* state;
    int error, at, flag;
    OSC_FALLBACK_NATIVE(OSC_Win_wait_any_notify, win, (win, first, count, threshold, idx, value));
    if (count <= 0) return osc_fallback_raise(win, MPI_ERR_ARG);
    state = osc_fallback_counter(win, -1, first, &error);
    if (state == NULL) return error;
    if (count > state->numbers[state->me] - first) return osc_fallback_raise(win, MPI_ERR_ARG);
    for (;;) {
        for (at = first; at < first + count; ++at) {
            MPI_Count now = 0;
            error = osc_fallback_fetch(state, at, MPI_NO_OP, 0, &now);
            if (error == MPI_SUCCESS && now < threshold) continue;
            if (idx != NULL) *idx = at;
            if (value != NULL) *value = now;
            return error;
        }
        /* The host may need this process for an operation of its origin. */
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, state->comm, &flag, MPI_STATUS_IGNORE);
        sched_yield();
    }
}

OSC_FALLBACK int osc_fallback_wait_notify(MPI_Win win, int idx, MPI_Count threshold, MPI_Count* value) {
    OSC_FALLBACK_NATIVE(OSC_Win_wait_notify, win, (win, idx, threshold, value));
    return osc_fallback_wait_any_notify(win, idx, 1, threshold, NULL, value);
}

/* An operation over libosc, or the host's and a notification. */
#define OSC_FALLBACK_OPERATION(name, host, parameters, arguments, host_arguments)                             \
    OSC_FALLBACK int osc_fallback_##name parameters {                                                         \
        struct osc_fallback_state* state;                                                                     \
        int error;                                                                                            \
        OSC_FALLBACK_NATIVE(OSC_##name, win, arguments);                                                      \
        if (target_rank == MPI_PROC_NULL) return MPI_##host host_arguments;                                   \
        state = osc_fallback_counter(win, target_rank < 0 ? -2 : target_rank, notification_idx, &error);      \
        if (state == NULL) return error;                                                                      \
        error = MPI_##host host_arguments;                                                                    \
        return error == MPI_SUCCESS ? osc_fallback_notify(state, target_rank, notification_idx, win) : error; \
    }
#define OSC_FALLBACK_TO int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype
#define OSC_FALLBACK_ORIGIN int origin_count, MPI_Datatype origin_datatype
#define OSC_FALLBACK_RESULT void *result_addr, int result_count, MPI_Datatype result_datatype
#define OSC_FALLBACK_GIVES \
    origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype
#define OSC_FALLBACK_FETCHES                                                                                          \
    origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, \
        target_count, target_datatype, op

OSC_FALLBACK_OPERATION(Put_notify, Put,
                       (const void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_TO, int notification_idx,
                        MPI_Win win),
                       (OSC_FALLBACK_GIVES, notification_idx, win), (OSC_FALLBACK_GIVES, win))
OSC_FALLBACK_OPERATION(Get_notify, Get,
                       (void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_TO, int notification_idx, MPI_Win win),
                       (OSC_FALLBACK_GIVES, notification_idx, win), (OSC_FALLBACK_GIVES, win))
OSC_FALLBACK_OPERATION(Accumulate_notify, Accumulate,
                       (const void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_TO, MPI_Op op, int notification_idx,
                        MPI_Win win),
                       (OSC_FALLBACK_GIVES, op, notification_idx, win), (OSC_FALLBACK_GIVES, op, win))
OSC_FALLBACK_OPERATION(Get_accumulate_notify, Get_accumulate,
                       (const void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_RESULT, OSC_FALLBACK_TO, MPI_Op op,
                        int notification_idx, MPI_Win win),
                       (OSC_FALLBACK_FETCHES, notification_idx, win), (OSC_FALLBACK_FETCHES, win))
OSC_FALLBACK_OPERATION(Rput_notify, Rput,
                       (const void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_TO, int notification_idx,
                        MPI_Win win, MPI_Request* request),
                       (OSC_FALLBACK_GIVES, notification_idx, win, request), (OSC_FALLBACK_GIVES, win, request))
OSC_FALLBACK_OPERATION(Rget_notify, Rget,
                       (void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_TO, int notification_idx, MPI_Win win,
                        MPI_Request* request),
                       (OSC_FALLBACK_GIVES, notification_idx, win, request), (OSC_FALLBACK_GIVES, win, request))
OSC_FALLBACK_OPERATION(Raccumulate_notify, Raccumulate,
                       (const void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_TO, MPI_Op op, int notification_idx,
                        MPI_Win win, MPI_Request* request),
                       (OSC_FALLBACK_GIVES, op, notification_idx, win, request), (OSC_FALLBACK_GIVES, op, win, request))
OSC_FALLBACK_OPERATION(Rget_accumulate_notify, Rget_accumulate,
                       (const void* origin_addr, OSC_FALLBACK_ORIGIN, OSC_FALLBACK_RESULT, OSC_FALLBACK_TO, MPI_Op op,
                        int notification_idx, MPI_Win win, MPI_Request* request),
                       (OSC_FALLBACK_FETCHES, notification_idx, win, request), (OSC_FALLBACK_FETCHES, win, request))

#define OSC_Win_set_num_notify osc_fallback_set_num_notify
#define OSC_Win_get_num_notify osc_fallback_get_num_notify
#define OSC_Win_get_notify_value osc_fallback_get_notify_value
#define OSC_Win_reset_notify_value osc_fallback_reset_notify_value
#define OSC_Win_wait_notify osc_fallback_wait_notify
#define OSC_Win_test_notify osc_fallback_test_notify
#define OSC_Win_wait_any_notify osc_fallback_wait_any_notify
#define OSC_Put_notify osc_fallback_Put_notify
#define OSC_Get_notify osc_fallback_Get_notify
#define OSC_Accumulate_notify osc_fallback_Accumulate_notify
#define OSC_Get_accumulate_notify osc_fallback_Get_accumulate_notify
#define OSC_Rput_notify osc_fallback_Rput_notify
#define OSC_Rget_notify osc_fallback_Rget_notify
#define OSC_Raccumulate_notify osc_fallback_Raccumulate_notify
#define OSC_Rget_accumulate_notify osc_fallback_Rget_accumulate_notify

#ifdef __cplusplus
}
#endif

#endif
