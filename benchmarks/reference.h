// The frame of the measuring programs that know no MPI: a parent and its child over a mapping, the loops of
// node_bench's plans around an operation of the parent, and the JSON lines that these print.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "plan.h"
#include "timing.h"

namespace bench {

inline std::byte* map(std::size_t bytes, int sharing) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        std::perror("reference: mmap");
        std::exit(1);
    }
    return static_cast<std::byte*>(p);
}

struct Control {
    alignas(64) std::atomic<int> stop;
    alignas(64) std::atomic<std::uint64_t> to_child;
    alignas(64) std::atomic<std::uint64_t> to_parent;
    alignas(64) std::atomic<std::uint32_t> lock;
};

struct Reference {
    std::string way;
    Budget budget;
    std::vector<std::string> wanted;

    bool wants(const std::string& name) const {
        if (wanted.empty()) return true;
        return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    }
};

// The child in the role of the target: by default it spins, as a rank that waits in MPI does.
using Role = std::function<void(Control&)>;

inline void spin_until_stopped(Control& control) {
    while (control.stop.load(std::memory_order_acquire) == 0)
        sched_yield();
}

inline void answer_until_stopped(Control& control) {
    std::uint64_t answered = 0;
    while (control.stop.load(std::memory_order_acquire) == 0) {
        if (control.to_child.load(std::memory_order_acquire) > answered) {
            control.to_parent.store(++answered, std::memory_order_release);
        }
    }
}

// What an operation of the parent may use besides the memory.
struct Pair {
    Control& control;
    pid_t child;
};

template <class Op>
void measure(const Reference& r, const std::string& name, const Plan& plan, int sharing, const Role& role, Op&& op) {
    if (!r.wants(name)) return;
    const std::size_t bytes = plan.window_bytes * static_cast<std::size_t>(plan.windows);
    std::byte* memory = map(bytes, sharing);
    auto& control = *reinterpret_cast<Control*>(map(4096, MAP_SHARED));
    const pid_t child = fork();
    if (child < 0) {
        std::perror("reference: fork");
        std::exit(1);
    }
    if (child == 0) {
        std::memset(memory, 0, bytes);
        control.to_parent.store(1, std::memory_order_release);
        while (control.to_child.load(std::memory_order_acquire) == 0)
            sched_yield();
        control.to_parent.store(0, std::memory_order_release);
        control.to_child.store(0, std::memory_order_release);
        role(control);
        _exit(0);
    }
    while (control.to_parent.load(std::memory_order_acquire) == 0)
        sched_yield();
    control.to_child.store(1, std::memory_order_release);
    while (control.to_child.load(std::memory_order_acquire) != 0)
        sched_yield();
    const Pair pair{control, child};
    Cursor cursor;
    const Timing timing = timed(r.budget, plan.steps.size(), [&](std::uint64_t n) {
        for (; n > 0; --n) {
            const Step s = plan.steps[cursor.step];
            op(pair, memory + s.window * plan.window_bytes + s.offset, cursor.step, cursor.lap);
            cursor.advance(plan.steps.size());
        }
    });
    control.stop.store(1, std::memory_order_release);
    int status = 0;
    waitpid(child, &status, 0);
    munmap(&control, 4096);
    munmap(memory, bytes);
    print_result(name, 2, timing, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

template <class Op>
void both(const Reference& r, const std::string& name, std::size_t room, std::size_t bytes, std::size_t per_window,
          int sharing, const Role& role, Op&& op) {
    measure(r, name, hot_plan(room), sharing, role, op);
    measure(r, name + ".rot", rotating_plan(room, bytes, per_window, kRotatedWindows), sharing, role, op);
}

}  // namespace bench
