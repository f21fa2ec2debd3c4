// A program that counts its own calls. A PMPI tool before or after libosc, also with libosc switched off or linked
// instead of preloaded, must see exactly these calls, and the program's results must be right.
#include <dlfcn.h>
#include <mpi.h>
#include <osc/osc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

std::map<std::string, unsigned long> made;
int failures = 0;

#define CALL(name, ...)          \
    do {                         \
        ++made["MPI_" #name];    \
        MPI_##name(__VA_ARGS__); \
    } while (false)

void expect(bool fine, const std::string& what) {
    if (fine) return;
    ++failures;
    std::printf("not true: %s\n", what.c_str());
}

template <class Function>
Function find(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// Puts to the next rank with every method of synchronisation; the values show which step failed.
void run(int rank, int size) {
    const int next = (rank + 1) % size;
    const int prev = (rank + size - 1) % size;
    long* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CALL(Win_allocate, 8 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    std::memset(memory, 0, 8 * sizeof(long));
    CALL(Win_fence, 0, win);
    const long value = 100 + rank;
    CALL(Put, &value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
    CALL(Win_fence, 0, win);
    expect(memory[0] == 100 + prev, "a put under fence arrives");

    const long one = 1;
    for (int i = 0; i < 5; ++i) {
        long before = -1;
        CALL(Win_lock, MPI_LOCK_EXCLUSIVE, next, 0, win);
        CALL(Accumulate, &one, 1, MPI_LONG, next, 1, 1, MPI_LONG, MPI_SUM, win);
        CALL(Fetch_and_op, &one, &before, MPI_LONG, next, 2, MPI_SUM, win);
        CALL(Win_unlock, next, win);
        expect(before == i, "fetch_and_op under a lock");
    }
    CALL(Win_lock_all, 0, win);
    long got = -1;
    CALL(Get, &got, 1, MPI_LONG, next, 1, 1, MPI_LONG, win);
    CALL(Win_flush, next, win);
    expect(got == 5, "a get after five accumulates");
    MPI_Request request = MPI_REQUEST_NULL;
    CALL(Rput, &value, 1, MPI_LONG, next, 3, 1, MPI_LONG, win, &request);
    CALL(Wait, &request, MPI_STATUS_IGNORE);
    CALL(Win_unlock_all, win);
    CALL(Barrier, MPI_COMM_WORLD);

    MPI_Group world = MPI_GROUP_NULL, to = MPI_GROUP_NULL, from = MPI_GROUP_NULL;
    CALL(Comm_group, MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &next, &to);
    MPI_Group_incl(world, 1, &prev, &from);
    CALL(Win_post, from, 0, win);
    CALL(Win_start, to, 0, win);
    CALL(Put, &value, 1, MPI_LONG, next, 4, 1, MPI_LONG, win);
    CALL(Win_complete, win);
    CALL(Win_wait, win);
    expect(memory[3] == 100 + prev && memory[4] == 100 + prev, "rput and a put under post and start arrive");
    MPI_Group_free(&world);
    MPI_Group_free(&to);
    MPI_Group_free(&from);

    void* base = nullptr;
    int flag = 0;
    CALL(Win_get_attr, win, MPI_WIN_BASE, &base, &flag);
    expect(flag != 0 && base == memory, "MPI_WIN_BASE");
    CALL(Win_free, &win);

    void* mine = nullptr;
    CALL(Alloc_mem, 64, MPI_INFO_NULL, &mine);
    std::memset(mine, 0, 64);
    CALL(Win_create, mine, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    CALL(Win_fence, 0, win);
    CALL(Put, &value, 1, MPI_LONG, next, 16, 1, MPI_LONG, win);
    CALL(Win_fence, 0, win);
    expect(static_cast<long*>(mine)[2] == 100 + prev, "a put to memory of MPI_Alloc_mem arrives");
    CALL(Win_free, &win);
    CALL(Free_mem, mine);
}

// A loaded tool sees exactly the program's calls.
void check_tool() {
    const auto knows = find<int (*)(int, const char**)>("tool_knows");
    const auto count = find<unsigned long (*)(const char*)>("tool_count");
    const bool wanted = std::getenv("TEST_TOOL") != nullptr;
    expect(wanted == (knows != nullptr && count != nullptr), "the tool is loaded as the test wants it");
    if (knows == nullptr || count == nullptr) return;
    const char* name = nullptr;
    for (int i = 0; knows(i, &name) != 0; ++i)
        expect(count(name) == made[name], std::string("the tool saw ") + std::to_string(count(name)) + " calls of " +
                                              name + ", not " + std::to_string(made[name]));
}

// libosc served every one-sided call, or none when it is switched off.
void ask_library() {
    const auto served = find<unsigned long long (*)(const char*)>("osc_served");
    const auto reached_host = find<unsigned long long (*)(const char*)>("spy_count");
    const bool wanted = std::getenv("TEST_OSC") != nullptr;
    expect(wanted == (served != nullptr), "libosc is loaded as the test wants it");
    if (served == nullptr) return;
    const bool off = std::getenv("OSC_DISABLE") != nullptr;
    const std::vector<std::string> elsewhere = {"MPI_Barrier", "MPI_Comm_group", "MPI_Wait"};
    for (const auto& [name, calls] : made) {
        bool ours = true;
        for (const std::string& other : elsewhere)
            ours = ours && name != other;
        if (!ours) continue;
        const unsigned long long count = served(name.c_str());
        expect(count == (off ? 0 : calls),
               name + ": libosc counts " + std::to_string(count) + " of " + std::to_string(calls) + " calls");
    }
    if (reached_host == nullptr) return;
    for (const char* name : {"MPI_Put", "MPI_Win_fence", "MPI_Win_lock", "MPI_Win_flush", "MPI_Win_post"})
        expect((reached_host(name) != 0) == off, std::string(name) + " reaches the host only when libosc is off");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    run(rank, size);
    check_tool();
    ask_library();
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) std::printf(all == 0 ? "all right\n" : "%d failures\n", all);
    return all == 0 ? 0 : 1;
}
