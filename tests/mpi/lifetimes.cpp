// The order in which communicators, groups, windows and their memory go: parents first, windows in any order, and
// windows of every flavour that are still there when MPI_Finalize comes.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_free", "MPI_Win_fence", "MPI_Put", "MPI_Win_get_group")

namespace {

void ring(MPI_Win win, long* base, int me, int members, long value) {
    const long out = value * 100 + me;
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_LONG, (me + 1) % members, 0, 1, MPI_LONG, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(base[0], value * 100 + (me + members - 1) % members);
}

struct Made {
    MPI_Win win;
    long* base;
};

Made make(int flavor, MPI_Comm comm, long* own) {
    Made made{MPI_WIN_NULL, own};
    // Between hosts there is no window of shared memory.
    if (flavor == MPI_WIN_FLAVOR_SHARED && !osct::shares_memory(comm)) flavor = MPI_WIN_FLAVOR_ALLOCATE;
    if (flavor == MPI_WIN_FLAVOR_ALLOCATE)
        CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &made.base, &made.win));
    else if (flavor == MPI_WIN_FLAVOR_SHARED)
        CHECK_OK(MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, comm, &made.base, &made.win));
    else
        CHECK_OK(MPI_Win_create(own, 64, 8, MPI_INFO_NULL, comm, &made.win));
    return made;
}

constexpr int kFlavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED};

}  // namespace

// Communicators come, get windows of three flavours and go; the windows follow in an order of their own.
CASE(parents_first) {
    std::vector<long> own(8 * 64);
    std::vector<Made> made;
    int me = 0, members = 0;
    for (std::size_t i = 0; i < 30; ++i) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? rank() : -rank(), &comm);
        made.push_back(make(kFlavors[i % 3], comm, &own[8 * i]));
        MPI_Comm_free(&comm);
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
        MPI_Group group;
        MPI_Win_get_group(made[i].win, &group);
        MPI_Group_rank(group, &me);
        MPI_Group_size(group, &members);
        MPI_Group_free(&group);
        CHECK_EQ(me, i % 2 == 0 ? rank() : size() - 1 - rank());
        ring(made[i].win, made[i].base, me, members, static_cast<long>(i));
    }
    for (std::size_t i = 0; i < made.size(); ++i)
        CHECK_OK(MPI_Win_free(&made[i * 7 % made.size()].win));
}

// Windows of communicators that overlap, freed by each process in the order that suits all of them.
CASE(overlapping_communicators) {
    SKIP_IF(size() < 3);
    long own[2][8];
    MPI_Comm low, high;
    MPI_Comm_split(MPI_COMM_WORLD, rank() < 2 ? 0 : MPI_UNDEFINED, 0, &low);
    MPI_Comm_split(MPI_COMM_WORLD, rank() >= 1 ? 0 : MPI_UNDEFINED, 0, &high);
    Made first{MPI_WIN_NULL, nullptr}, second{MPI_WIN_NULL, nullptr};
    if (low != MPI_COMM_NULL) first = make(MPI_WIN_FLAVOR_CREATE, low, own[0]);
    if (high != MPI_COMM_NULL) second = make(MPI_WIN_FLAVOR_ALLOCATE, high, own[1]);
    if (low != MPI_COMM_NULL) {
        ring(first.win, first.base, rank(), 2, 1);
        MPI_Comm_free(&low);
    }
    if (high != MPI_COMM_NULL) {
        ring(second.win, second.base, rank() - 1, size() - 1, 2);
        MPI_Comm_free(&high);
    }
    if (second.win != MPI_WIN_NULL) CHECK_OK(MPI_Win_free(&second.win));
    if (first.win != MPI_WIN_NULL) CHECK_OK(MPI_Win_free(&first.win));
}

// This must be the last case: it never frees its windows, and MPI_Finalize must still return, with attributes on the
// windows, attached regions, allocated memory and a communicator.
CASE(left_for_finalize) {
    static std::vector<long> own(64);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, nullptr);
    for (const int flavor : kFlavors) {
        for (const bool parent_stays : {true, false}) {
            MPI_Comm parent = MPI_COMM_WORLD;
            if (!parent_stays) MPI_Comm_dup(comm, &parent);
            const Made made = make(flavor, parent, own.data());
            if (!parent_stays) MPI_Comm_free(&parent);
            MPI_Win_set_attr(made.win, keyval, own.data());
            ring(made.win, made.base, rank(), size(), 3);
        }
    }
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    MPI_Win_attach(win, own.data(), 64);
    void* block = nullptr;
    MPI_Alloc_mem(4096, MPI_INFO_NULL, &block);
    static_cast<char*>(block)[0] = 1;
}
