! The same from Fortran, where the library's own Fortran functions call its C functions.
program program_fortran
  use mpi
  implicit none
  integer :: me, ranks, next, prev, win, ierr, bad
  integer(kind=MPI_ADDRESS_KIND) :: zero
  integer, volatile :: memory(4)
  integer :: mine

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(me + 1, ranks)
  prev = mod(me + ranks - 1, ranks)
  memory = 0
  mine = 100 + me
  zero = 0
  call MPI_Win_create(memory, int(16, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(mine, 1, MPI_INTEGER, next, zero, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win, ierr)
  call MPI_Accumulate(mine, 1, MPI_INTEGER, next, int(1, MPI_ADDRESS_KIND), 1, MPI_INTEGER, MPI_SUM, win, ierr)
  call MPI_Win_unlock(next, win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  bad = 0
  if (memory(1) /= 100 + prev .or. memory(2) /= 100 + prev) bad = 1
  call MPI_Win_free(win, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, bad, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (me == 0 .and. bad == 0) print '(a)', 'all right'
  if (bad /= 0) error stop 'wrong data'
end program program_fortran
