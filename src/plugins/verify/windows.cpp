// The verified creation and free of windows, and the end: windows that the program never frees, and the summary.
#include <cstring>
#include <memory>

#include "base/options.h"
#include "host/host.h"
#include "plugins/verify/entries.h"
#include "plugins/verify/order_calls.h"
#include "plugins/verify/race_exchange.h"

namespace osc {

namespace {

// Watches a window that has just been made, if libosc serves it.
void watch(MPI_Win win, const char* call, check::Site site, MPI_Comm comm) {
    Window* const window = plugin::g_libosc.find_window(win);
    if (window == nullptr) return;
    window->core.ledger = new check::Ledger([win] { return host::name_of(win); }, {call, site});
    const bool targets = window->core.all_check && (watch_races(*window, comm), watch_targets(*window, comm));
    if (base::values().check == "2" && !targets) watch_memory(*window);
}

// The report at MPI_Finalize, before libosc ends the window itself.
void report_leak(Window& window) {
    const check::Earlier created = window.core.ledger->created();
    check::Line line{std::string(created.call) + " has made the window; MPI_Finalize found it alive", created.site};
    if (window.core.ledger->has_open_epoch())
        window.core.ledger->report_with_epochs(check::Rule::Leak, std::move(line));
    else
        window.core.ledger->report(check::Rule::Leak, {std::move(line)});
}

// `baseptr`: where a call that allocates memory stores its address; null for other calls.
template <class Below>
int create(MPI_Win* win, const char* call, MPI_Comm comm, void* baseptr, const void* returns_to, Below&& below) {
    const check::Site site = check::site_of(returns_to);
    const CallScope scope(site);
    const int error = below();
    if (error != MPI_SUCCESS) return error;
    watch(*win, call, site, comm);
    if (const Window* const window = plugin::g_libosc.find_window(*win);
        window != nullptr && window->program_view != nullptr && baseptr != nullptr)
        std::memcpy(baseptr, &window->program_view, sizeof window->program_view);
    return MPI_SUCCESS;
}

}  // namespace

namespace verified {

#define OSC_VERIFIED_CREATE(name, baseptr, parameters, arguments)                        \
    int name parameters {                                                                \
        return create(win, "MPI_" #name, comm, baseptr, __builtin_return_address(0),     \
                      [&] { return through(plugin::g_libosc.behind->name) arguments; }); \
    }
#define OSC_VERIFIED_BOTH(suffix, unit_type)                                                                          \
    OSC_VERIFIED_CREATE(Win_create##suffix, nullptr,                                                                  \
                        (void* base, MPI_Aint size, unit_type disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win), \
                        (base, size, disp_unit, info, comm, win))                                                     \
    OSC_VERIFIED_CREATE(                                                                                              \
        Win_allocate##suffix, baseptr,                                                                                \
        (MPI_Aint size, unit_type disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),              \
        (size, disp_unit, info, comm, baseptr, win))                                                                  \
    OSC_VERIFIED_CREATE(                                                                                              \
        Win_allocate_shared##suffix, baseptr,                                                                         \
        (MPI_Aint size, unit_type disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win),              \
        (size, disp_unit, info, comm, baseptr, win))
OSC_VERIFIED_BOTH(, int)
OSC_VERIFIED_BOTH(_c, MPI_Aint)
OSC_VERIFIED_CREATE(Win_create_dynamic, nullptr, (MPI_Info info, MPI_Comm comm, MPI_Win* win), (info, comm, win))

// A call that only needs its call site.
#define OSC_VERIFIED_SITE(name, parameters, arguments)                      \
    int name parameters {                                                   \
        const CallScope scope(check::site_of(__builtin_return_address(0))); \
        return through(plugin::g_libosc.behind->name) arguments;            \
    }
OSC_VERIFIED_SITE(Win_attach, (MPI_Win win, void* base, MPI_Aint size), (win, base, size))
OSC_VERIFIED_SITE(Win_detach, (MPI_Win win, const void* base), (win, base))
OSC_VERIFIED_SITE(Alloc_mem, (MPI_Aint size, MPI_Info info, void* baseptr), (size, info, baseptr))
OSC_VERIFIED_SITE(Free_mem, (void* base), (base))

int Win_free(MPI_Win* win) {
    Window* const window = win != nullptr ? watched(*win) : nullptr;
    if (window == nullptr) return through(plugin::g_libosc.behind->Win_free)(win);
    const check::Synchronisation call{
        .act = check::Act::Free, .call = "MPI_Win_free", .site = check::site_of(__builtin_return_address(0))};
    const CallScope scope(call.site);
    check::Ledger* const ledger = window->core.ledger;
    std::byte* const view = window->program_view;
    if (window->core.epoch.access == Access::FenceUsed)
        report_mistake(*window, call.call, Fault::Sync, "operations since the last fence have no fence behind them");
    ledger->before(call);
    compare_before_free(*window);
    const int error = through(plugin::g_libosc.behind->Win_free)(win);
    if (*win == MPI_WIN_NULL) {
        forget_ledger(*ledger);
        delete ledger;
        if (view != nullptr) plugin::g_libosc.unmap_view(view);
    }
    return error;
}

}  // namespace verified

void report_at_end() {
    for (Window* window : live_windows())
        if (window->core.ledger != nullptr) report_leak(*window);
    report_open_requests();
    check::JobFibres::end();
    check::summarise();
}

void verify_calls() {
    if (base::values().check == "2") check::find_thread_sanitizer();
    const plugin::Table& libosc = plugin::g_libosc;
// A tool behind libosc keeps its place: only the routes that lead to libosc change.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_INSTALL_##kind(name)
#define OSC_HOST_ENTRY(kind, name, parameters, arguments) OSC_INSTALL(name)
#define OSC_INSTALL(name)                                                                                  \
    do {                                                                                                   \
        libosc.behind->name = libosc.profiled->name;                                                       \
        if (libosc.called->name == libosc.profiled->name) libosc.called->name = as_route(&verified::name); \
        libosc.profiled->name = as_route(&verified::name);                                                 \
    } while (0);
#define OSC_INSTALL_Data OSC_INSTALL
#define OSC_INSTALL_Sync OSC_INSTALL
#define OSC_INSTALL_Window OSC_INSTALL
#define OSC_INSTALL_Query(name)
#define OSC_INSTALL_Comm(name)
#include "api/entries.def"
    OSC_INSTALL(Wait)
    OSC_INSTALL(Test)
}

}  // namespace osc
