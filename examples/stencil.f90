! Heat in a rod of plates, in Fortran (mpi_f08): as stencil.cpp, in blocks of columns only. One-sided: each rank puts its
! outer columns into its neighbours' ghost columns between fences. With --messages: the same by MPI_Sendrecv.
!   stencil_f08 [--messages] [COLUMNS [ROWS [STEPS]]]
! Exit status: 0, 1 if the field differs from that of a sequential run, 2 for wrong arguments.
program stencil
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  use mpi_f08
  implicit none
  integer :: ranks, rank, left, right, columns, rows, steps, mine, step, now, off
  integer :: sizes(3) = [96, 64, 100]
  logical :: messages = .false.
  type(MPI_Win) :: win
  type(c_ptr) :: memory
  ! Two fields, both in the window; columns 1 and mine + 2 are ghosts.
  real(real64), pointer, asynchronous :: field(:, :, :)
  real(real64), allocatable :: whole(:, :)
  double precision :: begin, took

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call read_arguments()
  columns = sizes(1)
  rows = sizes(2)
  steps = sizes(3)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  mine = last_of(rank) - last_of(rank - 1)

  call MPI_Win_allocate(8_MPI_ADDRESS_KIND * rows * (mine + 2) * 2, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
  call c_f_pointer(memory, field, [rows, mine + 2, 2])
  field = 0
  if (rank == 0) field(:, 1, :) = 1  ! the hot end
  call MPI_Barrier(MPI_COMM_WORLD)
  begin = MPI_Wtime()
  now = 1
  do step = 1, steps
    if (messages) then
      call exchange_by_messages(field(:, :, now))
    else
      call exchange_by_puts()
    end if
    call relax(field(:, :, now), field(:, :, 3 - now))
    now = 3 - now
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  took = MPI_Wtime() - begin

  off = 0
  allocate (whole(rows, columns))
  call gather(field(:, 2:mine + 1, now))
  if (rank == 0) then
    if (difference() > 1d-12) off = 1
    print '(a, i0, 2a, 3(a, i0), a, f0.4, 2a)', 'stencil_f08 ranks=', ranks, ' exchange=', &
      trim(merge('messages', 'fence   ', messages)), ' points=', columns, 'x', rows, ' steps=', steps, &
      ' seconds=', took, ' verified=', trim(merge('NO ', 'yes', off == 1))
  end if
  call MPI_Bcast(off, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call MPI_Win_free(win)
  call MPI_Finalize()
  if (off /= 0) stop 1, quiet=.true.

contains

  ! The last column of a rank's block.
  pure integer function last_of(of)
    integer, intent(in) :: of
    last_of = sizes(1) * (of + 1) / ranks
  end function last_of

  subroutine exchange_by_puts()
    integer(MPI_ADDRESS_KIND) :: base, there
    base = int(now - 1, MPI_ADDRESS_KIND)
    call MPI_Win_fence(MPI_MODE_NOPRECEDE, win)
    if (left /= MPI_PROC_NULL) then
      there = last_of(left) - last_of(left - 1)
      call MPI_Put(field(1, 2, now), rows, MPI_DOUBLE_PRECISION, left, rows * (base * (there + 2) + there + 1), rows, &
                   MPI_DOUBLE_PRECISION, win)
    end if
    if (right /= MPI_PROC_NULL) then
      there = last_of(right) - last_of(right - 1)
      call MPI_Put(field(1, mine + 1, now), rows, MPI_DOUBLE_PRECISION, right, rows * base * (there + 2), rows, &
                   MPI_DOUBLE_PRECISION, win)
    end if
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
  end subroutine exchange_by_puts

  subroutine exchange_by_messages(f)
    real(real64), intent(inout), contiguous :: f(:, :)
    call MPI_Sendrecv(f(1, 2), rows, MPI_DOUBLE_PRECISION, left, 0, f(1, mine + 2), rows, MPI_DOUBLE_PRECISION, right, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(f(1, mine + 1), rows, MPI_DOUBLE_PRECISION, right, 0, f(1, 1), rows, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine exchange_by_messages

  ! The mean of the four neighbours; above the first row and below the last one it is cold.
  subroutine relax(from, to)
    real(real64), intent(in) :: from(:, :)
    real(real64), intent(inout) :: to(:, :)
    real(real64) :: up, down
    integer :: i, j
    do j = 2, size(from, 2) - 1
      do i = 1, rows
        up = 0
        down = 0
        if (i > 1) up = from(i - 1, j)
        if (i < rows) down = from(i + 1, j)
        to(i, j) = 0.25_real64 * (from(i, j - 1) + from(i, j + 1) + up + down)
      end do
    end do
  end subroutine relax

  subroutine gather(block)
    real(real64), intent(in) :: block(:, :)
    integer :: counts(ranks), starts(ranks), r
    do r = 0, ranks - 1
      starts(r + 1) = rows * last_of(r - 1)
      counts(r + 1) = rows * last_of(r) - starts(r + 1)
    end do
    call MPI_Gatherv(block, size(block), MPI_DOUBLE_PRECISION, whole, counts, starts, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end subroutine gather

  ! From the same steps on one process.
  real(real64) function difference()
    real(real64) :: alone(rows, columns + 2, 2)
    integer :: at
    alone = 0
    alone(:, 1, :) = 1
    do at = 1, steps
      call relax(alone(:, :, 2 - mod(at, 2)), alone(:, :, 1 + mod(at, 2)))
    end do
    difference = maxval(abs(whole - alone(:, 2:columns + 1, 1 + mod(steps, 2))))
  end function difference

  subroutine read_arguments()
    character(len=64) :: word
    integer :: i, given, status
    given = 0
    do i = 1, command_argument_count()
      call get_command_argument(i, word)
      if (word == '--messages') then
        messages = .true.
        cycle
      end if
      given = given + 1
      status = 1
      if (given <= 3) read (word, *, iostat=status) sizes(given)
      if (status == 0) status = merge(0, 1, sizes(given) >= 1)
      if (status /= 0) call give_up(trim(word) // ': not [--messages] [COLUMNS [ROWS [STEPS]]], numbers from 1 on')
    end do
    if (sizes(1) < ranks) call give_up('fewer columns than ranks')
  end subroutine read_arguments

  subroutine give_up(why)
    character(len=*), intent(in) :: why
    if (rank == 0) write (error_unit, '(2a)') 'stencil_f08: ', why
    call MPI_Finalize()
    stop 2, quiet=.true.
  end subroutine give_up

end program stencil
