// The four hand-written programs of seed 000's Table 1: lock, put of n longs and unlock on another process's memory
// without any MPI, each a step closer to what an MPI library has to do. The seed's were OpenMP programs; these are two
// processes and a shared mapping.
//   seed_000_shared [--short] [MEASURE...]      a measure is openmp1 to openmp4, a dot and n
// 1: all in one routine; 2: a routine each; 3: the addresses come from a window structure; 4: the arguments and
// look-ups of the MPI functions. A lock is a flag that is set by an exchange: a plain store would not exclude.
#include <cstring>

#include "reference.h"
#include "seed_000.h"

namespace bench {
namespace {

#define ROUTINE __attribute__((noinline, noclone)) void

constexpr int kTarget = 1;

using Flag = std::atomic<std::uint32_t>;

inline void set(Flag& flag) {
    while (flag.exchange(1, std::memory_order_acquire) != 0)
        sched_yield();
}

inline void clear(Flag& flag) {
    flag.store(0, std::memory_order_release);
}

ROUTINE lock_2(Flag* flag) {
    set(*flag);
}
ROUTINE put_2(const long* from, std::byte* to, std::size_t n) {
    std::memcpy(to, from, n * sizeof *from);
}
ROUTINE unlock_2(Flag* flag) {
    clear(*flag);
}

struct Target {
    Flag* flag;
    std::byte* base;
    std::size_t unit;
    bool direct;
    bool exclusive;
};

struct Window {
    std::vector<Target> targets;
};

ROUTINE lock_3(int rank, Window* win) {
    set(*win->targets[static_cast<std::size_t>(rank)].flag);
}
ROUTINE put_3(const long* from, std::size_t n, int rank, Window* win) {
    std::memcpy(win->targets[static_cast<std::size_t>(rank)].base, from, n * sizeof *from);
}
ROUTINE unlock_3(int rank, Window* win) {
    clear(*win->targets[static_cast<std::size_t>(rank)].flag);
}

// A handle, as of a window and of a datatype, is looked up.
struct Type {
    std::size_t size;
    bool contiguous;
};
struct Tables {
    std::vector<Window*> windows;
    std::vector<Type> types;
};
Tables tables;

ROUTINE lock_4(bool exclusive, int rank, int /*assert*/, std::size_t handle) {
    Target& target = tables.windows[handle]->targets[static_cast<std::size_t>(rank)];
    target.exclusive = exclusive;
    set(*target.flag);
}
ROUTINE put_4(const void* from, int count, std::size_t type, int rank, std::ptrdiff_t displacement, int target_count,
              std::size_t target_type, std::size_t handle) {
    const Target& target = tables.windows[handle]->targets[static_cast<std::size_t>(rank)];
    const Type& origin = tables.types[type];
    const Type& there = tables.types[target_type];
    const std::size_t bytes = static_cast<std::size_t>(count) * origin.size;
    if (!target.direct || !origin.contiguous || !there.contiguous ||
        static_cast<std::size_t>(target_count) * there.size < bytes)
        std::abort();
    std::memcpy(target.base + static_cast<std::size_t>(displacement) * target.unit, from, bytes);
}
ROUTINE unlock_4(int rank, std::size_t handle) {
    clear(*tables.windows[handle]->targets[static_cast<std::size_t>(rank)].flag);
}

void nothing(Flag&, std::byte*) {}

// `prepare` is of the first operation, `once` of each.
template <class Prepare, class Once>
void run_one(const Reference& r, char version, std::size_t n, Prepare&& prepare, Once&& once) {
    const auto data = page_aligned(n);
    const std::string name = std::string("openmp").append(1, version).append(1, '.').append(std::to_string(n));
    measure(r, name, hot_plan(n * sizeof(long)), MAP_SHARED, spin_until_stopped,
            [&](const Pair& p, std::byte* at, std::size_t, std::uint64_t lap) {
                if (lap == 0) prepare(p.control.lock, at);
                *data = static_cast<long>(lap);
                once(p.control.lock, data.get(), at);
            });
}

void run_all(const Reference& r, std::size_t n) {
    run_one(r, '1', n, nothing, [n](Flag& flag, const long* from, std::byte* at) {
        set(flag);
        std::memcpy(at, from, n * sizeof *from);
        clear(flag);
    });
    run_one(r, '2', n, nothing, [n](Flag& flag, const long* from, std::byte* at) {
        lock_2(&flag);
        put_2(from, at, n);
        unlock_2(&flag);
    });
    Window window;
    const auto prepare = [&](Flag& flag, std::byte* at) {
        window.targets.assign(2, Target{&flag, at, sizeof(long), true, false});
        tables.windows.assign(1, &window);
        tables.types.assign(2, Type{sizeof(long), true});
    };
    run_one(r, '3', n, prepare, [&window, n](Flag&, const long* from, std::byte*) {
        lock_3(kTarget, &window);
        put_3(from, n, kTarget, &window);
        unlock_3(kTarget, &window);
    });
    run_one(r, '4', n, prepare, [n](Flag&, const long* from, std::byte*) {
        lock_4(true, kTarget, 0, 0);
        put_4(from, static_cast<int>(n), 1, kTarget, 0, static_cast<int>(n), 1, 0);
        unlock_4(kTarget, 0);
    });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Reference r{"shm", bench::budget(false), {}};
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--short") == 0) {
            r.budget = bench::budget(true);
        } else {
            r.wanted.emplace_back(argv[i]);
        }
    }
    for (const std::size_t n : bench::kCounts)
        bench::run_all(r, n);
    return 0;
}
