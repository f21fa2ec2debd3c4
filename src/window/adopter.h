// Adoption of private memory (OSC_ADOPT, OSC_SHARE_HEAP) as the rest of libosc sees it. It is a plugin, libosc_adopt.so
// (src/plugins/adopt), which is in memory only if an option or an info key of a window asks for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "shm/control.h"
#include "window/window.h"

namespace osc {

struct Adopter {
    /// Makes memory of a window shared in place, as far as its osc_adopt and the system allow, and returns the part
    /// that is shared then; an empty part if there is none. `kept_private`: why the rest is not, if the window asks for
    /// it.
    shm::SharedPart (*adopt)(Window& window, const void* base, std::size_t bytes, std::string& kept_private);
    /// Reserves shared memory and gives it to libosc_heap.so, as OSC_SHARE_HEAP says; one line on stderr if that
    /// library is not loaded or the system refuses. Once, when libosc begins to serve the program.
    void (*share_heap)();
    /// Around fork(): the child gets private copies of adopted memory.
    void (*before_fork)();
    void (*after_fork_in_parent)();
    void (*after_fork_in_child)();
};

/// Null until the first call of load_adopter(). The forks of any thread read it.
inline constinit std::atomic<const Adopter*> g_adopter = nullptr;

/// Loads the plugin. Null if it cannot be loaded: the first call says why in one line, and memory stays private.
/// Thread-safe.
const Adopter* load_adopter();

/// Lets forks call what the plugin has for them. Once, when libosc begins to serve the program: the handlers prepare
/// last and continue first among those that others register later, so that the copies have what those change before the
/// fork, their locks above all.
void register_fork_handlers();

}  // namespace osc
