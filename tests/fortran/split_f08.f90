! MPI_Comm_split_type from mpi_f08, where the host takes every process for a node of its own.
program split_f08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: node
  integer :: world_size, world_rank, node_size, node_rank

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, world_size)
  call MPI_Comm_rank(MPI_COMM_WORLD, world_rank)
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -world_rank, MPI_INFO_NULL, node)
  call MPI_Comm_size(node, node_size)
  call MPI_Comm_rank(node, node_rank)
  if (node_size /= world_size .or. node_rank /= world_size - 1 - world_rank) then
    print *, 'FAILED: rank', world_rank, 'is', node_rank, 'of', node_size
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Comm_free(node)
  call PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
  call MPI_Comm_size(node, node_size)
  if (node_size /= world_size) then
    print *, 'FAILED: PMPI_Comm_split_type gives', node_size, 'of', world_size
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Comm_free(node)
  call MPI_Finalize()
end program split_f08
