/* notify_f08.c: the C side of the Fortran module osc_notify (notify_f08.f90). Compile it with mpicc and link it with
 * the program. It uses libosc's notified operations on windows that libosc serves, and those of notify_fallback.h on
 * all others. notify.h has the rules. */
#include "notify_fallback.h"

/* What a buffer's address means in C: MPI_BOTTOM is a variable in Fortran. */
void* osc_f08_address(void* buffer, const void* bottom) {
    return buffer == bottom ? MPI_BOTTOM : buffer;
}

int osc_f08_set_num_notify(MPI_Fint win, MPI_Fint info, int num) {
    return OSC_Win_set_num_notify(MPI_Win_f2c(win), MPI_Info_f2c(info), num);
}
int osc_f08_get_num_notify(MPI_Fint win, int target_rank, int* num) {
    return OSC_Win_get_num_notify(MPI_Win_f2c(win), target_rank, num);
}
int osc_f08_get_notify_value(MPI_Fint win, int idx, MPI_Count* value) {
    return OSC_Win_get_notify_value(MPI_Win_f2c(win), idx, value);
}
int osc_f08_reset_notify_value(MPI_Fint win, int idx, MPI_Count* value) {
    return OSC_Win_reset_notify_value(MPI_Win_f2c(win), idx, value);
}
int osc_f08_wait_notify(MPI_Fint win, int idx, MPI_Count threshold, MPI_Count* value) {
    return OSC_Win_wait_notify(MPI_Win_f2c(win), idx, threshold, value);
}
int osc_f08_test_notify(MPI_Fint win, int idx, MPI_Count threshold, int* flag, MPI_Count* value) {
    return OSC_Win_test_notify(MPI_Win_f2c(win), idx, threshold, flag, value);
}
int osc_f08_wait_any_notify(MPI_Fint win, int first, int count, MPI_Count threshold, int* idx, MPI_Count* value) {
    return OSC_Win_wait_any_notify(MPI_Win_f2c(win), first, count, threshold, idx, value);
}
int osc_f08_serves_notify(MPI_Fint win) {
    return osc_fallback_served(MPI_Win_f2c(win));
}

/* The operations: `request` is null, or where the request of the R form goes. */
#define OSC_F08_TO int target_rank, MPI_Aint target_disp, int target_count, MPI_Fint target_type, int idx, MPI_Fint win
#define OSC_F08_GIVE \
    origin, origin_count, MPI_Type_f2c(origin_type), target_rank, target_disp, target_count, MPI_Type_f2c(target_type)
#define OSC_F08_GIVE_FETCH                                                                                         \
    origin, origin_count, MPI_Type_f2c(origin_type), result, result_count, MPI_Type_f2c(result_type), target_rank, \
        target_disp, target_count, MPI_Type_f2c(target_type)
#define OSC_F08_PERFORM(plain, with_request)                                       \
    MPI_Request made = MPI_REQUEST_NULL;                                           \
    const int error = request == NULL ? (plain) : (with_request);                  \
    if (request != NULL && error == MPI_SUCCESS) *request = MPI_Request_c2f(made); \
    return error

int osc_f08_put_notify(void* origin, int origin_count, MPI_Fint origin_type, OSC_F08_TO, MPI_Fint* request) {
    OSC_F08_PERFORM(OSC_Put_notify(OSC_F08_GIVE, idx, MPI_Win_f2c(win)),
                    OSC_Rput_notify(OSC_F08_GIVE, idx, MPI_Win_f2c(win), &made));
}
int osc_f08_get_notify(void* origin, int origin_count, MPI_Fint origin_type, OSC_F08_TO, MPI_Fint* request) {
    OSC_F08_PERFORM(OSC_Get_notify(OSC_F08_GIVE, idx, MPI_Win_f2c(win)),
                    OSC_Rget_notify(OSC_F08_GIVE, idx, MPI_Win_f2c(win), &made));
}
int osc_f08_accumulate_notify(void* origin, int origin_count, MPI_Fint origin_type, OSC_F08_TO, MPI_Fint op,
                              MPI_Fint* request) {
    OSC_F08_PERFORM(OSC_Accumulate_notify(OSC_F08_GIVE, MPI_Op_f2c(op), idx, MPI_Win_f2c(win)),
                    OSC_Raccumulate_notify(OSC_F08_GIVE, MPI_Op_f2c(op), idx, MPI_Win_f2c(win), &made));
}
int osc_f08_get_accumulate_notify(void* origin, int origin_count, MPI_Fint origin_type, void* result, int result_count,
                                  MPI_Fint result_type, OSC_F08_TO, MPI_Fint op, MPI_Fint* request) {
    OSC_F08_PERFORM(OSC_Get_accumulate_notify(OSC_F08_GIVE_FETCH, MPI_Op_f2c(op), idx, MPI_Win_f2c(win)),
                    OSC_Rget_accumulate_notify(OSC_F08_GIVE_FETCH, MPI_Op_f2c(op), idx, MPI_Win_f2c(win), &made));
}
