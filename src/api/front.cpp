// Build: start
#include "api/front.h"

#include <dlfcn.h>

#include <cstring>

#include "api/routes.h"
#include "api/serve.h"
#include "base/beside.h"
#include "host/real.h"

namespace osc {

const Front* g_front = nullptr;

namespace {

constexpr const char* kStandBehind = "osc_stand_behind";

template <class Function>
void lead(Route<Function>& route, void* library, const char* symbol) {
    route = reinterpret_cast<Function*>(host::loader_dlsym()(library, symbol));
}

}  // namespace

bool hand_over(std::string& why) {
    static constexpr Front kFront = {OSC_VERSION_TEXT, &host::next_symbol, &redirect_plugins};
    using StandBehind = bool(const Front* front);
    const std::string file = std::string("libosc") + host::suffix_of_host() + ".so";
    void* const library = base::library_beside(file.c_str(), nullptr, why);
    if (library == nullptr) return false;
    auto* const stand_behind = reinterpret_cast<StandBehind*>(host::loader_dlsym()(library, kStandBehind));
    if (stand_behind == nullptr || !stand_behind(&kFront)) {
        why = file + " is of another version";
        return false;
    }
#define OSC_ENTRY(kind, name, parameters, arguments) \
    lead(g_mpi.name, library, "MPI_" #name);         \
    lead(g_pmpi.name, library, "PMPI_" #name);
#include "api/entries.def"
#define OSC_EXPORTED(name, arguments) lead(g_exports.name, library, #name);
#include "api/exports.def"
    return true;
}

bool is_behind_another() {
    Dl_info own{};
    Dl_info first{};
    void* const found = host::loader_dlsym()(RTLD_DEFAULT, kStandBehind);
    return found != nullptr && ::dladdr(found, &first) != 0 &&
           ::dladdr(reinterpret_cast<void*>(&is_behind_another), &own) != 0 && first.dli_fbase != own.dli_fbase;
}

}  // namespace osc

extern "C" __attribute__((visibility("default"))) bool osc_stand_behind(const osc::Front* front) {
    if (std::strcmp(front->version, OSC_VERSION_TEXT) != 0) return false;
    osc::g_front = front;
    osc::host::search_behind(front->next_symbol);
    osc::connect_or_die();
    return true;
}
