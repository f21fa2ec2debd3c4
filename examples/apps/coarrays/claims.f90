! All images claim all places of all images, each in its own order, by atomic_cas, and count their claims by atomic_add on
! image 1 and on themselves. Every place must have been claimed once, and both counts must agree.
!   claims [PLACES_OF_AN_IMAGE]
program claims
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, int64, real64
  implicit none
  integer :: places = 1000, me, images, i, image, at
  integer(int64) :: begin, finish, rate
  integer(atomic_int_kind) :: seen, all_claims
  integer(atomic_int_kind), allocatable :: owners(:)[:], claimed(:)[:]
  integer :: wrong[*], made[*]
  character(len=32) :: word

  call get_command_argument(1, word)
  if (word /= '') read (word, *) places
  me = this_image()
  images = num_images()
  allocate (owners(places)[*], claimed(images)[*])
  owners = 0
  claimed = 0
  made = 0
  sync all
  call system_clock(begin, rate)
  do i = 0, places * images - 1
    image = mod(i + me, images) + 1
    at = mod(i / images + me * 7, places) + 1
    call atomic_cas(owners(at)[image], seen, 0_atomic_int_kind, int(me, atomic_int_kind))
    if (seen /= 0) cycle
    made = made + 1
    call atomic_add(claimed(me)[1], 1_atomic_int_kind)
  end do
  sync all
  call system_clock(finish)

  wrong = count(owners < 1 .or. owners > images)
  call atomic_ref(all_claims, claimed(me)[1])
  if (all_claims /= made) wrong = wrong + 1
  call co_sum(made)
  if (made /= places * images) wrong = wrong + 1
  call co_sum(wrong)
  if (me == 1) then
    print '(a, f0.4, 2a)', 'claims seconds=', real(finish - begin, real64) / rate, ' verified=', &
      trim(merge('yes', 'NO ', wrong == 0))
    if (wrong /= 0) error stop 1
  end if
  sync all
end program claims
