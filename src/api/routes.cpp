// Finds the routes when the library is loaded, or at the first call if the host comes later (a language binding that
// opens MPI at run time). Over a host that no library of libosc serves always at the first call, which prints the line
// that says so.
// Build: start
#include "api/routes.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include "api/front.h"
#include "api/observed.h"
#include "api/plugins.h"
#include "base/beside.h"
#include "base/core_sharing.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/options.h"
#include "base/warn.h"
#include "fabric/endpoint.h"
#include "host/real.h"
#include "osc/notify.h"
#include "osc/osc.h"
#include "window/adopter.h"
#include "window/settings.h"

namespace osc {

namespace exported {
#define OSC_OF_HOST(name, arguments)
#define OSC_EXPORTED(name, arguments) decltype(::name) name;
#include "api/exports.def"
}  // namespace exported

namespace {

std::atomic<bool> g_aside{false};
std::atomic<bool> g_handed_over{false};

// `symbol`: the function's name with PMPI_, behind whose first letter the other one is.
template <class Function>
void choose(Route<Function>& called, Route<Function>& profiled, Function* ours, const char* symbol, bool disabled) {
    void* const next = host::next_symbol(symbol + 1);
    const bool tool = next != nullptr && !host::in_host_library(next);
    if (void* const host = disabled ? host::host_symbol(symbol) : nullptr; host != nullptr)
        ours = reinterpret_cast<Function*>(host);
    profiled = ours;
    called = tool ? reinterpret_cast<Function*>(next) : ours;
}

// The plugin comes now if an option asks for it: later the program may have changed its folder or its file system.
void prepare_adoption() {
    register_fork_handlers();
    if (base::values().adopt == "off" && base::values().share_heap == 0) return;
    const Adopter* const adopter = load_adopter();
    if (adopter != nullptr && base::values().share_heap != 0) adopter->share_heap();
}

// Sets libosc's own functions. `ours`: the host has libosc's ABI. The host's Fortran library may be loaded later: then
// the first call looks again.
void set_exports(Exports& to, bool ours) {
    const auto function = [ours](const char* name) {
        void* const own = ours ? abi::function_for(name) : nullptr;
        return own != nullptr ? own : host::host_symbol(name);
    };
#define OSC_OF_HOST(name, arguments) \
    if (void* const found = function(#name); found != nullptr) to.name = reinterpret_cast<decltype(to.name)::To>(found);
#define OSC_EXPORTED(name, arguments) \
    to.name = reinterpret_cast<decltype(to.name)::To>(reinterpret_cast<void*>(&exported::name));
#include "api/exports.def"
}

void serve() {
    const bool disabled = base::values().disable;
    base::note_affinity();
    base::find_own_folder();
    if (!disabled) load_reports();
    announce_settings();
#define OSC_ENTRY(kind, name, parameters, arguments)                                                                  \
    choose(g_mpi.name, g_pmpi.name, as_route(static_cast<int(*) parameters>(&entry::name)), "PMPI_" #name, disabled); \
    g_own.name = as_route(static_cast<int(*) parameters>(&entry::name));
#include "api/entries.def"
    set_exports(g_exports, true);
    if (stats::enabled() || trace::enabled()) observe_calls();
    if (base::values().check != "0" && !disabled) load_checker();  // outermost: behind all other layers
    if (!disabled) prepare_adoption();
    if (const int processes = base::launcher::size(); !disabled && processes > 1)
        fabric::announce_processes(static_cast<std::uint32_t>(processes));
}

template <class Function>
void pass(Route<Function>& route, const char* symbol, const Route<Function>& missing) {
    route = missing;
    if (void* const address = host::host_symbol(symbol); address != nullptr)
        route = reinterpret_cast<Function*>(address);
}

void stand_aside(const std::string& why) {
#define OSC_ENTRY(kind, name, parameters, arguments) \
    pass(g_mpi.name, "MPI_" #name, kMissing.name);   \
    pass(g_pmpi.name, "PMPI_" #name, kMissing.name);
#include "api/entries.def"
    set_exports(g_exports, false);
    g_aside.store(true, std::memory_order_relaxed);
    if (base::values().disable) return;
    base::warn_for_job(
        "the program's MPI library (%s) has another ABI than %s's: libosc serves nothing and passes every call on, "
        "because %s",
        host::describe_host().c_str(), abi::kName, why.c_str());
}

// Sets the routes once. False if there is no host yet, or if no library of libosc serves it and this is not a call
// (`called`): the line about that waits for the first call.
bool connect(bool called) {
    static std::mutex mutex;
    static bool done = false;
    const std::lock_guard lock(mutex);
    if (done) return true;
    const host::Host host = host::find_host();
    if (host == host::Host::None) return false;
    std::string why = "OSC_DISABLE is set";
    if (host == host::Host::Ours) {
        serve();
    } else if (!base::values().disable && hand_over(why)) {
        g_handed_over.store(true, std::memory_order_relaxed);
    } else {
        if (!called) return false;
        stand_aside(why);
    }
    return done = true;
}

__attribute__((constructor(101))) void connect_at_load() {
    base::find_own_folder();
    if (!is_behind_another()) connect(false);
}

}  // namespace

bool stands_aside() {
    return g_aside.load(std::memory_order_relaxed);
}

void connect_exports() {
    const bool connected = connect(true);
    if (!g_handed_over.load(std::memory_order_relaxed)) set_exports(g_exports, connected && !stands_aside());
}

void connect_or_die() {
    if (connect(true)) return;
    base::say("no MPI library is loaded; preload libosc only into MPI programs");
    std::abort();
}

}  // namespace osc
