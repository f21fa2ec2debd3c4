! notify_f08.f90: the module osc_notify, notified RMA for Fortran 2008 programs (mpi_f08). The procedures are those of
! osc/notify.h, with its rules, and take the arguments of mpi_f08; ierror is optional everywhere, and so is the value
! that a wait or test returns. Compile this file with the program's compiler, notify_f08.c with mpicc, and link both:
! they use libosc where it serves the window, and osc/notify_fallback.h elsewhere.
!
! Buffers must be contiguous: of a section with gaps a procedure returns MPI_ERR_BUFFER without calling an error handler.
! As with every nonblocking operation, a buffer of the program is asynchronous until the operation has completed.
module osc_notify
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_loc, c_null_ptr
  use mpi_f08
  implicit none
  private

  public :: OSC_Win_serves_notify, OSC_Win_set_num_notify, OSC_Win_get_num_notify, OSC_Win_get_notify_value
  public :: OSC_Win_reset_notify_value, OSC_Win_wait_notify, OSC_Win_test_notify, OSC_Win_wait_any_notify
  public :: OSC_Put_notify, OSC_Get_notify, OSC_Accumulate_notify, OSC_Get_accumulate_notify
  public :: OSC_Rput_notify, OSC_Rget_notify, OSC_Raccumulate_notify, OSC_Rget_accumulate_notify

  integer, parameter :: aint = MPI_ADDRESS_KIND
  integer, parameter :: long = MPI_COUNT_KIND

  interface
    function c_address(buffer, bottom) bind(C, name='osc_f08_address') result(address)
      import :: c_ptr
      type(c_ptr), value :: buffer
      type(*), intent(in) :: bottom
      type(c_ptr) :: address
    end function c_address

    integer(c_int) function c_serves(win) bind(C, name='osc_f08_serves_notify')
      import :: c_int
      integer(c_int), value :: win
    end function c_serves

    integer(c_int) function c_set_num(win, info, num) bind(C, name='osc_f08_set_num_notify')
      import :: c_int
      integer(c_int), value :: win, info, num
    end function c_set_num

    integer(c_int) function c_get_num(win, target_rank, num) bind(C, name='osc_f08_get_num_notify')
      import :: c_int
      integer(c_int), value :: win, target_rank
      integer(c_int), intent(out) :: num
    end function c_get_num

    integer(c_int) function c_value(win, idx, value) bind(C, name='osc_f08_get_notify_value')
      import :: c_int, long
      integer(c_int), value :: win, idx
      integer(long), intent(out) :: value
    end function c_value

    integer(c_int) function c_reset(win, idx, value) bind(C, name='osc_f08_reset_notify_value')
      import :: c_int, long
      integer(c_int), value :: win, idx
      integer(long), intent(out) :: value
    end function c_reset

    integer(c_int) function c_wait(win, idx, threshold, value) bind(C, name='osc_f08_wait_notify')
      import :: c_int, long
      integer(c_int), value :: win, idx
      integer(long), value :: threshold
      integer(long), intent(inout) :: value
    end function c_wait

    integer(c_int) function c_test(win, idx, threshold, flag, value) bind(C, name='osc_f08_test_notify')
      import :: c_int, long
      integer(c_int), value :: win, idx
      integer(long), value :: threshold
      integer(c_int), intent(inout) :: flag
      integer(long), intent(inout) :: value
    end function c_test

    integer(c_int) function c_wait_any(win, first, count, threshold, idx, value) bind(C, name='osc_f08_wait_any_notify')
      import :: c_int, long
      integer(c_int), value :: win, first, count
      integer(long), value :: threshold
      integer(c_int), intent(inout) :: idx
      integer(long), intent(inout) :: value
    end function c_wait_any

    integer(c_int) function c_put(origin, origin_count, origin_type, target_rank, target_disp, target_count, target_type, &
        idx, win, request) bind(C, name='osc_f08_put_notify')
      import :: c_int, c_ptr, aint
      type(c_ptr), value :: origin
      integer(c_int), value :: origin_count, origin_type, target_rank, target_count, target_type, idx, win
      integer(aint), value :: target_disp
      integer(c_int), intent(inout), optional :: request
    end function c_put

    integer(c_int) function c_get(origin, origin_count, origin_type, target_rank, target_disp, target_count, target_type, &
        idx, win, request) bind(C, name='osc_f08_get_notify')
      import :: c_int, c_ptr, aint
      type(c_ptr), value :: origin
      integer(c_int), value :: origin_count, origin_type, target_rank, target_count, target_type, idx, win
      integer(aint), value :: target_disp
      integer(c_int), intent(inout), optional :: request
    end function c_get

    integer(c_int) function c_accumulate(origin, origin_count, origin_type, target_rank, target_disp, target_count, target_type, &
        idx, win, op, request) bind(C, name='osc_f08_accumulate_notify')
      import :: c_int, c_ptr, aint
      type(c_ptr), value :: origin
      integer(c_int), value :: origin_count, origin_type, target_rank, target_count, target_type, idx, win, op
      integer(aint), value :: target_disp
      integer(c_int), intent(inout), optional :: request
    end function c_accumulate

    integer(c_int) function c_get_accumulate(origin, origin_count, origin_type, fetched, fetched_count, fetched_type, &
        target_rank, target_disp, target_count, target_type, idx, win, op, request) &
        bind(C, name='osc_f08_get_accumulate_notify')
      import :: c_int, c_ptr, aint
      type(c_ptr), value :: origin, fetched
      integer(c_int), value :: origin_count, origin_type, fetched_count, fetched_type, target_rank, target_count, &
        target_type, idx, win, op
      integer(aint), value :: target_disp
      integer(c_int), intent(inout), optional :: request
    end function c_get_accumulate
  end interface

contains

  ! The address of a buffer; false if it has gaps.
  logical function found(buffer, address)
    type(*), dimension(..), target, intent(in) :: buffer
    type(c_ptr), intent(out) :: address
    found = is_contiguous(buffer)
    address = c_null_ptr
    if (found) address = c_address(c_loc(buffer), MPI_BOTTOM)
  end function found

  subroutine give(error, ierror)
    integer, intent(in) :: error
    integer, intent(out), optional :: ierror
    if (present(ierror)) ierror = error
  end subroutine give

  !> Whether libosc serves notified operations on the window.
  logical function OSC_Win_serves_notify(win)
    type(MPI_Win), intent(in) :: win
    OSC_Win_serves_notify = c_serves(win%MPI_VAL) /= 0
  end function OSC_Win_serves_notify

  !> Gives this process `num` counters, all 0. Collective.
  subroutine OSC_Win_set_num_notify(win, info, num, ierror)
    type(MPI_Win), intent(in) :: win
    type(MPI_Info), intent(in) :: info
    integer, intent(in) :: num
    integer, intent(out), optional :: ierror
    call give(c_set_num(win%MPI_VAL, info%MPI_VAL, num), ierror)
  end subroutine OSC_Win_set_num_notify

  !> The number of counters of a process.
  subroutine OSC_Win_get_num_notify(win, target_rank, num, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: target_rank
    integer, intent(out) :: num
    integer, intent(out), optional :: ierror
    call give(c_get_num(win%MPI_VAL, target_rank, num), ierror)
  end subroutine OSC_Win_get_num_notify

  !> The value of one of this process's counters, which count from 0.
  subroutine OSC_Win_get_notify_value(win, idx, value, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: idx
    integer(long), intent(out) :: value
    integer, intent(out), optional :: ierror
    call give(c_value(win%MPI_VAL, idx, value), ierror)
  end subroutine OSC_Win_get_notify_value

  !> Sets a counter to 0 and returns what it was.
  subroutine OSC_Win_reset_notify_value(win, idx, value, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: idx
    integer(long), intent(out) :: value
    integer, intent(out), optional :: ierror
    call give(c_reset(win%MPI_VAL, idx, value), ierror)
  end subroutine OSC_Win_reset_notify_value

  !> Waits until a counter is at least `threshold`.
  subroutine OSC_Win_wait_notify(win, idx, threshold, value, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: idx
    integer(long), intent(in) :: threshold
    integer(long), intent(out), optional :: value
    integer, intent(out), optional :: ierror
    integer(long) :: counted
    counted = 0
    call give(c_wait(win%MPI_VAL, idx, threshold, counted), ierror)
    if (present(value)) value = counted
  end subroutine OSC_Win_wait_notify

  !> Whether a counter is at least `threshold`.
  subroutine OSC_Win_test_notify(win, idx, threshold, flag, value, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: idx
    integer(long), intent(in) :: threshold
    logical, intent(out) :: flag
    integer(long), intent(out), optional :: value
    integer, intent(out), optional :: ierror
    integer(long) :: counted
    integer(c_int) :: reached
    counted = 0
    reached = 0
    call give(c_test(win%MPI_VAL, idx, threshold, reached, counted), ierror)
    flag = reached /= 0
    if (present(value)) value = counted
  end subroutine OSC_Win_test_notify

  !> Waits until one of the counters first, first + 1, ... first + count - 1 is at least `threshold`; `idx` is the first.
  subroutine OSC_Win_wait_any_notify(win, first, count, threshold, idx, value, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: first, count
    integer(long), intent(in) :: threshold
    integer, intent(out) :: idx
    integer(long), intent(out), optional :: value
    integer, intent(out), optional :: ierror
    integer(long) :: counted
    counted = 0
    idx = -1
    call give(c_wait_any(win%MPI_VAL, first, count, threshold, idx, counted), ierror)
    if (present(value)) value = counted
  end subroutine OSC_Win_wait_any_notify

  ! The operations. The R forms return a request, which completes with the operation at the origin.

  subroutine OSC_Put_notify(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, &
      target_datatype, notification_idx, win, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: origin_addr
    integer, intent(in) :: origin_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin
    if (.not. found(origin_addr, origin)) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_put(origin, origin_count, origin_datatype%MPI_VAL, target_rank, target_disp, target_count, &
      target_datatype%MPI_VAL, notification_idx, win%MPI_VAL), ierror)
  end subroutine OSC_Put_notify

  subroutine OSC_Get_notify(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, &
      target_datatype, notification_idx, win, ierror)
    type(*), dimension(..), asynchronous, target :: origin_addr
    integer, intent(in) :: origin_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin
    if (.not. found(origin_addr, origin)) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_get(origin, origin_count, origin_datatype%MPI_VAL, target_rank, target_disp, target_count, &
      target_datatype%MPI_VAL, notification_idx, win%MPI_VAL), ierror)
  end subroutine OSC_Get_notify

  subroutine OSC_Accumulate_notify(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, &
      target_datatype, op, notification_idx, win, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: origin_addr
    integer, intent(in) :: origin_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin
    if (.not. found(origin_addr, origin)) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_accumulate(origin, origin_count, origin_datatype%MPI_VAL, target_rank, target_disp, target_count, &
      target_datatype%MPI_VAL, notification_idx, win%MPI_VAL, op%MPI_VAL), ierror)
  end subroutine OSC_Accumulate_notify

  subroutine OSC_Get_accumulate_notify(origin_addr, origin_count, origin_datatype, result_addr, result_count, &
      result_datatype, target_rank, target_disp, target_count, target_datatype, op, notification_idx, win, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: origin_addr
    type(*), dimension(..), asynchronous, target :: result_addr
    integer, intent(in) :: origin_count, result_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, result_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin, fetched
    logical :: whole
    whole = found(origin_addr, origin)
    if (whole) whole = found(result_addr, fetched)
    if (.not. whole) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_get_accumulate(origin, origin_count, origin_datatype%MPI_VAL, fetched, result_count, &
      result_datatype%MPI_VAL, target_rank, target_disp, target_count, target_datatype%MPI_VAL, notification_idx, &
      win%MPI_VAL, op%MPI_VAL), ierror)
  end subroutine OSC_Get_accumulate_notify

  subroutine OSC_Rput_notify(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, &
      target_datatype, notification_idx, win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: origin_addr
    integer, intent(in) :: origin_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin
    if (.not. found(origin_addr, origin)) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_put(origin, origin_count, origin_datatype%MPI_VAL, target_rank, target_disp, target_count, &
      target_datatype%MPI_VAL, notification_idx, win%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine OSC_Rput_notify

  subroutine OSC_Rget_notify(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, &
      target_datatype, notification_idx, win, request, ierror)
    type(*), dimension(..), asynchronous, target :: origin_addr
    integer, intent(in) :: origin_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin
    if (.not. found(origin_addr, origin)) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_get(origin, origin_count, origin_datatype%MPI_VAL, target_rank, target_disp, target_count, &
      target_datatype%MPI_VAL, notification_idx, win%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine OSC_Rget_notify

  subroutine OSC_Raccumulate_notify(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, &
      target_datatype, op, notification_idx, win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: origin_addr
    integer, intent(in) :: origin_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin
    if (.not. found(origin_addr, origin)) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_accumulate(origin, origin_count, origin_datatype%MPI_VAL, target_rank, target_disp, target_count, &
      target_datatype%MPI_VAL, notification_idx, win%MPI_VAL, op%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine OSC_Raccumulate_notify

  subroutine OSC_Rget_accumulate_notify(origin_addr, origin_count, origin_datatype, result_addr, result_count, &
      result_datatype, target_rank, target_disp, target_count, target_datatype, op, notification_idx, win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: origin_addr
    type(*), dimension(..), asynchronous, target :: result_addr
    integer, intent(in) :: origin_count, result_count, target_rank, target_count, notification_idx
    type(MPI_Datatype), intent(in) :: origin_datatype, result_datatype, target_datatype
    integer(aint), intent(in) :: target_disp
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, intent(out), optional :: ierror
    type(c_ptr) :: origin, fetched
    logical :: whole
    whole = found(origin_addr, origin)
    if (whole) whole = found(result_addr, fetched)
    if (.not. whole) then
      call give(MPI_ERR_BUFFER, ierror)
      return
    end if
    call give(c_get_accumulate(origin, origin_count, origin_datatype%MPI_VAL, fetched, result_count, &
      result_datatype%MPI_VAL, target_rank, target_disp, target_count, target_datatype%MPI_VAL, notification_idx, &
      win%MPI_VAL, op%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine OSC_Rget_accumulate_notify

end module osc_notify
