// What the hardware and the kernel give without any MPI: the same loops as node_bench by plain loads, stores and
// atomics on a shared mapping ("shm"), and by bare process_vm_readv/writev ("cma"), between a parent and its child.
//   node_reference shm|cma [--short] [MEASURE...]
// Names are those of node_bench without the window's flavour; and, only where they are asked for, put_latency.BYTES,
// get_latency.BYTES, put_bw.BYTES and get_bw.BYTES, the curves of the micro-benchmarks.
#include <signal.h>
#include <sys/uio.h>

#include <cstring>

#include "reference.h"

namespace bench {
namespace {

std::atomic_ref<std::uint64_t> cell(std::byte* at) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

void take(std::atomic<std::uint32_t>& lock) {
    while (lock.exchange(1, std::memory_order_acquire) != 0)
        sched_yield();
}

void ping(const Pair& p, int times) {
    for (; times > 0; --times) {
        const std::uint64_t turn = p.control.to_child.load(std::memory_order_relaxed) + 1;
        p.control.to_child.store(turn, std::memory_order_release);
        while (p.control.to_parent.load(std::memory_order_acquire) < turn) {
        }
    }
}

// Keeps the compiler from treating what was loaded as unused.
volatile std::uint64_t sink;

void small_shm(const Reference& r) {
    auto add = [&](const std::string& name, std::size_t bytes, auto op) {
        both(r, name, 65536, bytes, 16, MAP_SHARED, spin_until_stopped, op);
    };
    add("put8", 8, [](const Pair&, std::byte* at, std::size_t k, std::uint64_t lap) {
        cell(at).store(stamp(k, lap), std::memory_order_release);
    });
    add("get8", 8, [](const Pair&, std::byte* at, std::size_t, std::uint64_t) {
        sink = cell(at).load(std::memory_order_acquire);
    });
    add("fop", 8, [](const Pair&, std::byte* at, std::size_t, std::uint64_t) { sink = cell(at).fetch_add(1); });
    add("acc8", 8, [](const Pair&, std::byte* at, std::size_t, std::uint64_t) { cell(at).fetch_add(1); });
    add("cas", 8, [](const Pair&, std::byte* at, std::size_t, std::uint64_t lap) {
        cell(at).compare_exchange_strong(lap, lap + 1);
        sink = lap;
    });
    add("lock_put32", 32, [](const Pair& p, std::byte* at, std::size_t k, std::uint64_t lap) {
        const std::uint64_t words[4] = {stamp(k, lap), lap, lap, lap};
        take(p.control.lock);
        std::memcpy(at, words, sizeof words);
        p.control.lock.store(0, std::memory_order_release);
    });
    std::vector<double> origin(128, 1.0);
    add("vector64", 127 * 8, [&](const Pair&, std::byte* at, std::size_t, std::uint64_t lap) {
        origin[0] = static_cast<double>(lap);
        auto* to = reinterpret_cast<double*>(at);
        for (std::size_t i = 0; i < 64; ++i)
            to[2 * i] = origin[2 * i];
        std::atomic_signal_fence(std::memory_order_seq_cst);
    });
}

void bulk_shm(const Reference& r) {
    constexpr std::size_t kMedium = std::size_t{64} << 10;
    std::vector<double> ones(kMedium / 8, 1.0);
    both(r, "acc64k", 2 * kMedium, kMedium, 1, MAP_SHARED, spin_until_stopped,
         [&](const Pair& p, std::byte* at, std::size_t, std::uint64_t) {
             auto* to = reinterpret_cast<double*>(at);
             take(p.control.lock);
             for (std::size_t i = 0; i < ones.size(); ++i)
                 to[i] += ones[i];
             p.control.lock.store(0, std::memory_order_release);
         });
    for (const std::size_t bytes : {kMedium, 64 * kMedium}) {
        const std::string size = bytes == kMedium ? "64k" : "4m";
        auto* block = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
        std::memset(block, 1, bytes);
        both(r, "put" + size, bytes + kMedium, bytes, 1, MAP_SHARED, spin_until_stopped,
             [&](const Pair&, std::byte* at, std::size_t, std::uint64_t) {
                 std::memcpy(at, block, bytes);
                 std::atomic_signal_fence(std::memory_order_seq_cst);
             });
        both(r, "get" + size, bytes + kMedium, bytes, 1, MAP_SHARED, spin_until_stopped,
             [&](const Pair&, std::byte* at, std::size_t, std::uint64_t) {
                 std::memcpy(block, at, bytes);
                 std::atomic_signal_fence(std::memory_order_seq_cst);
             });
        std::free(block);
    }
}

void sync_shm(const Reference& r) {
    both(r, "fence", 4096, 8, 1, MAP_SHARED, answer_until_stopped,
         [](const Pair& p, std::byte*, std::size_t, std::uint64_t) { ping(p, 2); });
    both(r, "fence_put", 4096, 8, 1, MAP_SHARED, answer_until_stopped,
         [](const Pair& p, std::byte* at, std::size_t k, std::uint64_t lap) {
             ping(p, 1);
             cell(at).store(stamp(k, lap), std::memory_order_release);
             ping(p, 1);
         });
    both(r, "pscw_put", 4096, 8, 1, MAP_SHARED, answer_until_stopped,
         [](const Pair& p, std::byte* at, std::size_t k, std::uint64_t lap) {
             cell(at).store(stamp(k, lap), std::memory_order_release);
             ping(p, 1);
         });
}

// The curves of compare: what the micro-benchmarks move, in as many bytes and as many places, by memcpy.
constexpr std::size_t kCurveMost = std::size_t{4} << 20;
constexpr std::size_t kStreamOperations = 64;
constexpr std::size_t kStreamMost = std::size_t{64} << 20;

Plan blocks_plan(std::size_t bytes, std::size_t blocks) {
    Plan plan{1, bytes * blocks, {}};
    for (std::size_t i = 0; i < blocks; ++i)
        plan.steps.push_back({0, static_cast<std::uint32_t>(i * bytes)});
    return plan;
}

void curve_shm(const Reference& r, std::size_t bytes, bool stream) {
    const std::string end = (stream ? "_bw." : "_latency.") + std::to_string(bytes);
    if (!r.wants("put" + end) && !r.wants("get" + end)) return;
    const Plan plan = blocks_plan(bytes, stream ? std::min(kStreamOperations, kStreamMost / bytes) : 1);
    std::vector<std::byte> mine(plan.window_bytes, std::byte{1});
    measure(r, "put" + end, plan, MAP_SHARED, spin_until_stopped,
            [&](const Pair&, std::byte* at, std::size_t k, std::uint64_t) {
                std::memcpy(at, &mine[k * bytes], bytes);
                std::atomic_signal_fence(std::memory_order_seq_cst);
            });
    measure(r, "get" + end, plan, MAP_SHARED, spin_until_stopped,
            [&](const Pair&, std::byte* at, std::size_t k, std::uint64_t) {
                std::memcpy(&mine[k * bytes], at, bytes);
                std::atomic_signal_fence(std::memory_order_seq_cst);
            });
}

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

void move(Transfer transfer, pid_t child, void* local, std::byte* remote, std::size_t bytes) {
    const iovec here{local, bytes};
    const iovec there{remote, bytes};
    if (transfer(child, &here, 1, &there, 1, 0) != static_cast<ssize_t>(bytes)) {
        std::perror("node_reference: process_vm");
        kill(child, SIGKILL);
        std::exit(1);
    }
}

// The mapping is private, so that after the fork the same address is different memory in the child.
void all_cma(const Reference& r) {
    auto add = [&](const std::string& name, Transfer transfer, std::size_t bytes, std::size_t room, std::size_t per) {
        std::vector<std::uint64_t> block(bytes / 8, 1);
        both(r, name, room, bytes, per, MAP_PRIVATE, spin_until_stopped,
             [&](const Pair& p, std::byte* at, std::size_t k, std::uint64_t lap) {
                 block[0] = stamp(k, lap);
                 move(transfer, p.child, block.data(), at, bytes);
             });
    };
    add("put8", process_vm_writev, 8, 65536, 16);
    add("get8", process_vm_readv, 8, 65536, 16);
    add("put64k", process_vm_writev, 65536, 131072, 1);
    add("get64k", process_vm_readv, 65536, 131072, 1);
}

int run(int argc, char** argv) {
    Reference r{argc > 1 ? argv[1] : "", budget(false), {}};
    for (int i = 2; i < argc; ++i) {
        if (std::strcmp(argv[i], "--short") == 0) {
            r.budget = budget(true);
        } else {
            r.wanted.emplace_back(argv[i]);
        }
    }
    if (r.way == "shm") {
        small_shm(r);
        bulk_shm(r);
        sync_shm(r);
        for (std::size_t bytes = 8; bytes <= kCurveMost; bytes *= 2)
            for (const bool stream : {false, true})
                if (!r.wanted.empty()) curve_shm(r, bytes, stream);
    } else if (r.way == "cma") {
        all_cma(r);
    } else {
        std::fprintf(stderr, "usage: node_reference shm|cma [--short] [MEASURE...]\n");
        return 1;
    }
    return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    return bench::run(argc, argv);
}
