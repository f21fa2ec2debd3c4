// Finds the runtime.
// Build: osc_verify_core
#include "plugins/verify/thread_sanitizer.h"

#include <dlfcn.h>

#include "plugins/verify/page_guard.h"

namespace osc::check {
namespace {

constinit ThreadSanitizer g_runtime{};
constinit bool g_found = false;

template <class Function>
bool find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
}

// The fibre in which a thread is in MPI, where the runtime ignores accesses and locks. In a fibre of its own, because a
// thread that polls there would drive the program's accesses out of the bounded history of its fibre.
class Inside {
  public:
    ~Inside() {
        if (fibre_ == nullptr) return;
        void* const before = g_runtime.get_current_fiber();
        g_runtime.switch_to_fiber(fibre_, kOrdersNothing);
        g_runtime.ignore_sync_end(__FILE__, __LINE__);
        g_runtime.ignore_writes_end(__FILE__, __LINE__);
        g_runtime.ignore_reads_end(__FILE__, __LINE__);
        g_runtime.switch_to_fiber(before, kOrdersNothing);
        g_runtime.destroy_fiber(fibre_);
    }
    void enter() {
        outside_ = g_runtime.get_current_fiber();
        const bool fresh = fibre_ == nullptr;
        if (fresh) fibre_ = g_runtime.create_fiber(0);
        g_runtime.switch_to_fiber(fibre_, kOrdersNothing);
        if (!fresh) return;
        g_runtime.set_fiber_name(fibre_, "calls of MPI");
        g_runtime.ignore_reads_begin(__FILE__, __LINE__);
        g_runtime.ignore_writes_begin(__FILE__, __LINE__);
        g_runtime.ignore_sync_begin(__FILE__, __LINE__);
    }
    void leave() const { g_runtime.switch_to_fiber(outside_, kOrdersNothing); }

  private:
    void* fibre_ = nullptr;
    void* outside_ = nullptr;
};

thread_local Inside t_inside;
[[gnu::tls_model("initial-exec")]] constinit thread_local unsigned t_scopes = 0;

}  // namespace

bool find_thread_sanitizer() {
    ThreadSanitizer& to = g_runtime;
    g_found =
        find(to.create_fiber, "__tsan_create_fiber") && find(to.destroy_fiber, "__tsan_destroy_fiber") &&
        find(to.get_current_fiber, "__tsan_get_current_fiber") && find(to.switch_to_fiber, "__tsan_switch_to_fiber") &&
        find(to.set_fiber_name, "__tsan_set_fiber_name") && find(to.acquire, "__tsan_acquire") &&
        find(to.release, "__tsan_release") && find(to.read_range_pc, "__tsan_read_range_pc") &&
        find(to.write_range_pc, "__tsan_write_range_pc") && find(to.ignore_reads_begin, "AnnotateIgnoreReadsBegin") &&
        find(to.ignore_reads_end, "AnnotateIgnoreReadsEnd") &&
        find(to.ignore_writes_begin, "AnnotateIgnoreWritesBegin") &&
        find(to.ignore_writes_end, "AnnotateIgnoreWritesEnd") &&
        find(to.ignore_sync_begin, "AnnotateIgnoreSyncBegin") && find(to.ignore_sync_end, "AnnotateIgnoreSyncEnd");
    return g_found;
}

const ThreadSanitizer* thread_sanitizer() {
    return g_found ? &g_runtime : nullptr;
}

IgnoredScope::IgnoredScope() {
    if (g_found && t_scopes++ == 0) t_inside.enter();
}

IgnoredScope::~IgnoredScope() {
    if (g_found && --t_scopes == 0) t_inside.leave();
}

bool is_ignored() {
    return t_scopes > 0;
}

HeededScope::HeededScope() {
    t_inside.leave();
}

HeededScope::~HeededScope() {
    t_inside.enter();
}

void access(const std::vector<Bytes>& addresses, bool store, const void* returns_to) {
    const auto report = store ? g_runtime.write_range_pc : g_runtime.read_range_pc;
    for (const Bytes& range : addresses)
        report(program_address(reinterpret_cast<void*>(static_cast<std::uintptr_t>(range.lo))),
               static_cast<unsigned long>(range.hi - range.lo), returns_to);
}

Fibre::Fibre(const char* name) : fibre_(g_runtime.create_fiber(0)) {
    g_runtime.set_fiber_name(fibre_, name);
}

Fibre::~Fibre() {
    g_runtime.destroy_fiber(fibre_);
}

}  // namespace osc::check
