// MPI_Win_create over a program's own memory, adopted (OSC_ADOPT) and not, and the same memory attached to a dynamic
// window, beside MPI_Win_allocate: single operations, the creation itself, and the owner's loads and stores before and
// after. One line for each figure.
//
//   mpiexec -n 2 -genv LD_PRELOAD libosc.so -genv OSC_ADOPT auto adopt_bench [--brief]
#include <mpi.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "timing.h"

namespace {

using bench::now_ns;

constexpr std::size_t kBytes = std::size_t{1} << 20;
int g_rank = 0;
int g_rounds = 9;
long g_operations = 20'000;

enum class Kind { Allocate, Adopted, Edges, Private, Attached, AttachedPrivate };
constexpr const char* kNames[] = {"allocate", "adopted", "edges", "private", "attached", "attached private"};

// A window of kBytes on each rank. Edges: its first byte lies within a page that has other data too. Attached: a
// dynamic window to which that memory is attached.
class Window {
  public:
    explicit Window(Kind kind) {
        if (kind == Kind::Allocate) {
            MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base_), &win_);
        } else {
            memory_ = std::aligned_alloc(4096, kBytes + 8192);
            std::memset(memory_, 0, kBytes + 8192);
            base_ = static_cast<char*>(memory_) + (kind == Kind::Edges ? 1000 : 0);
            MPI_Info info = MPI_INFO_NULL;
            MPI_Info_create(&info);
            const bool off = kind == Kind::Private || kind == Kind::AttachedPrivate;
            MPI_Info_set(info, "osc_adopt", off ? "off" : "always");
            is_dynamic_ = kind == Kind::Attached || kind == Kind::AttachedPrivate;
            if (is_dynamic_)
                attach(info);
            else
                MPI_Win_create(base_, kBytes, 1, info, MPI_COMM_WORLD, &win_);
            MPI_Info_free(&info);
        }
    }
    ~Window() {
        if (is_dynamic_) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_detach(win_, base_);
        }
        MPI_Win_free(&win_);
        std::free(memory_);
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    MPI_Win win() const { return win_; }
    /// The displacement of the first byte at rank 1.
    MPI_Aint zero() const { return zero_; }

  private:
    void attach(MPI_Info info) {
        MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win_);
        MPI_Win_attach(win_, base_, kBytes);
        MPI_Get_address(base_, &zero_);
        MPI_Bcast(&zero_, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    }
    bool is_dynamic_ = false;
    MPI_Aint zero_ = 0;
    MPI_Win win_ = MPI_WIN_NULL;
    void* memory_ = nullptr;
    char* base_ = nullptr;
};

struct Operation {
    const char* name;
    bool locks_itself;
    std::function<void(MPI_Win, MPI_Aint)> call;
    long parts = 1;  // operations of a call
};

// As many operations as a program that walks a graph or a sparse matrix has between two flushes.
constexpr long kRun = 256;
constexpr MPI_Aint kApart = 616;  // bytes from one to the next
template <class One>
Operation run_of(const char* name, One&& one, MPI_Aint apart = kApart) {
    const auto call = [one, apart](MPI_Win win, MPI_Aint at) {
        for (MPI_Aint i = 0; i < kRun; ++i)
            one(win, at + i * apart % 65536);
        MPI_Win_flush(1, win);
    };
    return {name, false, call, kRun};
}

std::vector<Operation> operations() {
    static long value = 1, result = 0;
    const auto put = [](MPI_Win win, MPI_Aint at) { MPI_Put(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, win); };
    return {{"put+flush", false,
             [](MPI_Win win, MPI_Aint at) {
                 MPI_Put(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, win);
                 MPI_Win_flush(1, win);
             }},
            {"get+flush", false,
             [](MPI_Win win, MPI_Aint at) {
                 MPI_Get(&result, 1, MPI_LONG, 1, at, 1, MPI_LONG, win);
                 MPI_Win_flush(1, win);
             }},
            {"fetch_and_op+flush", false,
             [](MPI_Win win, MPI_Aint at) {
                 MPI_Fetch_and_op(&value, &result, MPI_LONG, 1, at, MPI_SUM, win);
                 MPI_Win_flush(1, win);
             }},
            {"accumulate+flush", false,
             [](MPI_Win win, MPI_Aint at) {
                 MPI_Accumulate(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, MPI_SUM, win);
                 MPI_Win_flush(1, win);
             }},
            {"lock+put+unlock", true,
             [](MPI_Win win, MPI_Aint at) {
                 MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
                 MPI_Put(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, win);
                 MPI_Win_unlock(1, win);
             }},
            run_of("256 puts, each", put),
            run_of("256 adjacent puts, each", put, sizeof value),
            run_of("256 gets, each",
                   [](MPI_Win win, MPI_Aint at) { MPI_Get(&result, 1, MPI_LONG, 1, at, 1, MPI_LONG, win); }),
            run_of("256 accumulates, each", [](MPI_Win win, MPI_Aint at) {
                MPI_Accumulate(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, MPI_SUM, win);
            })};
}

// Nanoseconds for one operation of rank 0 on rank 1, inside whole pages of its window.
double time_operations(const Operation& operation, const Window& window) {
    MPI_Win win = window.win();
    const MPI_Aint first = window.zero() + 8192;
    if (!operation.locks_itself) MPI_Win_lock_all(0, win);
    double took = 0;
    if (g_rank == 0) {
        const long calls = g_operations / operation.parts;
        for (int i = 0; i < 100; ++i)
            operation.call(win, first);
        const double begin = now_ns();
        for (long i = 0; i < calls; ++i)
            operation.call(win, first + i % 64 * 8);
        took = (now_ns() - begin) / static_cast<double>(calls * operation.parts);
    }
    if (!operation.locks_itself) MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    return took;
}

void compare_operations() {
    for (const Operation& operation : operations()) {
        std::vector<double> times[std::size(kNames)];
        for (int round = 0; round < g_rounds; ++round)
            for (std::size_t kind = 0; kind < std::size(kNames); ++kind) {
                const Window window(static_cast<Kind>(kind));
                times[kind].push_back(time_operations(operation, window));
            }
        if (g_rank != 0) continue;
        const double least = bench::summarise(times[0], 1).median;
        std::printf("%-20s", operation.name);
        for (std::size_t kind = 0; kind < std::size(kNames); ++kind) {
            const double median = bench::summarise(times[kind], 1).median;
            std::printf("  %s %.1f ns (%.2fx)", kNames[kind], median, median / least);
        }
        std::printf("\n");
    }
}

double time_creation(void* memory, std::size_t bytes, const char* how) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "osc_adopt", how);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_ns();
    MPI_Win_create(memory, static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &win);
    const double took = now_ns() - begin;
    MPI_Win_free(&win);
    MPI_Info_free(&info);
    return took;
}

// Memory whose addresses no later call returns, so that auto, which remembers them, finds each one new.
class FreshMemory {
  public:
    explicit FreshMemory(std::size_t bytes) : bytes_(bytes), memory_(std::malloc(bytes)) {
        const std::uintptr_t lead = reinterpret_cast<std::uintptr_t>(memory_) % kPage;
        pages_ = static_cast<char*>(memory_) - lead;
    }
    ~FreshMemory() {
        std::free(memory_);
        if (bytes_ < kBytes) return;  // too small for a mapping of its own
        ::mmap(pages_, bytes_ + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    FreshMemory(const FreshMemory&) = delete;
    FreshMemory& operator=(const FreshMemory&) = delete;
    void* get() const { return memory_; }

  private:
    static constexpr std::uintptr_t kPage = 4096;
    std::size_t bytes_;
    void* memory_;
    void* pages_;
};

// Both ranks create at once; the copy that it is compared with runs on both at once too. With auto the first window is
// refused: small memory is too small, large memory has had no window before.
void compare_creation(std::size_t bytes) {
    std::vector<double> off, refused, first, second, copy;
    for (int round = 0; round < g_rounds; ++round) {
        const FreshMemory memory(bytes);
        std::memset(memory.get(), round + 1, bytes);
        off.push_back(time_creation(memory.get(), bytes, "off"));
        refused.push_back(time_creation(memory.get(), bytes, "auto"));
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now_ns();
        void* const fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memcpy(fresh, memory.get(), bytes);
        copy.push_back(now_ns() - begin);
        ::munmap(fresh, bytes);
        first.push_back(time_creation(memory.get(), bytes, "always"));
        second.push_back(time_creation(memory.get(), bytes, "auto"));
    }
    if (g_rank != 0) return;
    const auto us = [](const std::vector<double>& times) { return bench::summarise(times, 1).median / 1000; };
    std::printf(
        "creation over %zu KiB: private %.0f us, refused %.0f us, first %.0f us, second %.0f us; memcpy into fresh "
        "memory %.0f us (first without private: %.2fx)\n",
        bytes >> 10, us(off), us(refused), us(first), us(second), us(copy), (us(first) - us(off)) / us(copy));
}

double triad(double* a, const double* b, const double* c, std::size_t words) {
    const double begin = now_ns();
    for (std::size_t i = 0; i < words; ++i)
        a[i] = b[i] + 3.0 * c[i];
    return (now_ns() - begin) / static_cast<double>(words);
}

void compare_triad() {
    constexpr std::size_t kWords = std::size_t{4} << 20;
    constexpr std::size_t kAll = 3 * kWords * sizeof(double);
    auto* const plain = static_cast<double*>(std::malloc(kAll));
    auto* const adopted = static_cast<double*>(std::malloc(kAll));
    for (std::size_t i = 0; i < 3 * kWords; ++i)
        plain[i] = adopted[i] = static_cast<double>(i % 1000);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(adopted, kAll, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    std::vector<double> before, after;
    for (int round = 0; round < g_rounds; ++round) {
        before.push_back(triad(plain, plain + kWords, plain + 2 * kWords, kWords));
        after.push_back(triad(adopted, adopted + kWords, adopted + 2 * kWords, kWords));
    }
    MPI_Win_free(&win);
    const double private_ns = bench::summarise(before, 1).median;
    const double adopted_ns = bench::summarise(after, 1).median;
    if (g_rank == 0)
        std::printf("triad of 96 MiB: private %.3f ns a word, adopted %.3f (%.2fx)\n", private_ns, adopted_ns,
                    adopted_ns / private_ns);
    std::free(plain);
    std::free(adopted);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const bool brief = argc == 2 && std::strcmp(argv[1], "--brief") == 0;
    if (ranks != 2 || (argc > 1 && !brief)) {
        if (g_rank == 0) std::fprintf(stderr, "usage: mpiexec -n 2 adopt_bench [--brief]\n");
        MPI_Finalize();
        return 2;
    }
    if (brief) {
        g_rounds = 3;
        g_operations = 500;
    }
    compare_operations();
    compare_creation(4096);
    compare_creation(std::size_t{64} << 20);
    compare_triad();
    MPI_Finalize();
    return 0;
}
