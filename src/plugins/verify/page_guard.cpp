// The handlers of SIGSEGV and SIGTRAP, and what they share with the guards. Handlers use atomics, mprotect and the
// unwinder only.
// Build: osc_verify_core
#include "plugins/verify/page_guard.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <mutex>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/pages.h"

namespace osc::check {
namespace {

constexpr std::size_t kMostGuards = 256;
constexpr std::uint32_t kMostTouches = 16384;  // recorded after one close()
constexpr std::uint16_t kStepsInPage = 512;    // in one page: a sweep over its words
constexpr std::uint16_t kOpenForLoads = 0x8000;
constexpr unsigned kMostPages = 8;  // that one instruction touches

}  // namespace

struct PageGuard::Record {
    static constexpr unsigned kFrames = 24;
    std::uintptr_t address;
    std::int64_t when;
    bool store;
    unsigned frames;
    std::array<const void*, kFrames> frame;  // as return addresses, the innermost first
    std::atomic<bool> complete;
};

// Entries of the table are never deleted: a handler may look at one while its guard goes.
struct PageGuard::Guarded {
    std::atomic<std::uintptr_t> lo{0};  // pages [lo, hi); none if lo is 0
    std::atomic<std::uintptr_t> hi{0};
    std::uintptr_t view = 0;
    std::uintptr_t own = 0;
    std::size_t page = 0;
    std::atomic<bool> closed{false};
    std::atomic<std::uint32_t> touches{0};
    Record* records = nullptr;                    // kMostTouches
    std::atomic<std::uint16_t>* steps = nullptr;  // of each page, with kOpenForLoads
    std::size_t mapped = 0;                       // bytes of both, which are one mapping

    std::size_t pages() const {
        return (hi.load(std::memory_order_relaxed) - lo.load(std::memory_order_relaxed)) / page;
    }
    void allow(std::uintptr_t address, int access) const {
        ::mprotect(reinterpret_cast<void*>(address / page * page), page, access);
    }
    void allow_all(int access) const {
        ::mprotect(reinterpret_cast<void*>(lo.load(std::memory_order_relaxed)), pages() * page, access);
    }
};

namespace {

using Guarded = PageGuard::Guarded;
using Record = PageGuard::Record;

std::array<std::atomic<Guarded*>, kMostGuards> g_table{};
std::atomic<std::size_t> g_used{0};
std::mutex g_mutex;  // of make() and the destructor
struct sigaction g_before_fault;
struct sigaction g_before_trap;

// The pages that the handler has opened for one instruction of this thread.
struct Stepping {
    unsigned count = 0;
    std::array<std::pair<Guarded*, std::uintptr_t>, kMostPages> pages{};
};
[[gnu::tls_model("initial-exec")]] thread_local Stepping t_stepping;
// The call of an earlier handler that this thread is in.
struct Passing {
    const siginfo_t* info = nullptr;
    void* frame = nullptr;
};
[[gnu::tls_model("initial-exec")]] thread_local Passing t_passing;

Guarded* find_guarded(std::uintptr_t address) {
    const std::size_t used = g_used.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) {
        Guarded* const one = g_table[i].load(std::memory_order_acquire);
        const std::uintptr_t lo = one->lo.load(std::memory_order_acquire);
        if (lo != 0 && address >= lo && address < one->hi.load(std::memory_order_acquire)) return one;
    }
    return nullptr;
}

struct FrameWalk {
    std::uintptr_t from;
    Record& record;
};

_Unwind_Reason_Code keep_frame(_Unwind_Context* context, void* data) {
    auto& walk = *static_cast<FrameWalk*>(data);
    const std::uintptr_t address = _Unwind_GetIP(context);
    unsigned& count = walk.record.frames;
    if (count == 0 && address != walk.from) return _URC_NO_REASON;  // the handler's frames
    walk.record.frame[count] = reinterpret_cast<const void*>(address + (count == 0 ? 1 : 0));
    return ++count == PageGuard::Record::kFrames || address == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void record(Guarded& guarded, std::uintptr_t address, bool store, std::uintptr_t instruction, std::int64_t when) {
    const std::uint32_t index = guarded.touches.fetch_add(1, std::memory_order_relaxed);
    if (index >= kMostTouches) return;
    Record& made = guarded.records[index];
    made.address = address;
    made.when = when;
    made.store = store;
    made.frames = 0;
    FrameWalk walk{instruction, made};
    ::_Unwind_Backtrace(&keep_frame, &walk);
    if (made.frames == 0) made.frame[made.frames++] = reinterpret_cast<const void*>(instruction + 1);
    made.complete.store(true, std::memory_order_release);
}

#ifdef __x86_64__
constexpr greg_t kTrapFlag = 0x100;

std::uintptr_t instruction_of(const ucontext_t& context) {
    return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
}
bool is_store(const ucontext_t& context, bool) {
    return (context.uc_mcontext.gregs[REG_ERR] & 2) != 0;  // the page fault's error code: a write
}
// Lets the thread trap behind its next instruction; false if it must not.
bool step(ucontext_t& context, Guarded& guarded, std::uintptr_t address) {
    if (t_stepping.count == kMostPages || ::sigismember(&context.uc_sigmask, SIGTRAP) != 0) return false;
    t_stepping.pages[t_stepping.count++] = {&guarded, address};
    context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
    return true;
}
void end_step(ucontext_t& context) {
    context.uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}
#else
#ifdef __aarch64__
std::uintptr_t instruction_of(const ucontext_t& context) {
    return static_cast<std::uintptr_t>(context.uc_mcontext.pc);
}
#else
std::uintptr_t instruction_of(const ucontext_t&) {
    return 0;
}
#endif
// A page that is open for loads can only fault by a store. A first access counts as a load; if it is a store, it faults
// again at once.
bool is_store(const ucontext_t&, bool open_for_loads) {
    return open_for_loads;
}
bool step(ucontext_t&, Guarded&, std::uintptr_t) {
    return false;
}
void end_step(ucontext_t&) {}
#endif

// Opens the page of an access to a view; false if the address is in none.
bool handle(std::uintptr_t address, ucontext_t& context) {
    const std::int64_t now = now_ns();
    Guarded* const guarded = find_guarded(address);
    if (guarded == nullptr) return false;
    // An access of libosc for a call of the program, or after the exposure.
    if (!guarded->closed.load(std::memory_order_acquire) || t_call_site != Site{}) {
        guarded->allow(address, PROT_READ | PROT_WRITE);
        return true;
    }
    const std::size_t page = (address - guarded->lo.load(std::memory_order_relaxed)) / guarded->page;
    const std::uint16_t steps = guarded->steps[page].fetch_add(1, std::memory_order_relaxed);
    const bool store = is_store(context, (steps & kOpenForLoads) != 0);
    record(*guarded, address, store, instruction_of(context), now);
    const bool more =
        (steps & ~kOpenForLoads) < kStepsInPage && guarded->touches.load(std::memory_order_relaxed) < kMostTouches;
    if (more && step(context, *guarded, address)) {
        guarded->allow(address, PROT_READ | PROT_WRITE);
    } else {
        if (!store) guarded->steps[page].fetch_or(kOpenForLoads, std::memory_order_relaxed);
        guarded->allow(address, store ? PROT_READ | PROT_WRITE : PROT_READ);
    }
    return true;
}

// Gives a signal to the handler of before, unless that has just given it to this one. It may never return.
void pass_on(const struct sigaction& before, int number, siginfo_t* info, void* context) {
    void* const frame = __builtin_frame_address(0);
    const bool came_back = info == t_passing.info && std::less<>()(frame, t_passing.frame);
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN && !came_back) {
        t_passing = {info, frame};
        if ((before.sa_flags & SA_SIGINFO) != 0)
            before.sa_sigaction(number, info, context);
        else
            before.sa_handler(number);
        t_passing = {};
        return;
    }
    if (before.sa_handler == SIG_IGN && info->si_code <= 0) return;
    // The default ends the process: by the instruction, which runs again, or by the signal, if a process sent it.
    struct sigaction fatal {};
    fatal.sa_handler = SIG_DFL;
    ::sigaction(number, &fatal, nullptr);
    if (info->si_code <= 0 || number == SIGTRAP) ::raise(number);
}

void on_fault(int number, siginfo_t* info, void* context) {
    const int error = errno;
    const bool ours = info->si_code == SEGV_ACCERR &&
                      handle(reinterpret_cast<std::uintptr_t>(info->si_addr), *static_cast<ucontext_t*>(context));
    if (!ours) pass_on(g_before_fault, number, info, context);
    errno = error;
}

// Only on x86-64 an instruction ends with a trap.
[[maybe_unused]] void on_trap(int number, siginfo_t* info, void* context) {
    if (info->si_code != TRAP_TRACE || t_stepping.count == 0) return pass_on(g_before_trap, number, info, context);
    const int error = errno;
    for (; t_stepping.count > 0; --t_stepping.count) {
        const auto& [guarded, address] = t_stepping.pages[t_stepping.count - 1];
        if (guarded->closed.load(std::memory_order_acquire)) guarded->allow(address, PROT_NONE);
    }
    end_step(*static_cast<ucontext_t*>(context));
    errno = error;
}

// Installs a handler in front of the one that is there, also one that the program has set since the last time.
void install(int number, void (*handler)(int, siginfo_t*, void*), struct sigaction& before) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handler) return;
    before = now;
    struct sigaction ours {};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(number, &ours, nullptr);
}

_Unwind_Reason_Code no_frame(_Unwind_Context*, void*) {
    return _URC_END_OF_STACK;
}

}  // namespace

std::unique_ptr<PageGuard> PageGuard::make(std::byte* view, std::byte* own, std::size_t bytes) {
    const std::lock_guard lock(g_mutex);
    Guarded* free = nullptr;
    const std::size_t used = g_used.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used && free == nullptr; ++i) {
        Guarded* const one = g_table[i].load(std::memory_order_relaxed);
        if (one->lo.load(std::memory_order_relaxed) == 0) free = one;
    }
    if (free == nullptr) {
        if (used == kMostGuards) return nullptr;
        free = new Guarded;
        g_table[used].store(free, std::memory_order_release);
        g_used.store(used + 1, std::memory_order_release);
    }
    const std::size_t page = base::page_bytes();
    const auto start = reinterpret_cast<std::uintptr_t>(view);
    const std::uintptr_t lo = base::page_down(start);
    const std::uintptr_t hi = base::page_up(start + bytes);
    const std::size_t records = kMostTouches * sizeof(Record);
    const std::size_t mapped = records + (hi - lo) / page * sizeof(std::atomic<std::uint16_t>);
    void* const memory =
        ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    ::_Unwind_Backtrace(&no_frame, nullptr);  // its first call may allocate memory
    free->view = start;
    free->own = reinterpret_cast<std::uintptr_t>(own);
    free->page = page;
    free->records = static_cast<Record*>(memory);  // zero bytes are incomplete records, and no steps
    free->steps = reinterpret_cast<std::atomic<std::uint16_t>*>(static_cast<std::byte*>(memory) + records);
    free->mapped = mapped;
    free->touches.store(0, std::memory_order_relaxed);
    free->hi.store(hi, std::memory_order_release);
    free->lo.store(lo, std::memory_order_release);
    return std::unique_ptr<PageGuard>(new PageGuard(*free));
}

PageGuard::~PageGuard() {
    open();
    const std::lock_guard lock(g_mutex);
    guarded_.lo.store(0, std::memory_order_release);
    ::munmap(guarded_.records, guarded_.mapped);
}

void PageGuard::close() {
    install(SIGSEGV, &on_fault, g_before_fault);
#ifdef __x86_64__
    install(SIGTRAP, &on_trap, g_before_trap);
#endif
    for (std::size_t page = 0; page < guarded_.pages(); ++page)
        guarded_.steps[page].store(0, std::memory_order_relaxed);
    guarded_.closed.store(true, std::memory_order_release);
    guarded_.allow_all(PROT_NONE);
}

void PageGuard::open() {
    if (!guarded_.closed.exchange(false, std::memory_order_acq_rel)) return;
    guarded_.allow_all(PROT_READ | PROT_WRITE);
}

std::vector<Touch> PageGuard::take() {
    std::vector<Touch> taken;
    const std::uint32_t count = std::min(guarded_.touches.load(std::memory_order_relaxed), kMostTouches);
    for (std::uint32_t i = 0; i < count; ++i) {
        Record& one = guarded_.records[i];
        if (!one.complete.exchange(false, std::memory_order_acquire)) continue;
        const auto [site, by_library] = site_of_access({one.frame.data(), one.frames});
        // Functions of the C library that look for a byte load more than the program asks for.
        if (by_library && !one.store) continue;
        if (site != Site{} && one.address >= guarded_.view)
            taken.push_back({static_cast<std::int64_t>(one.address - guarded_.view), one.when, one.store, site});
    }
    guarded_.touches.store(0, std::memory_order_relaxed);
    return taken;
}

void* own_address(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (const Guarded* const guarded = find_guarded(at); guarded != nullptr)
        return reinterpret_cast<void*>(guarded->own + (at - guarded->view));
    return const_cast<void*>(address);
}

void* program_address(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t used = g_used.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) {
        const Guarded& one = *g_table[i].load(std::memory_order_acquire);
        if (one.lo.load(std::memory_order_acquire) == 0) continue;
        const std::uintptr_t bytes = one.hi.load(std::memory_order_acquire) - one.view;
        if (at >= one.own && at - one.own < bytes) return reinterpret_cast<void*>(one.view + (at - one.own));
    }
    return const_cast<void*>(address);
}

}  // namespace osc::check
