// Fills the tables of what plugins may call.
// Build: start
#include "api/plugins.h"

#include "api/plugin_table.h"
#include "base/beside.h"
#include "base/imports.h"
#include "base/log.h"
#include "base/options.h"
#include "base/warn.h"
#include "core/epoch.h"
#include "host/datatype.h"
#include "host/host.h"
#include "host/request.h"
#include "shm/machine.h"
#include "window/adopter.h"
#include "window/checker.h"
#include "window/registry.h"
#include "window/settings.h"

namespace osc {
namespace {

const plugin::Table kLibosc = {
    .version = OSC_VERSION_TEXT,
    .bytes = plugin::kBytes,
    .host = &host::detail::g_real,
    .called = &g_mpi,
    .profiled = &g_pmpi,
    .behind = &g_checked,
    .values = &base::values,
    .fault_text = &base::fault_text,
    .say = &base::say,
    .say_text = &base::say_text,
    .warn_for_group = &base::warn_for_group,
    .warn_for_job = &base::warn_for_job,
    .claim_for_job = &base::claim_for_job,
    .element_size = &op::element_size,
    .significant_size = &op::significant_size,
    .bounds = &op::Layout::bounds,
    .arena = &shm::Arena::mine,
    .map_view = [](std::uint64_t offset, std::size_t bytes) { return shm::Arena::mine().map_view(offset, bytes); },
    .unmap_view = [](std::byte* view) { shm::Arena::mine().unmap_view(view); },
    .adoption_file = &shm::Arena::adoption_file,
    .has_for_each = &shm::Arena::has_for_each,
    .called_function = &base::called_function,
    .replace_all_imports = &base::replace_all_imports,
    .machine_number = &shm::machine_number,
    .has_other_threads = &shm::has_other_threads,
    .stop_handlers = &shm::stop_handlers,
    .release_handlers = &shm::release_handlers,
    .fences =
        [](Core& core, std::uint64_t if_failed) {
            const StateGuard guard(core);
            return core.epoch.fence_failed ? if_failed : core.epoch.fences;
        },
    .may_free = &epoch::may_free,
    .must_not_flush = &epoch::must_not_flush,
    .need_passive = &epoch::need_passive,
    .target = [](Core& core, std::uint32_t rank) -> Target& { return core.target(rank); },
    .meet =
        [](Window& window) {
            const shm::WaitScope scope(shm::WaitKind::Barrier, window.core.id, window.core.me);
            return window.core.barrier();
        },
    .largest = [](Team& team, MPI_Comm comm, std::span<int> values) { return team.largest(comm, values); },
    .threads = &host::threads,
    .type_info = [](MPI_Datatype type) { return host::type_info(type); },
    .find_mismatch = &host::find_mismatch,
    .give_own_handle = &host::give_own_handle,
    .errors_return = []() -> MPI_Errhandler { return MPI_ERRORS_RETURN; },
    .free_handler = &host::free_handler,
    .find_window = [](MPI_Win handle) { return find_window(handle); },
    .live_windows = &live_windows,
    .visit_windows = &visit_windows,
    .await_all = &await_all,
    .difference_in_job = &difference_in_job,
    .describe_statistics = &Window::describe_statistics,
    .visit_records = &stats::visit,
    .counter_names = &counter_names,
    .counter_values = &counter_values,
    .trace_facts = &trace::facts,
    .trace_contents = &trace::contents,
    .trace_close = &trace::close,
    .note_clock_message = &trace::note_clock_message,
};

// What a plugin offers; null with the reason in `why`.
template <class Offer>
Offer* open(const char* name, const char* function, std::string& why) {
    using Open = Offer*(const plugin::Table* libosc);
    const std::string file = std::string(name) + abi::kSuffix + ".so";
    auto* const found = reinterpret_cast<Open*>(base::function_beside(file.c_str(), function, nullptr, why));
    Offer* const offer = found != nullptr ? found(&kLibosc) : nullptr;
    if (found != nullptr && offer == nullptr) why = file + " is of another version or build";
    return offer;
}

}  // namespace

void load_checker() {
    std::string why;
    g_checker = open<Checker>("libosc_verify", "osc_verify_open", why);
    if (g_checker == nullptr)
        base::warn_for_job("OSC_CHECK=%s: the program runs unchecked, because the checker cannot be loaded: %s",
                           base::values().check.c_str(), why.c_str());
}

void load_reports() {
    if (base::values().stats.empty() && base::values().trace.empty()) return;
    std::string why;
    g_reports = open<const Reports>("libosc_reports", "osc_reports_open", why);
    if (g_reports == nullptr)
        return base::warn_for_job("OSC_STATS and OSC_TRACE are off, because their reports cannot be loaded: %s",
                                  why.c_str());
    if (!base::values().stats.empty()) stats::turn_on();
    if (!base::values().trace.empty()) trace::turn_on();
}

const Adopter* load_adopter() {
    static const Adopter* const kLoaded = [] {
        std::string why;
        const Adopter* const adopter = open<const Adopter>("libosc_adopt", "osc_adopt_open", why);
        if (adopter == nullptr)
            base::warn_for_group(
                "OSC_ADOPT, osc_adopt and OSC_SHARE_HEAP: memory stays private, because their plugin cannot be "
                "loaded: %s",
                why.c_str());
        g_adopter.store(adopter, std::memory_order_release);
        return adopter;
    }();
    return kLoaded;
}

}  // namespace osc
