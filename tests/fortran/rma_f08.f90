! RMA through `use mpi_f08`: every flavour of window, the operations, the three kinds of synchronisation, attributes,
! info, requests and error classes, and the proof that libosc served the calls.
program rma_f08
  use iso_c_binding
  use mpi_f08
  use proof
  implicit none
  integer, parameter :: aint = MPI_ADDRESS_KIND
  integer, parameter :: n = 64
  integer :: me, ranks, next, prev, all_failures

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(me + 1, ranks)
  prev = mod(me + ranks - 1, ranks)
  call fence_on_create()
  call passive_on_allocate()
  call shared_memory()
  call dynamic_memory()
  call post_start()
  call memory_and_info()
  call requests()
  call sections()
  call errors()
  call user_attribute()
  call served('Win_create Win_allocate Win_allocate_shared Win_create_dynamic Win_attach Win_detach Win_free')
  call served('Alloc_mem Free_mem Win_shared_query Win_get_group Win_get_info Win_set_info Win_get_attr')
  call served('Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap')
  call served('Rput Rget Raccumulate Rget_accumulate')
  call served('Win_fence Win_start Win_complete Win_post Win_wait Win_test Win_lock Win_unlock Win_lock_all')
  call served('Win_unlock_all Win_flush Win_flush_all Win_flush_local Win_flush_local_all Win_sync')
  call MPI_Allreduce(failed(), all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  call conclude(me, all_failures)

contains

  subroutine attributes(win, base, bytes, unit, flavor)
    type(MPI_Win), intent(in) :: win
    integer(aint), intent(in) :: base, bytes
    integer, intent(in) :: unit, flavor
    integer(aint) :: value
    logical :: flag
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag)
    call check(flag, 'MPI_WIN_BASE is set')
    call check_equal(value, base, 'MPI_WIN_BASE')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
    call check(flag, 'MPI_WIN_SIZE is set')
    call check_equal(value, bytes, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag)
    call check(flag, 'MPI_WIN_DISP_UNIT is set')
    call check_equal(value, int(unit, aint), 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call check(flag, 'MPI_WIN_CREATE_FLAVOR is set')
    call check_equal(value, int(flavor, aint), 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_get_attr(win, MPI_WIN_MODEL, value, flag)
    call check(flag, 'MPI_WIN_MODEL is set')
    call check_equal(value, int(MPI_WIN_UNIFIED, aint), 'MPI_WIN_MODEL')
  end subroutine

  subroutine fence_on_create()
    real(c_double), allocatable, asynchronous, target :: memory(:)
    real(c_double), asynchronous :: mine(n), got(n), ones(n)
    type(MPI_Win) :: win
    type(MPI_Group) :: group
    integer(aint) :: base
    integer :: i, members
    allocate (memory(2*n))
    memory = 0
    mine = [(me*1000.0_c_double + i, i=1, n)]
    ones = 1
    call MPI_Win_create(memory, int(2*n*8, aint), 8, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Get_address(memory, base)
    call attributes(win, base, int(2*n*8, aint), 8, MPI_WIN_FLAVOR_CREATE)
    call MPI_Win_get_group(win, group)
    call MPI_Group_size(group, members)
    call check_equal(members, ranks, 'size of the group')
    call MPI_Group_free(group)
    call MPI_Win_fence(MPI_MODE_NOPRECEDE, win)
    call MPI_Put(mine, n, MPI_DOUBLE_PRECISION, next, 0_aint, n, MPI_DOUBLE_PRECISION, win)
    do i = 0, ranks - 1
      call MPI_Accumulate(ones, n, MPI_DOUBLE_PRECISION, i, int(n, aint), n, MPI_DOUBLE_PRECISION, MPI_SUM, win)
    end do
    call MPI_Win_fence(0, win)
    call check_equal(memory(n), prev*1000.0_c_double + n, 'what the neighbour put')
    call check_equal(memory(n + 1), real(ranks, c_double), 'first sum')
    call check_equal(memory(2*n), real(ranks, c_double), 'last sum')
    call MPI_Get(got, n, MPI_DOUBLE_PRECISION, next, 0_aint, n, MPI_DOUBLE_PRECISION, win)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
    call check(all(abs(got - mine) < 0.5_c_double), 'what was put comes back')
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'a freed window is MPI_WIN_NULL')
  end subroutine

  subroutine passive_on_allocate()
    type(c_ptr) :: memory
    integer, pointer :: cells(:)
    integer, asynchronous :: one, old, swapped, expected, wanted, before(4), more(4)
    integer :: i
    type(MPI_Win) :: win
    integer(aint) :: base
    call MPI_Win_allocate(int(16*4, aint), 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
    call c_f_pointer(memory, cells, [16])
    call MPI_Get_address(cells, base)
    call attributes(win, base, 64_aint, 4, MPI_WIN_FLAVOR_ALLOCATE)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win)
    cells = 0
    cells(2) = me
    call MPI_Win_unlock(me, win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock_all(0, win)
    one = 1
    do i = 1, 10
      call MPI_Fetch_and_op(one, old, MPI_INTEGER, 0, 0_aint, MPI_SUM, win)
      call MPI_Win_flush(0, win)
      call check(old >= i - 1 .and. old < 10*ranks, 'a ticket is in range')
    end do
    expected = next
    wanted = -next - 1
    call MPI_Compare_and_swap(wanted, expected, swapped, MPI_INTEGER, next, 1_aint, win)
    call MPI_Win_flush_local(next, win)
    call MPI_Win_flush_all(win)
    call check_equal(swapped, next, 'what the swap found')
    more = 5
    call MPI_Get_accumulate(more, 4, MPI_INTEGER, before, 4, MPI_INTEGER, next, 4_aint, 4, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_flush_local_all(win)
    call check_equal(before(4), 0, 'what get_accumulate found')
    call MPI_Win_sync(win)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win)
    if (me == 0) call check_equal(cells(1), 10*ranks, 'the sum of the tickets')
    call check_equal(cells(2), -me - 1, 'what the neighbour swapped in')
    call check_equal(cells(8), 5, 'what the neighbour added')
    call MPI_Win_unlock(me, win)
    call MPI_Win_free(win)
  end subroutine

  subroutine shared_memory()
    type(MPI_Comm) :: node
    type(MPI_Win) :: win
    type(c_ptr) :: memory
    integer, pointer :: mine(:), other(:)
    integer(aint) :: bytes, base
    integer :: unit, node_rank, node_size, right
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_rank(node, node_rank)
    call MPI_Comm_size(node, node_size)
    right = mod(node_rank + 1, node_size)
    call MPI_Win_allocate_shared(32_aint, 4, MPI_INFO_NULL, node, memory, win)
    call c_f_pointer(memory, mine, [8])
    call MPI_Get_address(mine, base)
    call attributes(win, base, 32_aint, 4, MPI_WIN_FLAVOR_SHARED)
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, win)
    mine = node_rank*10
    call MPI_Win_sync(win)
    call MPI_Barrier(node)
    call MPI_Win_sync(win)
    call MPI_Win_shared_query(win, right, bytes, unit, memory)
    call check_equal(bytes, 32_aint, 'bytes of the neighbour')
    call check_equal(unit, 4, 'unit of the neighbour')
    call c_f_pointer(memory, other, [8])
    call check_equal(other(8), right*10, 'the value of the neighbour')
    call MPI_Win_unlock_all(win)
    call MPI_Win_free(win)
    call MPI_Comm_free(node)
  end subroutine

  subroutine dynamic_memory()
    integer, asynchronous, target :: memory(8)
    integer, asynchronous :: value
    integer(aint) :: address, there
    type(MPI_Win) :: win
    memory = -1
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call attributes(win, 0_aint, 0_aint, 1, MPI_WIN_FLAVOR_DYNAMIC)
    call MPI_Win_attach(win, memory, 32_aint)
    call MPI_Get_address(memory(3), address)
    call MPI_Sendrecv(address, 1, MPI_AINT, prev, 7, there, 1, MPI_AINT, next, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    value = me + 50
    call MPI_Win_fence(0, win)
    call MPI_Put(value, 1, MPI_INTEGER, next, there, 1, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call MPI_F_sync_reg(memory)
    call check_equal(memory(3), prev + 50, 'what arrived in attached memory')
    call MPI_Win_detach(win, memory)
    call MPI_Win_free(win)
  end subroutine

  subroutine post_start()
    integer, asynchronous :: memory(4), values(4)
    type(MPI_Win) :: win
    type(MPI_Group) :: world, to, from
    integer :: round
    logical :: done
    memory = 0
    call MPI_Win_create(memory, 16_aint, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Comm_group(MPI_COMM_WORLD, world)
    call MPI_Group_incl(world, 1, [next], to)
    call MPI_Group_incl(world, 1, [prev], from)
    do round = 1, 4
      values = 100*round + me
      call MPI_Win_post(from, 0, win)
      call MPI_Win_start(to, 0, win)
      call MPI_Put(values, 4, MPI_INTEGER, next, 0_aint, 4, MPI_INTEGER, win)
      call MPI_Win_complete(win)
      if (mod(round, 2) == 0) then
        call MPI_Win_wait(win)
      else
        done = .false.
        do while (.not. done)
          call MPI_Win_test(win, done)
        end do
      end if
      call MPI_F_sync_reg(memory)
      call check_equal(memory(4), 100*round + prev, 'what came in the exposure epoch')
    end do
    call MPI_Group_free(world)
    call MPI_Group_free(to)
    call MPI_Group_free(from)
    call MPI_Win_free(win)
  end subroutine

  subroutine memory_and_info()
    type(c_ptr) :: memory
    integer, pointer, asynchronous :: cells(:)
    type(MPI_Info) :: info, used
    type(MPI_Win) :: win
    character(MPI_MAX_INFO_VAL) :: value
    integer, asynchronous :: sent
    logical :: flag
    call MPI_Alloc_mem(64_aint, MPI_INFO_NULL, memory)
    call c_f_pointer(memory, cells, [16])
    cells = 0
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'accumulate_ordering', 'none')
    call MPI_Win_create(cells, 64_aint, 4, info, MPI_COMM_WORLD, win)
    call MPI_Win_set_info(win, info)
    call MPI_Info_free(info)
    call MPI_Win_get_info(win, used)
    call MPI_Info_get(used, 'no_locks', MPI_MAX_INFO_VAL, value, flag)
    call check(flag, 'no_locks is in the info of a window')
    if (flag) call check(value == 'false', 'no_locks is false')
    call MPI_Info_free(used)
    sent = me + 7
    call MPI_Win_fence(0, win)
    call MPI_Put(sent, 1, MPI_INTEGER, next, 15_aint, 1, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check_equal(cells(16), prev + 7, 'what arrived in memory of MPI_Alloc_mem')
    call MPI_Win_free(win)
    call MPI_Free_mem(cells)
  end subroutine

  subroutine requests()
    integer, allocatable, asynchronous :: memory(:)
    integer, asynchronous :: sent(8), got(8), fetched(8), added(8)
    type(MPI_Win) :: win
    type(MPI_Request) :: request(2)
    logical :: flag
    allocate (memory(16))
    memory = 3
    sent = me + 20
    added = 4
    call MPI_Win_create(memory, 64_aint, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_lock_all(0, win)
    call MPI_Rput(sent, 8, MPI_INTEGER, next, 0_aint, 8, MPI_INTEGER, win, request(1))
    call MPI_Raccumulate(added, 4, MPI_INTEGER, next, 8_aint, 4, MPI_INTEGER, MPI_SUM, win, request(2))
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
    call MPI_Win_flush(next, win)
    call MPI_Rget(got, 8, MPI_INTEGER, next, 0_aint, 8, MPI_INTEGER, win, request(1))
    call MPI_Wait(request(1), MPI_STATUS_IGNORE)
    call check_equal(got(8), me + 20, 'what rget fetched')
    call MPI_Rget_accumulate(added, 4, MPI_INTEGER, fetched, 4, MPI_INTEGER, next, 8_aint, 4, MPI_INTEGER, MPI_REPLACE, &
                             win, request(1))
    flag = .false.
    do while (.not. flag)
      call MPI_Test(request(1), flag, MPI_STATUS_IGNORE)
    end do
    call check_equal(fetched(4), 7, 'what rget_accumulate fetched')
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call check_equal(memory(12), 4, 'what rget_accumulate left')
    call MPI_Win_free(win)
  end subroutine

  ! Sections of arrays as buffers of the origin, beside datatypes of the target.
  subroutine sections()
    integer, parameter :: columns = 90, width = 4*columns
    integer, allocatable, asynchronous :: memory(:), sent(:, :), got(:, :)
    integer :: i, j
    type(MPI_Datatype) :: third
    type(MPI_Request) :: request(2)
    type(MPI_Win) :: win
    if (.not. MPI_SUBARRAYS_SUPPORTED) return
    allocate (memory(3*width), sent(9, 2*columns), got(9, 2*columns))
    memory = 0
    got = -1
    sent = reshape([(i, i=1, size(sent))], shape(sent)) + 10000*me
    call MPI_Type_vector(width, 1, 3, MPI_INTEGER, third)
    call MPI_Type_commit(third)
    call MPI_Win_create(memory, int(size(memory)*4, aint), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_lock_all(0, win)
    call MPI_Put(sent(2:8:2, 2::2), width, MPI_INTEGER, next, 0_aint, 1, third, win)
    call MPI_Rput(sent(8:2:-2, :columns), width, MPI_INTEGER, next, 1_aint, 1, third, win, request(1))
    call MPI_Raccumulate(sent(6:9, columns:1:-1), width, MPI_INTEGER, next, 2_aint, 1, third, MPI_SUM, win, request(2))
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
    call MPI_Win_flush(next, win)
    call MPI_Accumulate(sent(2:8:2, 2::2), width, MPI_INTEGER, next, 0_aint, 1, third, MPI_SUM, win)
    call MPI_Get(got(1:4, ::2), width, MPI_INTEGER, next, 1_aint, 1, third, win)
    call MPI_Get_accumulate(sent(1:4, ::2), width, MPI_INTEGER, got(6:9, 2::2), width, MPI_INTEGER, next, 2_aint, 1, &
                            third, MPI_REPLACE, win)
    call MPI_Win_flush(next, win)
    call MPI_Rget(got(1:4, 2::2), width, MPI_INTEGER, next, 0_aint, 1, third, win, request(1))
    call MPI_Rget_accumulate(sent(1:4, 2::2), width, MPI_INTEGER, got(6:9, ::2), width, MPI_INTEGER, next, 2_aint, 1, &
                             third, MPI_REPLACE, win, request(2))
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(all(got(5, :) == -1), 'gaps of sections stay')
    do j = 1, columns
      do i = 1, 4
        call check_equal(got(i, 2*j), 2*sent(2*i, 2*j), 'put and accumulate of a section, rget')
        call check_equal(got(i, 2*j - 1), sent(10 - 2*i, j), 'rput of a backward section, get')
        call check_equal(got(i + 5, 2*j), sent(i + 5, columns + 1 - j), 'raccumulate of backward columns, get_accumulate')
        call check_equal(got(i + 5, 2*j - 1), sent(i, 2*j - 1), 'get_accumulate of a section, rget_accumulate')
        call check_equal(memory(3*(4*(j - 1) + i)), sent(i, 2*j) + 10000*(prev - me), 'rget_accumulate of a section')
      end do
    end do
    call MPI_Type_free(third)
    call MPI_Win_free(win)
  end subroutine

  subroutine errors()
    integer, asynchronous :: memory(4), value
    type(MPI_Win) :: win
    integer :: error, class
    memory = 0
    value = 1
    call MPI_Win_create(memory, 16_aint, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Put(value, 1, MPI_INTEGER, me, 0_aint, 1, MPI_INTEGER, win, error)
    call MPI_Error_class(error, class)
    call check_equal(class, MPI_ERR_RMA_SYNC, 'class of a put outside any epoch')
    call MPI_Win_lock_all(0, win)
    call MPI_Put(value, 1, MPI_INTEGER, ranks, 0_aint, 1, MPI_INTEGER, win, error)
    call MPI_Error_class(error, class)
    call check_equal(class, MPI_ERR_RANK, 'class of a put to a rank that is not there')
    call MPI_Put(value, 1, MPI_INTEGER, MPI_PROC_NULL, 0_aint, 1, MPI_INTEGER, win, error)
    call check_equal(error, MPI_SUCCESS, 'a put to MPI_PROC_NULL')
    call MPI_Win_unlock_all(win)
    call MPI_Win_free(win)
  end subroutine

  subroutine user_attribute()
    type(MPI_Win) :: win
    integer :: keyval
    integer(aint) :: value
    logical :: flag
    character(MPI_MAX_OBJECT_NAME) :: name
    integer :: length
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, 0_aint)
    call MPI_Win_get_attr(win, keyval, value, flag)
    call check(.not. flag, 'an attribute that nobody set')
    call MPI_Win_set_attr(win, keyval, 2_aint**40 + me)
    call MPI_Win_get_attr(win, keyval, value, flag)
    call check(flag, 'an attribute that was set')
    call check_equal(value, 2_aint**40 + me, 'the value of the attribute')
    call MPI_Win_delete_attr(win, keyval)
    call MPI_Win_free_keyval(keyval)
    call MPI_Win_set_name(win, 'w')  ! the interface of Open MPI 4.1 returns one letter of any name
    call MPI_Win_get_name(win, name, length)
    call check(name(1:length) == 'w', 'the name of the window')
    call MPI_Win_free(win)
  end subroutine
end program
