// Owns the process's wait policy.
// Build: osc_core
#include "shm/wait.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/wait_time.h"

namespace osc::shm {
namespace {

constexpr WaitPolicy kAtStart;
std::atomic<int> g_spin{kAtStart.spin};
std::atomic<int> g_yields{kAtStart.yields};
std::atomic<long> g_sleep_ms{kAtStart.sleep_ms};
std::atomic<void (*)()> g_progress{kAtStart.progress};
std::atomic<void (*)()> g_network{kAtStart.network};
std::atomic<bool (*)()> g_serve{nullptr};
std::atomic<void (*)()> g_leave{nullptr};

// The service of one wait.
class Service {
  public:
    Service() : serve_(g_serve.load(std::memory_order_acquire)) {}
    ~Service() { leave(); }
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    void serve() const {
        if (serve_ != nullptr) serve_();
    }
    void leave() const {
        if (void (*const function)() = g_leave.load(std::memory_order_relaxed);
            serve_ != nullptr && function != nullptr)
            function();
    }

  private:
    bool (*const serve_)();
};

}  // namespace

WaitPolicy wait_policy() {
    return {g_spin.load(std::memory_order_relaxed), g_yields.load(std::memory_order_relaxed),
            g_sleep_ms.load(std::memory_order_relaxed), g_progress.load(std::memory_order_relaxed),
            g_network.load(std::memory_order_relaxed)};
}

void set_wait_network(void (*drive)()) {
    g_network.store(drive, std::memory_order_relaxed);
}

void set_wait_policy(const WaitPolicy& policy) {
    g_spin.store(policy.spin, std::memory_order_relaxed);
    g_yields.store(policy.yields, std::memory_order_relaxed);
    g_sleep_ms.store(policy.sleep_ms, std::memory_order_relaxed);
    g_progress.store(policy.progress, std::memory_order_relaxed);
}

// `leave` first: a thread that sees `serve` sees both.
void set_wait_service(const WaitService& service) {
    g_leave.store(service.leave, std::memory_order_release);
    g_serve.store(service.serve, std::memory_order_release);
}

bool serve_peers() {
    bool (*const serve)() = g_serve.load(std::memory_order_acquire);
    return serve == nullptr || serve();
}

// Where each yield leaves the core to a thread that computes, few of them take long, and a sleeping thread gets the
// core sooner.
static constexpr std::int64_t kYielding = 20000000;  // ns

bool wait_slow(Doorbell& bell, base::FunctionRef<bool()> done, base::FunctionRef<bool()> dead, FirstSleep first) {
    const WaitPolicy policy = wait_policy();
    const Service service;
    const std::int64_t end = now_ns() + kYielding;
    for (int i = 0; i < policy.yields && now_ns() < end; ++i) {
        if (done()) return true;
        service.serve();
        if (policy.network != nullptr) policy.network();
        if (policy.progress != nullptr) policy.progress();
        if (done()) return true;
        ::sched_yield();
    }
    WaitWatch watch;
    long slept = 0;
    for (long ms = 1;; ms = std::min(ms * 2, std::max(policy.sleep_ms, 1L))) {
        service.leave();
        const bool timed = policy.sleep_ms > 0 || std::exchange(first, FirstSleep::Unlimited) == FirstSleep::Timed;
        if (bell.sleep(done, timed ? ms : 0) || done()) return true;
        watch.look();
        if (policy.progress != nullptr) policy.progress();
        slept += ms;
        if (slept >= 100) {
            slept = 0;
            if (dead()) return done();
        }
    }
}

bool wait_until(Doorbell& bell, base::FunctionRef<bool()> done, base::FunctionRef<bool()> dead, FirstSleep first) {
    const base::TimedWait waits;
    if (done()) return true;
    {
        void (*const network)() = wait_policy().network;
        const Service service;
        for (int i = wait_policy().spin; i > 0; --i) {
            if (done()) return true;
            service.serve();
            // Driving the network costs one or two system calls, so only every eighth round does it.
            if (network != nullptr && i % 8 == 0)
                network();
            else
                cpu_relax();
        }
    }
    return wait_slow(bell, done, dead, first);
}

}  // namespace osc::shm
