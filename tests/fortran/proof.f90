! Checks for the Fortran programs, without any MPI interface, so that programs of all three share them.
module proof
  use iso_c_binding
  implicit none
  private
  public :: check, check_equal, served, failed, conclude

  integer :: failures = 0

  interface check_equal
    module procedure equal_integers, equal_addresses, equal_reals
  end interface

  interface
    integer(c_int) function proof_of(name) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*)
    end function
  end interface

contains

  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what
    if (fine) return
    failures = failures + 1
    if (failures <= 20) print '(2a)', 'not true: ', what
  end subroutine

  subroutine equal_integers(got, wanted, what)
    integer, intent(in) :: got, wanted
    character(*), intent(in) :: what
    if (got /= wanted .and. failures < 20) print '(2a,i0,a,i0)', what, ' is ', got, ', not ', wanted
    call check(got == wanted, what)
  end subroutine

  subroutine equal_addresses(got, wanted, what)
    integer(c_intptr_t), intent(in) :: got, wanted
    character(*), intent(in) :: what
    if (got /= wanted .and. failures < 20) print '(2a,i0,a,i0)', what, ' is ', got, ', not ', wanted
    call check(got == wanted, what)
  end subroutine

  subroutine equal_reals(got, wanted, what)
    real(c_double), intent(in) :: got, wanted
    character(*), intent(in) :: what
    ! The tests only use values that a double holds exactly.
    logical :: same
    same = .not. (got < wanted .or. got > wanted)
    if (.not. same .and. failures < 20) print '(2a,g0,a,g0)', what, ' is ', got, ', not ', wanted
    call check(same, what)
  end subroutine

  ! libosc, if it is there, served all calls of these functions: names separated by blanks, without MPI_.
  subroutine served(names)
    character(*), intent(in) :: names
    integer :: first, length
    first = 1
    do while (first <= len(names))
      length = index(names(first:)//' ', ' ') - 1
      if (length > 0) then
        call check(proof_of('MPI_'//names(first:first + length - 1)//c_null_char) == 0, names(first:first + length - 1))
      end if
      first = first + length + 1
    end do
  end subroutine

  integer function failed()
    failed = failures
  end function

  ! The end of a program: failures of all ranks together, told by one.
  subroutine conclude(rank, all_failures)
    integer, intent(in) :: rank, all_failures
    if (all_failures > 0) stop 1
    if (rank == 0) print '(a)', 'all right'
  end subroutine
end module
