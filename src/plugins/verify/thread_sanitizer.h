// ThreadSanitizer's runtime as the usage checker uses it (OSC_CHECK=2): a program compiled with -fsanitize=thread has
// it, and reports each of its loads and stores to it. The checker adds what operations access, in fibres: threads of
// which only the runtime knows. The plugin is not linked to the runtime, it looks for its functions in the process.
//
// What libosc and MPI load, store and lock for themselves is no access and no order of the program: a call that the
// checker sees runs in a fibre of its thread, which the runtime ignores.
#pragma once

#include <cstddef>
#include <vector>

#include "plugins/verify/bytes.h"

namespace osc::check {

/// The runtime's functions (sanitizer/tsan_interface.h, tsan_interface_ann.h).
struct ThreadSanitizer {
    void* (*create_fiber)(unsigned flags);
    void (*destroy_fiber)(void* fiber);
    void* (*get_current_fiber)();
    void (*switch_to_fiber)(void* fiber, unsigned flags);
    void (*set_fiber_name)(void* fiber, const char* name);
    void (*acquire)(void* address);
    void (*release)(void* address);
    void (*read_range_pc)(void* address, unsigned long bytes, const void* returns_to);
    void (*write_range_pc)(void* address, unsigned long bytes, const void* returns_to);
    void (*ignore_reads_begin)(const char* file, int line);
    void (*ignore_reads_end)(const char* file, int line);
    void (*ignore_writes_begin)(const char* file, int line);
    void (*ignore_writes_end)(const char* file, int line);
    void (*ignore_sync_begin)(const char* file, int line);
    void (*ignore_sync_end)(const char* file, int line);
};

/// Of ThreadSanitizer::switch_to_fiber: the switch is no synchronisation.
inline constexpr unsigned kOrdersNothing = 1;

/// Looks for the runtime; false if the process has none. One thread, before the other functions.
bool find_thread_sanitizer();
/// Null if it has not been found. Constant.
const ThreadSanitizer* thread_sanitizer();

/// While it lives, the runtime ignores the calling thread, if there is a runtime. Scopes nest.
class IgnoredScope {
  public:
    IgnoredScope();
    ~IgnoredScope();
    IgnoredScope(const IgnoredScope&) = delete;
    IgnoredScope& operator=(const IgnoredScope&) = delete;
};

/// Whether the calling thread is in an IgnoredScope.
bool is_ignored();

/// While it lives, in an IgnoredScope, the runtime heeds the calling thread again. There is a runtime.
class HeededScope {
  public:
    HeededScope();
    ~HeededScope();
    HeededScope(const HeededScope&) = delete;
    HeededScope& operator=(const HeededScope&) = delete;
};

/// A point that one thread or fibre reaches before others go on from it.
class SyncPoint {
  public:
    void reach() { thread_sanitizer()->release(&here_); }
    void pass() { thread_sanitizer()->acquire(&here_); }

  private:
    alignas(8) std::byte here_[8] = {};
};

/// The current fibre loads, or stores, the bytes at these addresses, by a call that returns to `returns_to`.
void access(const std::vector<Bytes>& addresses, bool store, const void* returns_to);

/// A fibre. There is a runtime. One thread at a time; not in an IgnoredScope.
class Fibre {
  public:
    /// Its accesses come behind all that the calling thread has done.
    explicit Fibre(const char* name);
    /// Accesses in it that no thread has passed stay unordered with all later ones.
    ~Fibre();
    Fibre(const Fibre&) = delete;
    Fibre& operator=(const Fibre&) = delete;

    /// Runs `what` in the fibre. Orders nothing: SyncPoints do.
    template <class What>
    void run(What&& what) {
        const ThreadSanitizer& runtime = *thread_sanitizer();
        void* const before = runtime.get_current_fiber();
        runtime.switch_to_fiber(fibre_, kOrdersNothing);
        what();
        runtime.switch_to_fiber(before, kOrdersNothing);
    }

  private:
    void* const fibre_;
};

}  // namespace osc::check
