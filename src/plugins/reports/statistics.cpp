// Gathers statistics through the host MPI, and prints them. Before MPI_Finalize no process sends any; a job that aborts
// prints none.
//
// Records of one window are matched by its number (Team::window_id): a random number of the team, which its processes
// exchange when it is made, and how many windows the team has created before. Creations are collective, so all
// processes of the window count alike.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "plugins/libosc.h"
#include "plugins/reports/reports.h"
#include "stats/report.h"
#include "trace/output.h"
#include "window/window.h"

namespace osc {
namespace {

using plugin::g_libosc;

constexpr std::size_t kWord = sizeof(std::uint64_t);

// The memory of the collectives. If a process dies they never end, and the host may use it for ever.
struct Gathering {
    std::vector<std::uint8_t> mine, all;
    std::vector<int> lengths, offsets;  // in words
    int length = 0;
};

// Rank 0 receives the words of all processes. False if a process has died.
bool gather(Gathering& data, int rank, int processes, const std::vector<Window*>& windows) {
    const host::Real& mpi = host::real();
    MPI_Request request = MPI_REQUEST_NULL;
    data.length = static_cast<int>(data.mine.size() / kWord);
    data.lengths.resize(static_cast<std::size_t>(processes));
    if (mpi.Iallgather(&data.length, 1, MPI_INT, data.lengths.data(), 1, MPI_INT, MPI_COMM_WORLD, &request) !=
            MPI_SUCCESS ||
        !g_libosc.await_all(request, windows))
        return false;
    data.offsets.resize(data.lengths.size());
    std::exclusive_scan(data.lengths.begin(), data.lengths.end(), data.offsets.begin(), 0);
    if (rank == 0) data.all.resize(static_cast<std::size_t>(data.offsets.back() + data.lengths.back()) * kWord);
    return mpi.Igatherv(data.mine.data(), data.length, MPI_UINT64_T, data.all.data(), data.lengths.data(),
                        data.offsets.data(), MPI_UINT64_T, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           g_libosc.await_all(request, windows);
}

void write_file(const std::string& path, const std::string& text) {
    trace::Output file;
    if (!file.open(path) || !file.raw(text).close())
        base::say("cannot write the statistics to %s: %s", path.c_str(), std::strerror(errno));
}

}  // namespace

void report_statistics() {
    const std::vector<Window*> windows = live_windows();
    for (Window* window : windows)
        (window->*g_libosc.describe_statistics)();
    int rank = 0;
    int processes = 0;
    host::real().Comm_rank(MPI_COMM_WORLD, &rank);
    host::real().Comm_size(MPI_COMM_WORLD, &processes);
    auto data = std::make_unique<Gathering>();
    data->mine = stats::encode(g_libosc.counter_values());
    if (const std::string differs = g_libosc.difference_in_job(); !differs.empty())
        return g_libosc.warn_for_group("OSC_STATS: no statistics, because %s", differs.c_str());
    const bool complete = gather(*data, rank, processes, windows);
    if (rank == 0) {
        stats::Report report;
        report.processes = static_cast<std::uint32_t>(processes);
        if (!complete) stats::add(report, 0, data->mine);
        for (std::size_t from = 0; complete && from < data->lengths.size(); ++from)
            stats::add(report, static_cast<std::uint32_t>(from),
                       {data->all.data() + static_cast<std::size_t>(data->offsets[from]) * kWord,
                        static_cast<std::size_t>(data->lengths[from]) * kWord});
        stats::finish(report);
        const std::vector<stats::Finding> findings = stats::advise(report);
        base::write_all(STDERR_FILENO, stats::table_of(report, findings, g_libosc.counter_names()));
        if (const std::string& path = base::values().stats; path != "1")
            write_file(path, stats::json_of(report, findings, g_libosc.counter_names()));
    }
    if (!complete) static_cast<void>(data.release());
}

}  // namespace osc
