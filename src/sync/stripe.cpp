// The contended path of a stripe lock.
#include "sync/stripe.h"

#include <sched.h>

#include <ctime>

#include "base/wait_time.h"

namespace osc::sync {

namespace {
std::atomic<std::uint64_t> g_waits{0};
}  // namespace

std::uint64_t stripe_waits() {
    return g_waits.load(std::memory_order_relaxed);
}

bool stripe_wait(std::atomic<std::uint32_t>& holder, std::uint32_t me, Liveness& liveness, std::uint32_t& dead) {
    g_waits.fetch_add(1, std::memory_order_relaxed);
    const base::WaitScope waits;
    const int spin = shm::wait_policy().spin;
    for (int round = 0;; ++round) {
        std::uint32_t seen = holder.load(std::memory_order_relaxed);
        if (seen == 0 &&
            holder.compare_exchange_weak(seen, me + 1, std::memory_order_acquire, std::memory_order_relaxed))
            return true;
        if (round < spin) {
            shm::cpu_relax();
        } else if (round < spin + 1000) {
            ::sched_yield();
        } else {
            const timespec pause{0, 1000000};
            ::nanosleep(&pause, nullptr);
            if ((round - spin) % 100 == 0 && seen != 0 && !liveness.alive(seen - 1)) {
                dead = seen - 1;
                return false;
            }
        }
    }
}

}  // namespace osc::sync
