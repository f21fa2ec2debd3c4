// A window's record of statistics (OSC_STATS) and its name in the timeline (OSC_TRACE): made at its creation, described
// at its free and by the reports.
#include "host/real.h"
#include "stats/record.h"
#include "trace/recorder.h"
#include "window/window.h"

namespace osc {
namespace {

const char* made_by(int flavor) {
    return flavor == MPI_WIN_FLAVOR_ALLOCATE  ? "MPI_Win_allocate"
           : flavor == MPI_WIN_FLAVOR_SHARED  ? "MPI_Win_allocate_shared"
           : flavor == MPI_WIN_FLAVOR_DYNAMIC ? "MPI_Win_create_dynamic"
                                              : "MPI_Win_create";
}

}  // namespace

std::size_t Window::own_bytes() const {
    return sizeof *this + shm::ControlTable::bytes_for(team.local_size(), core.size) / team.local_size() +
           core.bytes_of_targets();
}

void Window::open_statistics() {
    core.trace = trace::add_window(core.id, made_by(flavor));
    if (!stats::enabled()) return;
    record_ = &stats::open(core.id, core.me, made_by(flavor), core.threaded);
    core.stats = record_;
}

void Window::describe_statistics() {
    if (record_ == nullptr && core.trace == 0) return;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    host::real().Win_get_name(handle, name, &length);
    trace::name_window(core.trace, name);
    if (record_ == nullptr) return;
    const StrategyTexts texts = strategy_texts();
    stats::describe(*record_, [&](stats::Record& record) {
        record.processes = core.size;
        record.name = name;
        record.fence = texts.fence;
        record.pscw = texts.pscw;
        record.lock = texts.lock;
        record.set(stats::Other::OwnBytes, own_bytes());
    });
}

}  // namespace osc
