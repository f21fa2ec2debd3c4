// Entry points that make and free windows and memory, and that make communicators of processes which share memory.
#include <pthread.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_set>

#include "api/serve.h"
#include "base/log.h"
#include "base/options.h"
#include "base/warn.h"
#include "core/epoch.h"
#include "report/report.h"
#include "window/request.h"
#include "window/settings.h"

namespace osc {
namespace {

using base::fail;

// Finds sizes and units that the standard forbids (MPI 4.1 section 12.2.1). create_window() then fails on all
// processes.
Fault check_arguments(MPI_Aint size, MPI_Aint unit, bool has_results) {
    if (size < 0) return fail(Fault::Size, "size %lld is negative", static_cast<long long>(size));
    if (unit <= 0) return fail(Fault::Disp, "displacement unit %lld is not positive", static_cast<long long>(unit));
    return has_results ? Fault::None : no_result();
}

bool is_intercommunicator(MPI_Comm comm, int& error) {
    int inter = 0;
    error = host::real().Comm_test_inter(comm, &inter);  // raises MPI_ERR_COMM for an invalid handle
    return inter != 0;
}

const char* memory_name(shm::Memory memory, bool attached) {
    if (attached) return "not shared, attached by XPMEM";
    constexpr const char* kNames[] = {"no memory", "shared", "not shared", "shared but for its first and last bytes",
                                      "regions to be attached"};
    return kNames[static_cast<std::size_t>(memory)];
}

// Creates the window; false if the host must create it.
bool served(const Request& request, const char* function, MPI_Win* win, void** base, int& error) {
    const bool inter = is_intercommunicator(request.comm, error);
    if (error != MPI_SUCCESS) return true;
    const auto raised = [&](int what) {
        error = raise(request.comm, function, what);
        return true;
    };
    if (inter) {
        fail(Fault::Other, "a window needs an intracommunicator");
        return raised(MPI_ERR_COMM);
    }
    shm::t_call = function;
    Window* window = nullptr;
    const char* reason = nullptr;
    error = create_window(request, window, reason);
    if (error != MPI_SUCCESS) return raised(error);
    if (window == nullptr) {
        int rank = 0;
        host::real().Comm_rank(request.comm, &rank);
        if (base::values().fallback == "error") {
            fail(Fault::Other, "%s, and OSC_FALLBACK=error forbids to leave the window to the host MPI", reason);
            return raised(MPI_ERR_OTHER);
        }
        if (rank == reporter_in(request.comm))
            base::warn_for_group("%s: the host MPI serves this window, because %s", function, reason);
        return false;
    }
    *win = window->handle;
    if (!host::threads()) serve_one_thread();
    if (window->core.strategies.lock->may_defer(window->core)) serve_deferred_locks();
    // The window serves without these.
    static_cast<void>(base::attempt([&] {
        report::start();
        redirect_plugins();
        describe_job(*window);
    }));
    if (const shm::Memory memory = window->core.mine().memory; base::verbose("windows"))
        base::say("%s: window %#llx of %u processes, %lld bytes here at %p, %s%s%s", function,
                  abi::printable(window->handle), window->core.size, static_cast<long long>(window->bytes),
                  window->base,
                  memory_name(memory, memory == shm::Memory::Private && window->core.mine().offset != shm::kNoOffset),
                  window->kept_private.empty() ? "" : ": ", window->kept_private.c_str());
    if (base != nullptr) std::memcpy(static_cast<void*>(base), &window->base, sizeof(void*));
    return true;
}

Fault attach(Window& window, const void* base, std::size_t bytes) {
    shm::SharedPart shared;
    std::string kept_private;
    const Fault fault = attach_memory(window, base, bytes, shared, kept_private);
    if (fault != Fault::None || !base::verbose("windows")) return fault;
    const shm::Memory memory = bytes == 0                ? shm::Memory::None
                               : shared.bytes() == bytes ? shm::Memory::Shared
                               : shared                  ? shm::Memory::Mixed
                                                         : shm::Memory::Private;
    base::say("MPI_Win_attach: window %#llx, %zu bytes at %p, %s%s%s", abi::printable(window.handle), bytes, base,
              memory_name(memory, shared.is_attached()), kept_private.empty() ? "" : ": ", kept_private.c_str());
    return fault;
}

// The live pieces of MPI_Alloc_mem. The arena knows its pieces, but those of windows are among them.
class Allocated {
  public:
    void add(void* base) {
        const std::lock_guard lock(mutex_);
        if (!torn_) bases_.insert(base);
    }
    bool remove(void* base) {
        const std::lock_guard lock(mutex_);
        return torn_ || bases_.erase(base) > 0;
    }
    // In a child of fork, where no other thread lives.
    void after_fork() {
        if (mutex_.try_lock()) {
            mutex_.unlock();
        } else {
            new (&mutex_) std::mutex;
            torn_ = true;
        }
    }

  private:
    std::mutex mutex_;
    bool torn_ = false;  // a thread of the parent was changing the list at the fork
    std::unordered_set<void*> bases_;
};

// Made when it is used first, and never destroyed: a program may call MPI before constructors and after destructors.
Allocated& allocated() {
    static auto* const made = [] {
        ::pthread_atfork(nullptr, nullptr, [] { allocated().after_fork(); });
        return new Allocated;
    }();
    return *made;
}

Fault allocate(std::size_t bytes, std::size_t alignment, void*& base) {
    Allocated& all = allocated();
    base = shm::Arena::mine().allocate(bytes, alignment, false).address;
    // Without shared memory use the heap. The host's function would not do: MPICH 4.0.2 returns 0x10 when it fails.
    if (base == nullptr && ::posix_memalign(&base, alignment, bytes) != 0)
        return fail(Fault::NoMem, "no memory for %zu bytes", bytes);
    const Fault fault = base::attempt([&] { all.add(base); });
    if (fault != Fault::None && !shm::Arena::mine().release(base)) std::free(base);
    return fault;
}

// `win`, `memory`: where the window and its memory's address go.
Request request_for(int flavor, void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, const void* win,
                    const void* memory) {
    Request request{flavor, base, size, unit, info, comm};
    const bool gives_memory = flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
    request.fault = check_arguments(size, unit, win != nullptr && (memory != nullptr || !gives_memory));
    if (request.fault == Fault::None && !abi::may_be_info(info)) {
        request.fault = fail(Fault::Info, "the info is no info object");
        request.info = MPI_INFO_NULL;
    }
    if (request.fault == Fault::None && flavor == MPI_WIN_FLAVOR_CREATE && base == nullptr && size > 0)
        request.fault = fail(Fault::Base, "the base is null, but the size is %lld", static_cast<long long>(size));
    if (request.fault != Fault::None) request.size = 0;
    return request;
}

}  // namespace

namespace entry {

#define OSC_CREATE(name, parameters, arguments, flavor, base, size, unit, info, comm, out)   \
    int name parameters {                                                                    \
        int error = MPI_SUCCESS;                                                             \
        const Request request = request_for(flavor, base, size, unit, info, comm, win, out); \
        if (served(request, "MPI_" #name, win, static_cast<void**>(out), error)) {           \
            if (error == MPI_SUCCESS) count_served(Entry::name);                             \
            return error;                                                                    \
        }                                                                                    \
        error = host::real().name arguments;                                                 \
        if (error != MPI_SUCCESS) return error;                                              \
        reissued(*win);                                                                      \
        count_forwarded(Entry::name);                                                        \
        return MPI_SUCCESS;                                                                  \
    }

#define OSC_CREATE_BOTH(suffix, unit_type)                                                                           \
    OSC_CREATE(Win_create##suffix,                                                                                   \
               (void* base, MPI_Aint size, unit_type disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win),         \
               (base, size, disp_unit, info, comm, win), MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm,   \
               nullptr)                                                                                              \
    OSC_CREATE(Win_allocate##suffix,                                                                                 \
               (MPI_Aint size, unit_type disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),      \
               (size, disp_unit, info, comm, baseptr, win), MPI_WIN_FLAVOR_ALLOCATE, nullptr, size, disp_unit, info, \
               comm, baseptr)                                                                                        \
    OSC_CREATE(Win_allocate_shared##suffix,                                                                          \
               (MPI_Aint size, unit_type disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),      \
               (size, disp_unit, info, comm, baseptr, win), MPI_WIN_FLAVOR_SHARED, nullptr, size, disp_unit, info,   \
               comm, baseptr)

OSC_CREATE_BOTH(, int)
OSC_CREATE_BOTH(_c, MPI_Aint)

OSC_CREATE(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* win), (info, comm, win), MPI_WIN_FLAVOR_DYNAMIC,
           nullptr, 0, 1, info, comm, nullptr)

int Win_attach(MPI_Win win, void* base, MPI_Aint size) {
    OSC_ON_WINDOW(win, Win_attach, (win, base, size));
    const Fault fault = base::attempt([&] {
        if (window->flavor != MPI_WIN_FLAVOR_DYNAMIC)
            return fail(Fault::Flavor, "memory can be attached to windows of MPI_Win_create_dynamic only");
        if (size < 0) return fail(Fault::Size, "size %lld is negative", static_cast<long long>(size));
        if (size > 0 && base == nullptr)
            return fail(Fault::Attach, "the base is null, but the size is %lld", static_cast<long long>(size));
        // The host cannot take over the window any more.
        if (size > 0 && in_device_memory(base))
            return fail(Fault::AttachRefused,
                        "device memory cannot be attached: libosc serves this window, by load and store");
        return attach(*window, base, static_cast<std::size_t>(size));
    });
    return finish(*window, "MPI_Win_attach", fault);
}

int Win_detach(MPI_Win win, const void* base) {
    OSC_ON_WINDOW(win, Win_detach, (win, base));
    const Fault fault = window->flavor == MPI_WIN_FLAVOR_DYNAMIC
                            ? base::attempt([&] { return window->detach(base); })
                            : fail(Fault::Flavor, "this window was not made by MPI_Win_create_dynamic");
    return finish(*window, "MPI_Win_detach", fault);
}

int Win_free(MPI_Win* win) {
    Window* const window = win != nullptr ? find_window(*win) : nullptr;
    if (window == nullptr) OSC_FORWARD_ON(win != nullptr ? *win : MPI_WIN_NULL, Win_free, (win));
    count_served(Entry::Win_free);
    shm::t_call = "MPI_Win_free";
    int host_error = MPI_SUCCESS;
    if (const Fault open = epoch::may_free(window->core); open != Fault::None)
        return raise(*window, "MPI_Win_free", open);
    // Checked while the window exists; the other processes wait in MPI_Win_free until this one comes.
    const int late = finish(*window, "MPI_Win_free", base::attempt([&] { return window->core.complete_ops(); }));
    request::reap();
    const bool fatal = host::window_errors_are_fatal(*win);
    const Fault fault = free_window(window, host_error);
    if (host_error != MPI_SUCCESS) return host_error;
    *win = MPI_WIN_NULL;
    if (fault != Fault::None && fatal) return raise("MPI_Win_free", fault);  // the window's handler is gone
    return fault == Fault::None ? late : error_class(fault);
}

int Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    if (!abi::may_be_info(info)) return raise("MPI_Alloc_mem", fail(Fault::Info, "the info is no info object"));
    if (size < 0 || baseptr == nullptr) OSC_FORWARD(Alloc_mem, (size, info, baseptr));  // the host reports the error
    void* base = nullptr;
    if (base::attempt([&] { return allocate(static_cast<std::size_t>(size), wanted_alignment(info), base); }) !=
        Fault::None)
        return raise("MPI_Alloc_mem", Fault::NoMem);
    std::memcpy(baseptr, &base, sizeof base);
    count_served(Entry::Alloc_mem);
    return MPI_SUCCESS;
}

int Free_mem(void* base) {
    if (base == nullptr) OSC_FORWARD(Free_mem, (base));
    if (!allocated().remove(base)) {
        fail(Fault::Base, "MPI_Alloc_mem did not give %p, or it is freed already", base);
        return raise("MPI_Free_mem", Fault::Base);
    }
    if (!shm::Arena::mine().release(base)) std::free(base);
    count_served(Entry::Free_mem);
    return MPI_SUCCESS;
}

int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
    // The host reports errors, and splits intercommunicators.
    int error = MPI_SUCCESS;
    if (comm == MPI_COMM_NULL || newcomm == nullptr || is_intercommunicator(comm, error))
        OSC_FORWARD(Comm_split_type, (comm, split_type, key, info, newcomm));
    bool grown = false;
    if (error == MPI_SUCCESS) error = osc::split_type({comm, split_type, key, info}, newcomm, grown);
    if (error != MPI_SUCCESS) return error;
    if (grown)
        count_served(Entry::Comm_split_type);
    else
        count_forwarded(Entry::Comm_split_type);
    return MPI_SUCCESS;
}

}  // namespace entry
}  // namespace osc
