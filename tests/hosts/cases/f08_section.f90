! MPI 4.1, 19.1.12: where MPI_SUBARRAYS_SUPPORTED is true, a section is a buffer, of nonblocking calls too.
! case: `mpi_f08`: a section with a stride as the buffer of MPI_Put and MPI_Rget
program f08_section
  use iso_c_binding
  use mpi_f08
  implicit none
  integer(MPI_ADDRESS_KIND), parameter :: bytes = 64, first = 0
  integer :: me, i, wrong, anywhere
  integer, asynchronous :: got(8), mine(8)
  integer, pointer :: window(:)
  type(c_ptr) :: base
  type(MPI_Win) :: win
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  wrong = 0
  if (MPI_SUBARRAYS_SUPPORTED) then
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, window, [16])
    window = -1
    got = 0
    mine = [(10 * me + i, i = 1, 8)]
    call MPI_Win_fence(0, win)
    call MPI_Put(mine(1:8:2), 4, MPI_INTEGER, 1 - me, first, 4, MPI_INTEGER, win)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
    if (any(window(1:4) /= [(10 * (1 - me) + 2 * i - 1, i = 1, 4)]) .or. window(5) /= -1) wrong = 1
    call MPI_Win_lock_all(0, win)
    call MPI_Rget(got(2:8:2), 4, MPI_INTEGER, 1 - me, first, 4, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(got(2:8:2) /= mine(1:8:2)) .or. any(got(1:7:2) /= 0)) wrong = wrong + 2
    call MPI_Win_unlock_all(win)
    call MPI_Win_free(win)
  end if
  call MPI_Allreduce(wrong, anywhere, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (anywhere /= 0) then
    if (me == 0) print '(a)', 'wrong: the section has other values'
    stop 1
  end if
  if (me == 0) print '(a)', 'right'
end program
