! Each image reads single words and short runs from random places of random images, whose values follow from their place.
!   gets [GETS]
program gets
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: words = 10007, run = 16
  integer :: number = 5000, me, images, i, j, image, at
  integer(int64) :: begin, finish, rate, state
  integer(int64), allocatable :: table(:)[:]
  integer(int64) :: several(run)
  integer :: wrong[*]
  character(len=32) :: word

  call get_command_argument(1, word)
  if (word /= '') read (word, *) number
  me = this_image()
  images = num_images()
  allocate (table(words)[*])
  do at = 1, words
    table(at) = value_of(me, at)
  end do
  wrong = 0
  state = me
  sync all
  call system_clock(begin, rate)
  do i = 1, number
    image = random(images)
    at = random(words - run)
    if (mod(i, 4) == 0) then
      several = table(at:at + run - 1)[image]
      if (any(several /= [(value_of(image, at + j), j=0, run - 1)])) wrong = wrong + 1
    else
      if (table(at)[image] /= value_of(image, at)) wrong = wrong + 1
    end if
  end do
  sync all
  call system_clock(finish)
  call co_sum(wrong)
  if (me == 1) then
    print '(a, f0.4, 2a)', 'gets seconds=', real(finish - begin, real64) / rate, ' verified=', &
      trim(merge('yes', 'NO ', wrong == 0))
    if (wrong /= 0) error stop 1
  end if
  sync all

contains

  pure integer(int64) function value_of(image, at)
    integer, intent(in) :: image, at
    value_of = image * 1000000_int64 + at
  end function value_of

  ! From 1 to limit, by a linear congruential generator.
  integer function random(limit)
    integer, intent(in) :: limit
    state = mod(state * 48271_int64, 2147483647_int64)
    random = int(mod(state, int(limit, int64))) + 1
  end function random

end program gets
