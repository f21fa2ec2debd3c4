// Fills the tables of what plugins may call.
#include "interpose/plugins.h"

#include "base/beside.h"
#include "base/options.h"
#include "base/warn.h"
#include "epoch/epoch.h"
#include "host/datatype.h"
#include "host/errhandler.h"
#include "host/host.h"
#include "host/request.h"
#include "interpose/checker_imports.h"
#include "interpose/collect.h"
#include "transport/shm/machine.h"

namespace osc {
namespace {

const check::Imports kForChecker = {
    .version = OSC_VERSION_TEXT,
    .called = &g_mpi,
    .profiled = &g_pmpi,
    .behind = &g_checked,
    .host = &host::detail::g_real,
    .values = &base::values,
    .fault_text = &base::fault_text,
    .say_text = &base::say_text,
    .warn_for_group = &base::warn_for_group,
    .claim_for_job = &base::claim_for_job,
    .element_size = &op::element_size,
    .significant_size = &op::significant_size,
    .name_of_basic = &op::name,
    .name_of_op = &op::name,
    .bounds = &op::Layout::bounds,
    .arena = &shm::Arena::mine,
    .map_view = &shm::Arena::map_view,
    .unmap_view = &shm::Arena::unmap_view,
    .machine_number = &shm::machine_number,
    .is_consistent = &Core::is_consistent,
    .may_free = &epoch::may_free,
    .must_not_flush = &epoch::must_not_flush,
    .must_not_request = &epoch::must_not_request,
    .peer = [](Core& core, std::uint32_t rank) -> Peer& { return core.peer(rank); },
    .meet =
        [](Window& window) {
            const shm::WaitScope scope(shm::WaitKind::Barrier, window.id, window.me);
            return window.barrier();
        },
    .largest = &Team::largest,
    .threads = &host::threads,
    .type_info = [](MPI_Datatype type) { return host::type_info(type); },
    .find_mismatch = &host::find_mismatch,
    .give_own_handle = &host::give_own_handle,
    .free_handler = &host::free_handler,
    .find_window = [](MPI_Win handle) { return find_window(handle); },
    .live_windows = &live_windows,
    .await_all = &await_all,
};

}  // namespace

void load_checker() {
    std::string why;
    const auto open =
        reinterpret_cast<check::Open*>(base::function_beside("libosc_verify.so", "osc_verify_open", nullptr, why));
    if (open != nullptr) g_checker = open(&kForChecker);
    if (open != nullptr && g_checker == nullptr) why = "libosc_verify.so is of another version";
    if (g_checker == nullptr)
        base::warn_for_job("OSC_CHECK=%s: the program runs unchecked, because the checker cannot be loaded: %s",
                           base::values().check.c_str(), why.c_str());
}

}  // namespace osc
