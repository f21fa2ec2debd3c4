// The contended path of a stripe lock.
#include "sync/stripe.h"

#include "base/wait_time.h"
#include "shm/section_wait.h"

namespace osc::sync {

namespace {
std::atomic<std::uint64_t> g_waits{0};
}  // namespace

std::uint64_t stripe_waits() {
    return g_waits.load(std::memory_order_relaxed);
}

bool stripe_wait(std::atomic<std::uint32_t>& holder, std::uint32_t me, Liveness& liveness, std::uint32_t& dead) {
    g_waits.fetch_add(1, std::memory_order_relaxed);
    const base::TimedWait waits;
    for (shm::SectionWait wait;;) {
        std::uint32_t seen = holder.load(std::memory_order_relaxed);
        if ((seen & kLostStripe) != 0) {
            dead = (seen & ~kLostStripe) - 1;
            return false;
        }
        if (seen == 0 &&
            holder.compare_exchange_weak(seen, me + 1, std::memory_order_acquire, std::memory_order_relaxed))
            return true;
        // The holder may have released the stripe before it died.
        if (wait.pause() && seen != 0 && !liveness.alive(seen - 1))
            holder.compare_exchange_strong(seen, seen | kLostStripe, std::memory_order_relaxed);
    }
}

}  // namespace osc::sync
