C     MPI_COMM_SPLIT_TYPE from mpif.h, where the host takes every process
C     for a node of its own.
      program split_mpif
      implicit none
      include 'mpif.h'
      integer ierr, nranks, me, node, members, place

      call MPI_INIT(ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, nranks, ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, me, ierr)
      call MPI_COMM_SPLIT_TYPE(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
     &     -me, MPI_INFO_NULL, node, ierr)
      call MPI_COMM_SIZE(node, members, ierr)
      call MPI_COMM_RANK(node, place, ierr)
      if (members .ne. nranks .or. place .ne. nranks - 1 - me) then
         print *, 'FAILED: rank', me, 'is', place, 'of', members
         call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      end if
      call MPI_COMM_FREE(node, ierr)
      call MPI_FINALIZE(ierr)
      end
