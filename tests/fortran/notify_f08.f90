! Every procedure of the module osc_notify (osc/notify_f08.f90), with the data that a notification implies. With libosc
! the operations are libosc's, without it those of osc/notify_fallback.h.
program notify_f08
  use iso_c_binding
  use mpi_f08
  use osc_notify
  use proof
  implicit none
  integer, parameter :: aint = MPI_ADDRESS_KIND
  integer, parameter :: long = MPI_COUNT_KIND
  integer, parameter :: n = 16
  integer :: me, ranks, next, prev, all_failures, error, counters
  integer(long) :: value
  type(MPI_Win) :: win
  type(c_ptr) :: memory
  integer, pointer, asynchronous :: mine(:)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(me + 1, ranks)
  prev = mod(me + ranks - 1, ranks)
  call MPI_Win_allocate(4_aint * n, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
  call c_f_pointer(memory, mine, [n])
  mine = 0
  call OSC_Win_set_num_notify(win, MPI_INFO_NULL, 3 + me)
  call OSC_Win_get_num_notify(win, next, counters)
  call check_equal(counters, 3 + next, 'counters of the next rank')
  call MPI_Win_lock_all(0, win)
  call operations()
  call request_forms()
  call counting()
  call wrong_arguments()
  call MPI_Win_unlock_all(win)
  ! The operations go to libosc if and only if it serves the window.
  call check(OSC_Win_serves_notify(win) .eqv. with_libosc(), 'osc_win_serves_notify')
  call served('Win_allocate Win_lock_all Win_unlock_all Win_flush')
  call MPI_Win_free(win)
  call MPI_Allreduce(failed(), all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  call conclude(me, all_failures)

contains

  logical function with_libosc()
    integer :: status
    character(len=4096) :: preload
    call get_environment_variable('LD_PRELOAD', preload, status=status)
    with_libosc = status == 0 .and. index(preload, 'libosc.so') > 0
  end function with_libosc

  ! Each rank waits for its left neighbour; the answer, on counter 1, allows the next operation.
  subroutine turn(counter, wanted)
    integer, intent(in) :: counter, wanted(:)
    integer :: nothing(0)
    integer(long), save :: answers = 0
    call OSC_Win_wait_notify(win, counter, 1_long, value)
    call check(value == 1_long, 'value of a wait')
    call check(all(mine(1:size(wanted)) == wanted), 'data behind its notification')
    call OSC_Win_reset_notify_value(win, counter, value)
    call check(value == 1_long, 'value of a reset')
    answers = answers + 1
    call OSC_Put_notify(nothing, 0, MPI_INTEGER, prev, 0_aint, 0, MPI_INTEGER, 1, win)
    call OSC_Win_wait_notify(win, 1, answers)
  end subroutine turn

  subroutine operations()
    integer, asynchronous :: out(4), in(4), single
    out = [1, 2, 3, 4] + 10 * me
    call OSC_Put_notify(out, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, 0, win, error)
    call check_equal(error, MPI_SUCCESS, 'error of a put')
    call turn(0, [1, 2, 3, 4] + 10 * prev)
    call MPI_Win_flush(next, win)
    single = 100
    call OSC_Accumulate_notify(single, 1, MPI_INTEGER, next, 0_aint, 1, MPI_INTEGER, MPI_SUM, 2, win)
    call turn(2, [101, 2, 3, 4] + 10 * prev)
    call OSC_Get_notify(in, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, 0, win)
    call MPI_Win_flush(next, win)
    call check(all(in == [101, 2, 3, 4] + 10 * me), 'data of a get')
    call turn(0, [101, 2, 3, 4] + 10 * prev)
    in = -1
    out = 1
    call OSC_Get_accumulate_notify(out, 4, MPI_INTEGER, in, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, MPI_SUM, 0, win)
    call MPI_Win_flush(next, win)
    call check(all(in == [101, 2, 3, 4] + 10 * me), 'data of a get_accumulate')
    call turn(0, [102, 3, 4, 5] + 10 * prev)
  end subroutine operations

  subroutine request_forms()
    integer, asynchronous :: out(4), in(4)
    type(MPI_Request) :: request
    out = [5, 6, 7, 8] + 10 * me
    call OSC_Rput_notify(out, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, 0, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call turn(0, [5, 6, 7, 8] + 10 * prev)
    in = -1
    call OSC_Rget_notify(in, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, 0, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(in == [5, 6, 7, 8] + 10 * me), 'data of an rget')
    call turn(0, [5, 6, 7, 8] + 10 * prev)
    out = 1
    call OSC_Raccumulate_notify(out, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, MPI_SUM, 0, win, request, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check_equal(error, MPI_SUCCESS, 'error of an raccumulate')
    call turn(0, [6, 7, 8, 9] + 10 * prev)
    in = -1
    call OSC_Rget_accumulate_notify(out, 4, MPI_INTEGER, in, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, MPI_NO_OP, 0, win, &
      request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(in == [6, 7, 8, 9] + 10 * me), 'data of an rget_accumulate')
    call turn(0, [6, 7, 8, 9] + 10 * prev)
  end subroutine request_forms

  subroutine counting()
    integer :: nothing(0), idx
    logical :: flag
    call OSC_Win_test_notify(win, 2, 1_long, flag, value)
    call check(.not. flag .and. value == 0, 'a test before the notification')
    call MPI_Barrier(MPI_COMM_WORLD)
    call OSC_Put_notify(nothing, 0, MPI_INTEGER, next, 0_aint, 0, MPI_INTEGER, 2, win)
    call OSC_Win_wait_any_notify(win, 2, 1, 1_long, idx, value)
    call check(idx == 2 .and. value == 1, 'a wait for any')
    call OSC_Win_test_notify(win, 2, 1_long, flag)
    call check(flag, 'a test behind the notification')
    call OSC_Win_get_notify_value(win, 2, value)
    call check(value == 1, 'the value of a counter')
  end subroutine counting

  subroutine wrong_arguments()
    integer :: out(8), class
    out = 9
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call OSC_Put_notify(out, 1, MPI_INTEGER, next, 0_aint, 1, MPI_INTEGER, 3 + next, win, error)
    call MPI_Error_class(error, class)
    call check_equal(class, MPI_ERR_ARG, 'error of a counter that does not exist')
    call OSC_Put_notify(out(1:8:2), 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, 0, win, error)
    call check_equal(error, MPI_ERR_BUFFER, 'error of a buffer with gaps')
    call OSC_Win_get_notify_value(win, 3 + me, value, error)
    call MPI_Error_class(error, class)
    call check_equal(class, MPI_ERR_ARG, 'error of a value that does not exist')
    call MPI_Barrier(MPI_COMM_WORLD)
    call OSC_Win_get_notify_value(win, 0, value)
    call check(value == 0, 'no notification by errors')
  end subroutine wrong_arguments
end program notify_f08
