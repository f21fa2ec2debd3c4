// Passive-target progress: an origin finishes every kind of operation while its target computes outside MPI.
// The host alone waits for the target, so each case runs with libosc only.
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op",
             "MPI_Compare_and_swap", "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_flush", "MPI_Win_lock_all",
             "MPI_Win_unlock_all", "MPI_Win_flush_local", "MPI_Win_flush_local_all")

using osct::rank;
using osct::size;

namespace {

constexpr int kInts = 20000;

// The last rank computes until rank 0 has finished an operation on it.
template <class F>
void while_target_computes(F operation) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host needs the target inside MPI");
    const int target = size() - 1;
    for (osct::WindowKind kind : osct::kAllWindowKinds) {
        osct::Window win(kind, kInts * sizeof(int));
        osct::while_one_computes(target, [&] {
            if (rank() != 0) return;
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win.handle());
            operation(win, target);
            MPI_Win_unlock(target, win.handle());
        });
    }
}

}  // namespace

CASE(put_and_get) {
    while_target_computes([](const osct::Window& win, int target) {
        std::vector<int> out(kInts, 4), in(kInts, 0);
        MPI_Put(out.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, win.handle());
        MPI_Win_flush(target, win.handle());
        MPI_Get(in.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, win.handle());
        MPI_Win_flush(target, win.handle());
        CHECK_ALL(in.data(), in.size(), [](std::size_t) { return 4; });
    });
}

CASE(accumulates) {
    while_target_computes([](const osct::Window& win, int target) {
        std::vector<int> ones(kInts, 1), in(kInts, 0);
        int old = -1, seen = -1;
        const int zero = 0;
        MPI_Accumulate(ones.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, MPI_SUM, win.handle());
        MPI_Get_accumulate(ones.data(), kInts, MPI_INT, in.data(), kInts, MPI_INT, target, win.at(target, 0), kInts,
                           MPI_INT, MPI_SUM, win.handle());
        MPI_Fetch_and_op(&zero, &old, MPI_INT, target, win.at(target, 0), MPI_REPLACE, win.handle());
        MPI_Compare_and_swap(&zero, &zero, &seen, MPI_INT, target, win.at(target, 0), win.handle());
        MPI_Win_flush(target, win.handle());
        CHECK_ALL(in.data(), in.size(), [](std::size_t) { return 1; });
        CHECK_EQ(old, 2);
        CHECK_EQ(seen, 0);
    });
}

CASE(derived_datatypes) {
    while_target_computes([](const osct::Window& win, int target) {
        MPI_Datatype type;
        MPI_Type_vector(1000, 3, 7, MPI_INT, &type);
        MPI_Type_commit(&type);
        std::vector<int> out(kInts, 9), in(kInts, -1);
        MPI_Put(out.data(), 1, type, target, win.at(target, 0), 1, type, win.handle());
        MPI_Win_flush(target, win.handle());
        MPI_Type_free(&type);
        MPI_Get(in.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, win.handle());
        MPI_Win_flush(target, win.handle());
        CHECK_ALL(in.data(), in.size(), [](std::size_t i) { return i < 7000 && i % 7 < 3 ? 9 : 0; });
    });
}

// An operation is enabled with the synchronisation call that follows it, at the latest, and then completes without
// further RMA calls of its origin (12.7.3). MPI_Win_flush_local is such a call: rank 0 makes no other until the data
// has arrived.
CASE(flush_local_sends) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host may keep the operation until MPI_Win_unlock_all");
    const int target = size() - 1;
    for (osct::WindowKind kind : osct::kAllWindowKinds) {
        if (kind == osct::WindowKind::Shared && !osct::shares_memory(MPI_COMM_WORLD)) continue;
        osct::Window win(kind, sizeof(int));
        MPI_Win_lock_all(0, win.handle());
        for (int value = 1; value <= 4; ++value) {
            int came = 0;
            if (rank() == 0) {
                if (value % 2 == 0)
                    MPI_Put(&value, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win.handle());
                else
                    MPI_Accumulate(&value, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, MPI_REPLACE,
                                   win.handle());
                if (value <= 2)
                    MPI_Win_flush_local(target, win.handle());
                else
                    MPI_Win_flush_local_all(win.handle());
            }
            if (rank() == target)
                for (const double begin = osct::now(); came != value && osct::now() - begin < 5;) {
                    MPI_Fetch_and_op(&value, &came, MPI_INT, target, win.at(target, 0), MPI_NO_OP, win.handle());
                    MPI_Win_flush(target, win.handle());
                }
            MPI_Bcast(&came, 1, MPI_INT, target, MPI_COMM_WORLD);
            CHECK_EQ(came, value);
        }
        MPI_Win_unlock_all(win.handle());
    }
}
