! Heat in a rod, one block of points an image. Each image puts its outer points into its neighbours' ghost points, then all
! synchronise. Image 1 checks the field against the same steps on one image.
!   heat [POINTS [STEPS]]
program heat
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer :: points = 4000, steps = 200, me, images, mine, i, step, now
  integer(int64) :: begin, finish, rate
  real(real64), allocatable :: field(:, :)[:], alone(:, :), next(:)
  logical :: right

  call read_argument(1, points)
  call read_argument(2, steps)
  me = this_image()
  images = num_images()
  mine = points / images
  allocate (field(0:mine + 1, 2)[*], next(mine))
  field = 0
  if (me == 1) field(0, :) = 1  ! the hot end
  sync all
  call system_clock(begin, rate)
  now = 1
  do step = 1, steps
    if (me > 1) field(mine + 1, now)[me - 1] = field(1, now)
    if (me < images) field(0, now)[me + 1] = field(mine, now)
    sync all
    do i = 1, mine
      next(i) = 0.25_real64 * (field(i - 1, now) + 2 * field(i, now) + field(i + 1, now))
    end do
    now = 3 - now
    field(1:mine, now) = next
  end do
  sync all
  call system_clock(finish)

  if (me == 1) then
    allocate (alone(0:mine * images + 1, 2))
    alone = 0
    alone(0, :) = 1
    do step = 1, steps
      do i = 1, mine * images
        associate (from => alone(:, 2 - mod(step, 2)))
          alone(i, 1 + mod(step, 2)) = 0.25_real64 * (from(i) + 2 * from(i + 1) + from(i + 2))
        end associate
      end do
    end do
    right = .true.
    do i = 1, images
      if (any(abs(field(1:mine, now)[i] - alone((i - 1) * mine + 1:i * mine, now)) > 1e-13_real64)) right = .false.
    end do
    print '(a, f0.4, 2a)', 'heat seconds=', real(finish - begin, real64) / rate, ' verified=', trim(merge('yes', 'NO ', right))
    if (.not. right) error stop 1
  end if
  sync all

contains

  subroutine read_argument(at, number)
    integer, intent(in) :: at
    integer, intent(inout) :: number
    character(len=32) :: word
    call get_command_argument(at, word)
    if (word /= '') read (word, *) number
  end subroutine read_argument

end program heat
