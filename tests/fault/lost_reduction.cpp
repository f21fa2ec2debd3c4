// Rank 1 dies when it has contributed to the last reduction of a creation, which ends for ranks 0 and 3: they have
// their window, and compute. Rank 2 still waits. Of the two processes of its node the other one looks after rank 1 in a
// collective wait, and is in none. Rank 2 must report the death. Needs 4 ranks on 2 nodes.
#include "lost_reduction.h"

#include <dlfcn.h>

#include "survivors.h"

namespace {

using namespace fault;

constexpr int kWaits = 2;
constexpr int kLast = 2;           // the creation's reductions
constexpr double kLongest = 20.0;  // seconds

int create(MPI_Win& win) {
    long* base = nullptr;
    return MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    MPI_Win first = MPI_WIN_NULL;
    must_work("the first creation", [&] { return create(first); });
    must_work("fence", [&] { return MPI_Win_fence(0, first); });
    const auto lose = reinterpret_cast<decltype(&fault_lose_reduction)>(::dlsym(RTLD_DEFAULT, "fault_lose_reduction"));
    check(lose != nullptr, "the library that loses a reduction", lose != nullptr, 1);
    if (lose == nullptr) ::_exit(1);
    lose(g_rank == kVictim ? Part::Dies : g_rank == kWaits ? Part::Waits : Part::None, kLast);
    g_scenario = "creation";
    MPI_Win win = MPI_WIN_NULL;
    const double before = now();
    const int error = create(win);
    const double took = now() - before;
    int value = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &value);
    check_eq(value, g_rank == kWaits ? MPI_ERR_OTHER : MPI_SUCCESS, "its error class");
    check(took < kLongest, "its seconds", std::lround(took), std::lround(kLongest));
    meet_survivors("created");
    leave();
}
