// Operations on a page of a window that its owner has protected: campaign.py runs it.
//
//   fault_protected_pages PROTECTION OWNER OUTCOME [private]
//
// PROTECTION: none (no access) or read. OWNER, rank 2: it computes, or waits inside MPI. OUTCOME of an operation that
// the protection forbids: works, where the origin has a mapping of its own; range, MPI_ERR_RMA_RANGE at the call or at
// its completion, where the system refuses it; death, where a thread of the owner executes it, and the owner ends by
// SIGSEGV as it would by a store of its own. Other pages work all the time, and the page does when it is no longer
// protected.
#include <sys/mman.h>

#include <algorithm>
#include <functional>

#include "survivors.h"

namespace {

using namespace fault;

constexpr int kOwner = 2;
constexpr int kPage = 4096 / sizeof(long);
constexpr int kWords = 4 * kPage;
MPI_Aint g_page = 0;  // the first word of the protected one

MPI_Win g_win = MPI_WIN_NULL;
long* g_base = nullptr;

// The class of an operation's error, wherever it is reported.
int complete(const std::function<int()>& operation) {
    int error = timed("the lock", [] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kOwner, 0, g_win); });
    for (const std::function<int()>& call :
         {operation, std::function<int()>([] { return MPI_Win_flush(kOwner, g_win); }),
          std::function<int()>([] { return MPI_Win_unlock(kOwner, g_win); })}) {
        const int now = timed("an operation", call);
        if (error == MPI_SUCCESS) error = now;
    }
    return error;
}

struct Operation {
    const char* name;
    bool writes;
    std::function<int(MPI_Aint at, int count, long* result)> call;
};

std::vector<Operation> operations() {
    static std::vector<long> value(kPage, 5);
    static const long compare = 0;
    return {{"put", true,
             [](MPI_Aint at, int count, long*) {
                 return MPI_Put(value.data(), count, MPI_LONG, kOwner, at, count, MPI_LONG, g_win);
             }},
            {"get", false,
             [](MPI_Aint at, int count, long* result) {
                 return MPI_Get(result, count, MPI_LONG, kOwner, at, count, MPI_LONG, g_win);
             }},
            {"accumulate", true,
             [](MPI_Aint at, int count, long*) {
                 return MPI_Accumulate(value.data(), count, MPI_LONG, kOwner, at, count, MPI_LONG, MPI_SUM, g_win);
             }},
            {"fetch_and_op", true,
             [](MPI_Aint at, int, long* result) {
                 return MPI_Fetch_and_op(value.data(), result, MPI_LONG, kOwner, at, MPI_SUM, g_win);
             }},
            {"compare_and_swap", true, [](MPI_Aint at, int, long* result) {
                 return MPI_Compare_and_swap(value.data(), &compare, result, MPI_LONG, kOwner, at, g_win);
             }}};
}

// Rank 1's, while the owner computes or waits. False if the owner has died.
bool use(const std::string& protection, int wanted) {
    std::vector<long> result(kPage, -1);
    for (const Operation& one : operations()) {
        for (const int count : {1, kPage}) {
            g_scenario = one.name;
            must_work("beside the page",
                      [&] { return complete([&] { return one.call(g_page - kPage, count, result.data()); }); });
            const bool forbidden = one.writes || protection == "none";
            const int error = complete([&] { return one.call(g_page, count, result.data()); });
            check_eq(error, forbidden ? wanted : MPI_SUCCESS, "the class of an operation on the page");
            if (error == MPI_ERR_OTHER) return false;
        }
    }
    return true;
}

void use_again() {
    g_scenario = "afterwards";
    std::vector<long> result(kPage, -1);
    for (const Operation& one : operations())
        must_work(one.name, [&] { return complete([&] { return one.call(g_page, 1, result.data()); }); });
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (g_size < 3 || argc < 4) return 1;
    const std::string protection = argv[1], owner = argv[2], outcome = argv[3];
    g_scenario = argv[1];
    const MPI_Aint bytes = kWords * sizeof(long);
    if (argc > 4) {
        g_base = static_cast<long*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        MPI_Win_create(g_base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_win);
    } else {
        MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&g_base), &g_win);
    }
    MPI_Win_set_errhandler(g_win, MPI_ERRORS_RETURN);
    std::fill(g_base, g_base + kWords, 0L);
    must_work("own lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, g_win); });
    must_work("own unlock", [&] { return MPI_Win_unlock(g_rank, g_win); });
    // The window's memory begins anywhere in a page.
    const auto address = reinterpret_cast<std::uintptr_t>(g_base);
    g_page = static_cast<MPI_Aint>((address / 4096 + 2) * 4096 - address) / static_cast<MPI_Aint>(sizeof(long));
    MPI_Bcast(&g_page, 1, MPI_AINT, kOwner, MPI_COMM_WORLD);
    void* const page = g_base + g_page;
    if (g_rank == kOwner) ::mprotect(page, 4096, protection == "none" ? PROT_NONE : PROT_READ);
    MPI_Barrier(MPI_COMM_WORLD);
    // The owner may die while it still hands the others the barrier's end.
    meet_survivors("protected", false);
    for (int rank = 0; g_rank == 1 && rank < g_size; ++rank)
        await_process("protected", rank);
    if (g_rank == 1 && use(protection, outcome == "works"   ? MPI_SUCCESS
                                       : outcome == "range" ? MPI_ERR_RMA_RANGE
                                                            : MPI_ERR_OTHER)) {
        MPI_Send(nullptr, 0, MPI_BYTE, kOwner, 0, MPI_COMM_WORLD);
        MPI_Recv(nullptr, 0, MPI_BYTE, kOwner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        use_again();
        MPI_Send(nullptr, 0, MPI_BYTE, kOwner, 0, MPI_COMM_WORLD);
    }
    if (g_rank == kOwner) {
        for (const double end = now() + 1; owner == "computes" && now() < end;) {
        }
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ::mprotect(page, 4096, PROT_READ | PROT_WRITE);
        check_eq(g_base[g_page], outcome == "works" ? 25 : 0, "a word of the page");
        MPI_Send(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    leave();
}
