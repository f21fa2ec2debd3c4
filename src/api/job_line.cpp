// Build: start
#include "api/job_line.h"

#include <atomic>
#include <string>

#include "base/log.h"
#include "base/options.h"
#include "base/warn.h"
#include "host/host.h"
#include "net/network_stack.h"

namespace osc {
namespace {

constexpr std::uint64_t kClaim = 0x6a6f626c696e65;  // of the line, among the processes of a node

bool may_print() {
    static std::atomic<bool> done{false};
    return base::verbose("job") && !done.exchange(true) && base::claim_for_job(kClaim);
}

}  // namespace

void describe_job(const Window& window) {
    if (window.core.me != 0 || !may_print()) return;
    const net::Job* const job = window.team.job();
    std::string ways = window.team.local_size() > 1 || job == nullptr ? "load and store on a node" : "";
    if (job != nullptr)
        ways.append(ways.empty() ? "" : ", ")
            .append("libfabric's ")
            .append(net::NetworkStack::mine().endpoint().provider())
            .append(" between nodes");
    base::say("libosc %s over %s: %u ranks on %zu node%s, %s", OSC_VERSION_TEXT, host::describe_host().c_str(),
              window.core.size, job != nullptr ? job->leaders.size() : std::size_t{1}, job != nullptr ? "s" : "",
              ways.c_str());
}

void describe_job_without_windows() {
    int rank = 0;
    host::real().Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && may_print())
        base::say("libosc %s over %s: no window was made", OSC_VERSION_TEXT, host::describe_host().c_str());
}

}  // namespace osc
