// Looks for dead processes while it waits.
#include "api/collect.h"

#include <algorithm>

#include "base/clock.h"
#include "host/host.h"

namespace osc {
namespace {

constexpr std::int64_t kLook = 100000000;  // ns between two looks for dead processes

}  // namespace

bool await_all(MPI_Request& request, const std::vector<Window*>& windows) {
    const auto any_dead = [&] {
        return std::any_of(windows.begin(), windows.end(), [](Window* window) { return window->any_dead() >= 0; });
    };
    std::int64_t next = now_ns();
    bool dead = false;
    const int error = host::wait(request, [&] {
        if (void (*const network)() = shm::wait_policy().network; network != nullptr) network();
        if (now_ns() < next) return true;
        next = now_ns() + kLook;
        dead = any_dead();
        return !dead;
    });
    return error == MPI_SUCCESS && !dead;
}

}  // namespace osc
