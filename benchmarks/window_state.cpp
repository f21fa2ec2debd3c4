// What libosc keeps for a window of processes on several nodes: before it is used, after each rank has updated the word
// of the rank STEP (1) further, after each has updated the words of all ranks, after 20,000 puts and as many
// accumulates of each to the rank STEP further, and with a second window:
//   window_state [STEP]
// Rank 0 prints a line of JSON for each state: the average and the largest value over all ranks of the processes of
// other nodes that a rank is connected to, the messages that it has sent, libosc's own bytes for its windows, and the
// growth since before the window of its private memory and of its resident memory (RssAnon, and RssAnon with RssFile,
// of /proc/self/status). Exit status 1: a rank found wrong data.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Of libosc, if that is there.
extern "C" __attribute__((weak)) int osc_counter(const char* name, unsigned long long* value);

namespace {

constexpr int kValues = 5;
constexpr int kMany = 20000;

double counter(const char* name) {
    unsigned long long value = 0;
    if (osc_counter != nullptr) osc_counter(name, &value);
    return static_cast<double>(value);
}

struct Resident {
    double anonymous = 0;
    double file = 0;
};

Resident resident_kib() {
    std::FILE* const status = std::fopen("/proc/self/status", "r");
    char line[256];
    Resident found;
    while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
        if (std::strncmp(line, "RssAnon:", 8) == 0) found.anonymous = std::atof(line + 8);
        if (std::strncmp(line, "RssFile:", 8) == 0) found.file = std::atof(line + 8);
    }
    if (status != nullptr) std::fclose(status);
    return found;
}

void report(const char* state, Resident before) {
    const Resident now = resident_kib();
    const double anonymous = now.anonymous - before.anonymous;
    const double mine[kValues] = {counter("network.connections"), counter("network.messages"),
                                  counter("bytes.window_metadata"), anonymous, anonymous + now.file - before.file};
    double sum[kValues];
    double most[kValues];
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(mine, sum, kValues, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine, most, kValues, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    constexpr const char* kNames[kValues] = {"connections", "messages", "window_bytes", "private_kib", "resident_kib"};
    std::printf("{\"state\": \"%s\", \"ranks\": %d", state, ranks);
    for (int i = 0; i < kValues; ++i)
        std::printf(", \"%s\": %.1f, \"%s_most\": %.0f", kNames[i], sum[i] / ranks, kNames[i], most[i]);
    std::printf("}\n");
    std::fflush(stdout);
}

// Adds one to the words of `targets` ranks, from the one that is `step` further than this one.
void add(MPI_Win win, int step, int targets) {
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const long one = 1;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < targets; ++i)
        MPI_Accumulate(&one, 1, MPI_LONG, (rank + step + i) % ranks, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Puts and accumulates of one word, each kind with one flush.
void stream(MPI_Win win, int target) {
    const long value = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    for (int i = 0; i < kMany; ++i)
        MPI_Put(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, win);
    MPI_Win_flush(target, win);
    for (int i = 0; i < kMany; ++i)
        MPI_Accumulate(&value, 1, MPI_LONG, target, 2, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_unlock(target, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int step = argc > 1 ? std::atoi(argv[1]) : 1;
    int rank = 0;
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    const Resident before = resident_kib();
    long* word = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(3 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &word, &win);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    word[0] = word[2] = 0;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    report("created", before);
    add(win, step, 1);
    report("one target each", before);
    add(win, 0, ranks);
    report("all targets", before);
    stream(win, (rank + step) % ranks);
    report("20,000 puts and 20,000 accumulates", before);
    long* other_word = nullptr;
    MPI_Win other = MPI_WIN_NULL;
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &other_word, &other);
    report("a second window", before);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    int right = word[0] == 1 + ranks && word[2] == kMany ? 1 : 0;
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&other);
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Win_free(&win);
    if (right == 0 && rank == 0) std::fprintf(stderr, "window_state: wrong data\n");
    MPI_Finalize();
    return right != 0 ? 0 : 1;
}
