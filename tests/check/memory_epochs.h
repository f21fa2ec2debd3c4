// The epochs around an operation of rank 0 and the loads and stores of its target, rank 1, which come later.
#pragma once

#include "cases.h"

namespace corpus {

inline constexpr int kOrigin = 0;
inline constexpr int kTarget = 1;

template <class Operate, class Access>
void fence_epoch(MPI_Win window, Operate&& operate, Access&& access) {
    MPI_Win_fence(0, window);
    only(kOrigin, operate);
    MPI_Barrier(MPI_COMM_WORLD);
    only(kTarget, access);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

template <class Operate, class Access>
void post_epoch(MPI_Win window, Operate&& operate, Access&& access) {
    const GroupOf peer(1 - rank());
    only(kTarget, [&] { MPI_Win_post(peer, 0, window); });
    only(kOrigin, [&] { MPI_Win_start(peer, 0, window); });
    only(kOrigin, operate);
    MPI_Barrier(MPI_COMM_WORLD);
    only(kTarget, access);
    only(kOrigin, [&] { MPI_Win_complete(window); });
    only(kTarget, [&] { MPI_Win_wait(window); });
}

}  // namespace corpus
