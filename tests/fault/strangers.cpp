// A job that strangers look at, for strangers.py:
//
//   fault_strangers FOLDER COMMAND...   rank 0 runs COMMAND with a PHASE, and each process's number and the address of
//   its window,
//                                       as a child: before the network opens (local), while windows between nodes live
//                                       (windows), when they are gone (freed) and behind MPI_Finalize (ended).
//                                       FOLDER/drawn.RANK has the random numbers that libosc has drawn, one a line
//   fault_strangers                     a process alone makes a window, and a mistake that OSC_CHECK reports
#include <mpi.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "plain_checks.h"

namespace {

constexpr long kMark = 0x0a5c0a5c5ec2e75;  // strangers.py looks for it
constexpr int kWords = 1 << 17;

std::mutex g_mutex;
std::vector<std::uint64_t>& drawn() {
    static auto* numbers = new std::vector<std::uint64_t>;
    return *numbers;
}

int g_rank = 0;
std::vector<std::string> g_words;

// All processes wait until the command of rank 0 has ended; without MPI nothing waits.
void look(const char* phase, const void* base) {
    struct {
        long process;
        std::uint64_t address;
    } mine{::getpid(), reinterpret_cast<std::uint64_t>(base)}, all[2]{};
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    if (finalized != 0) all[0] = mine;
    if (g_rank == 0) {
        std::vector<std::string> words(g_words.begin() + 1, g_words.end());
        words.insert(words.end(), {phase, g_words[0]});
        for (const auto& one : all)
            if (one.process != 0) words.push_back(std::to_string(one.process) + ":" + std::to_string(one.address));
        std::vector<char*> arguments;
        for (std::string& word : words)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const pid_t child = ::vfork();
        if (child == 0) {
            ::execv(arguments[0], arguments.data());
            ::_exit(127);
        }
        int status = -1;
        osct::expect(::waitpid(child, &status, 0) == child && status == 0, phase);
    }
    if (finalized == 0) MPI_Barrier(MPI_COMM_WORLD);
}

int alone() {
    std::printf("AT_SECURE=%lu\n", ::getauxval(AT_SECURE));
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const long value = 1;
    osct::expect(MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win) == MPI_SUCCESS,
                 "no window");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    osct::expect(MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win) != MPI_SUCCESS, "a put behind the window's end");
    osct::expect(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win) == MPI_SUCCESS, "a put");
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    return MPI_Finalize();
}

// Gets the other process's window in one transfer, for which it needs the key.
void get_all(MPI_Win win) {
    static std::vector<long> got(kWords);
    MPI_Win_fence(0, win);
    MPI_Get(got.data(), kWords, MPI_LONG, 1 - g_rank, 0, kWords, MPI_LONG, win);
    MPI_Win_fence(0, win);
}

MPI_Win allocate(MPI_Comm comm, long*& base) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(sizeof(long) * kWords, sizeof(long), MPI_INFO_NULL, comm, static_cast<void*>(&base), &win);
    return win;
}

void job() {
    long* base = nullptr;
    MPI_Win local = allocate(MPI_COMM_SELF, base);
    look("local", base);
    MPI_Win_free(&local);
    MPI_Win allocated = allocate(MPI_COMM_WORLD, base);
    base[0] = kMark;
    std::vector<long> memory(kWords);
    MPI_Win created = MPI_WIN_NULL;
    MPI_Win_create(memory.data(), sizeof(long) * kWords, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    get_all(allocated);
    get_all(created);
    {
        const std::lock_guard lock(g_mutex);
        std::FILE* const file = std::fopen((g_words[0] + "/drawn." + std::to_string(g_rank)).c_str(), "w");
        for (const std::uint64_t number : drawn())
            if (file != nullptr) std::fprintf(file, "%016llx\n", static_cast<unsigned long long>(number));
        if (file != nullptr) std::fclose(file);
    }
    look("windows", base);
    osct::expect(base[0] == kMark, "a stranger has changed the window");
    MPI_Win_free(&created);
    MPI_Win_free(&allocated);
    for (int i = 0; i < 20; ++i) {  // more than the registrations that FAKE_FI_REGISTRATIONS allows
        MPI_Win win = allocate(MPI_COMM_WORLD, base);
        get_all(win);
        MPI_Win_free(&win);
    }
    look("freed", nullptr);
}

}  // namespace

// libosc's and its plugins' calls come here, because the loader searches the program first.
extern "C" __attribute__((visibility("default"))) ssize_t getrandom(void* buffer, std::size_t bytes, unsigned flags) {
    const long got = ::syscall(SYS_getrandom, buffer, bytes, flags);
    if (got == sizeof(std::uint64_t)) {
        std::uint64_t number = 0;
        std::memcpy(&number, buffer, sizeof number);
        const std::lock_guard lock(g_mutex);
        drawn().push_back(number);
    }
    return got;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 3) return alone();
    g_words.assign(argv + 1, argv + argc);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    job();
    MPI_Finalize();
    look("ended", nullptr);
    std::printf("strangers: rank %d: %d failures\n", g_rank, osct::g_failures);
    return osct::g_failures == 0 ? 0 : 1;
}
