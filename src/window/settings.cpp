#include "window/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/abstract_name.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/options.h"
#include "host/host.h"

namespace osc {
namespace {

using base::launcher::process_of;

constinit std::atomic<bool> g_has_name{false};

// The list of names, opened at the start of the program and read with the first window. A process that had no
// descriptor left then would see no names, and take part in a collective call that the others skip.
constinit std::atomic<int> g_names{-1};

// The options of which all processes of a window need the same value, besides OSC_DEBUG=fake_nodes.
constexpr const char* kSwitches[] = {"OSC_DISABLE", "OSC_STATS", "OSC_TRACE"};

// The beginning of the names of this job's processes on this node; "" if the job has no name. Found once, at the start,
// while there are descriptors.
const std::string& family() {
    static const auto& name = *new std::string([] {
        const std::string job = base::launcher::job_on_node();
        return job.empty() ? job : "libosc-" + std::to_string(::getuid()) + "-settings-" + job + "-";
    }());
    return name;
}

std::string name_of(int rank, const Settings& settings) {
    return family() + base::format("%d-%x-%x-%llx", rank, settings.version, settings.switches,
                                   static_cast<unsigned long long>(settings.fake_nodes));
}

// The settings in the names of this job's processes on this node, by the launcher's ranks.
std::map<int, Settings> announced() {
    std::map<int, Settings> found;
    const std::string begin = "@" + family();
    const int list = g_names.exchange(-1);
    std::FILE* const file = list >= 0 ? ::fdopen(list, "r") : std::fopen("/proc/net/unix", "re");
    if (file == nullptr) return found;
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        const std::string_view text(line);
        const std::size_t at = text.find(begin);
        if (at == std::string_view::npos) continue;
        int rank = -1;
        Settings settings;
        unsigned long long nodes = 0;
        if (std::sscanf(line + at + begin.size(), "%d-%x-%x-%llx", &rank, &settings.version, &settings.switches,
                        &nodes) != 4)
            continue;
        settings.fake_nodes = static_cast<std::int64_t>(nodes);
        found[rank] = settings;
    }
    std::fclose(file);
    return found;
}

std::string network_namespace(const std::string& process) {
    char link[64];
    const ssize_t length = ::readlink(("/proc/" + process + "/ns/net").c_str(), link, sizeof link);
    return length > 0 ? std::string(link, static_cast<std::size_t>(length)) : std::string();
}

// Whether a process has an MPI library. The launcher's child may be a shell, or enter other namespaces, and start the
// program as its own child.
bool has_mpi(const std::string& process) {
    std::FILE* const file = std::fopen(("/proc/" + process + "/maps").c_str(), "re");
    bool found = false;
    char line[4096];
    while (file != nullptr && !found && std::fgets(line, sizeof line, file) != nullptr)
        found = std::strstr(line, "/libmpi") != nullptr;
    if (file != nullptr) std::fclose(file);
    return found;
}

// Whether a process that has claimed no name would be seen if it had.
bool is_visible(int rank) {
    const long pid = process_of(rank);
    if (pid <= 0) return false;
    const std::string process = std::to_string(pid);
    const std::string mine = network_namespace("thread-self");
    return !mine.empty() && network_namespace(process) == mine && has_mpi(process);
}

// The settings of the processes with these ranks of the launcher, all of which are on this node. MPI_Init has returned,
// so all of them have claimed their names; and this process keeps what it reads, so that a process that ends does not
// seem to lack libosc.
std::vector<Settings> settings_of(const std::vector<int>& ranks) {
    static const auto& names = *new std::map<int, Settings>(announced());
    // A process that does not see its own name sees none; but without one it counts like any process without a name.
    const bool sees = names.contains(base::launcher::rank()) || !g_has_name;
    std::vector<Settings> all;
    for (const int rank : ranks) {
        const auto name = names.find(rank);
        if (sees && name != names.end())
            all.push_back(name->second);
        else
            all.push_back(sees && is_visible(rank) ? Settings::none() : Settings::unknown());
    }
    return all;
}

// The settings of the processes of a communicator; empty if they may be on several nodes, or have no ranks in
// MPI_COMM_WORLD, which are the launcher's.
std::vector<Settings> settings_in(MPI_Comm comm) {
    const host::Real& mpi = host::real();
    int has_world = 0;
    mpi.Initialized(&has_world);
    if (has_world == 0 || !base::launcher::is_on_one_node() || family().empty()) return {};
    int size = 0;
    int world_size = 0;
    mpi.Comm_size(comm, &size);
    mpi.Comm_size(MPI_COMM_WORLD, &world_size);
    if (size < 2 || world_size != base::launcher::size()) return {};
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    mpi.Comm_group(comm, &group);
    mpi.Comm_group(MPI_COMM_WORLD, &world);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::vector<int> in_world(ranks.size());
    for (int rank = 0; rank < size; ++rank)
        ranks[static_cast<std::size_t>(rank)] = rank;
    mpi.Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
    mpi.Group_free(&group);
    mpi.Group_free(&world);
    const bool known = std::none_of(in_world.begin(), in_world.end(), [](int rank) { return rank == MPI_UNDEFINED; });
    return known ? settings_of(in_world) : std::vector<Settings>();
}

std::string text_of(const Settings& settings) {
    if (settings == Settings::none()) return "no libosc";
    constexpr std::uint32_t kThousand = 1000;
    std::string text = "libosc " + std::to_string(settings.version / kThousand / kThousand) + '.' +
                       std::to_string(settings.version / kThousand % kThousand) + '.' +
                       std::to_string(settings.version % kThousand);
    for (std::size_t i = 0; i < std::size(kSwitches); ++i)
        if ((settings.switches >> i & 1U) != 0) text.append(" with ").append(kSwitches[i]);
    if (settings.fake_nodes > 1) text.append(" with OSC_DEBUG=fake_nodes=").append(std::to_string(settings.fake_nodes));
    return text;
}

// The last difference that compare_settings() has found. Never destroyed: MPI_Finalize may come in a destructor.
std::mutex g_found_mutex;
std::string& found() {
    static auto* text = new std::string;
    return *text;
}

// Waits for the first collective of a communicator's processes.
int await_first(MPI_Request& request) {
    const std::int64_t limit = base::hang_limit();
    const std::int64_t late = now_ns() + limit;
    bool silent = limit > 0;
    return host::wait(request, [&] {
        if (!silent || now_ns() < late) return true;
        silent = false;
        base::say(
            "%s has waited %lld s for the other processes of the communicator; one that runs without libosc, or with "
            "OSC_DISABLE, never comes",
            shm::t_call, static_cast<long long>(limit / 1'000'000'000));
        return true;
    });
}

}  // namespace

Settings Settings::mine() {
    static const Settings kMine = [] {
        unsigned major = 0;
        unsigned minor = 0;
        unsigned patch = 0;
        std::sscanf(OSC_VERSION_TEXT, "%u.%u.%u", &major, &minor, &patch);
        const base::Values& options = base::values();
        const bool are_on[] = {options.disable, !options.stats.empty(), !options.trace.empty()};
        Settings settings{(major * 1000 + minor) * 1000 + patch, 0, options.fake_nodes};
        for (std::size_t i = 0; i < std::size(are_on); ++i)
            settings.switches |= (are_on[i] ? 1U : 0U) << i;
        return settings;
    }();
    return kMine;
}

void announce_settings() {
    static std::once_flag once;
    std::call_once(once, [] {
        const int rank = base::launcher::rank();
        if (rank < 0 || base::launcher::size() < 2 || !base::launcher::is_on_one_node() || family().empty()) return;
        // A shell around the program may have claimed the name.
        g_has_name = base::claim_name(name_of(rank, Settings::mine())) != base::Claim::Failed;
        g_names = base::above_stdio(::open("/proc/net/unix", O_RDONLY | O_CLOEXEC));
    });
}

std::string difference(std::span<const Settings> by_rank) {
    std::vector<std::pair<Settings, std::vector<int>>> kinds;
    int rank = -1;
    for (const Settings& its : by_rank) {
        ++rank;
        if (its == Settings::unknown()) continue;
        const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == its; });
        if (kind == kinds.end())
            kinds.push_back({its, {rank}});
        else
            kind->second.push_back(rank);
    }
    if (kinds.size() < 2) return {};
    std::string text = "the processes differ: ";
    for (const auto& [settings, ranks] : kinds)
        text.append(&settings != &kinds.front().first ? "; " : "")
            .append(base::text_of_ranks(ranks))
            .append(": ")
            .append(text_of(settings));
    return text;
}

std::string difference_in(MPI_Comm comm) {
    return difference(settings_in(comm));
}

std::string difference_in_job() {
    const std::string known = difference_in(MPI_COMM_WORLD);
    const std::lock_guard lock(g_found_mutex);
    return known.empty() ? found() : known;
}

int compare_settings(MPI_Comm comm, bool has_memory, std::string& differs) {
    const host::Real& mpi = host::real();
    int size = 0;
    mpi.Comm_size(comm, &size);
    if (size < 2) return has_memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    const Settings mine = Settings::mine();
    std::vector<Settings> all;
    bool known = false;  // on all processes or on none
    const Fault fault = base::attempt([&] {
        all = settings_in(comm);
        known = !all.empty() && std::find(all.begin(), all.end(), Settings::unknown()) == all.end();
        if (known) differs = difference(all);
        all.resize(static_cast<std::size_t>(size));
    });
    if (!known || differs.empty()) {
        // The largest of each value, and of its negative: the processes agree if they are the same.
        const std::int64_t values[] = {has_memory && fault == Fault::None ? 0 : 1,
                                       mine.version,
                                       mine.switches,
                                       mine.fake_nodes,
                                       -std::int64_t{mine.version},
                                       -std::int64_t{mine.switches},
                                       -mine.fake_nodes};
        std::int64_t most[std::size(values)] = {};
        MPI_Request request = MPI_REQUEST_NULL;
        int error = mpi.Iallreduce(values, most, std::size(values), MPI_INT64_T, MPI_MAX, comm, &request);
        if (error == MPI_SUCCESS) error = await_first(request);
        if (error != MPI_SUCCESS) return error;
        // Another collective call, of a process without libosc, may have matched this one (Open MPI).
        if (most[0] > 1 || !std::ranges::equal(most, values, std::ranges::greater_equal())) return MPI_ERR_OTHER;
        if (most[0] != 0) return MPI_ERR_NO_MEM;
        if (most[1] == -most[4] && most[2] == -most[5] && most[3] == -most[6]) return MPI_SUCCESS;
        error = host::gather(comm, mine, all.data());
        if (error != MPI_SUCCESS) return error;
        differs = difference(all);
    }
    if (differs.empty()) return MPI_SUCCESS;
    const std::lock_guard lock(g_found_mutex);
    found() = differs;
    return MPI_SUCCESS;
}

int reporter_in(MPI_Comm comm) {
    const std::vector<Settings> all = settings_in(comm);
    const auto serves = [](const Settings& settings) {
        return settings != Settings::none() && (settings.switches & 1U) == 0;
    };
    const auto first = std::find_if(all.begin(), all.end(), serves);
    return first == all.end() ? 0 : static_cast<int>(first - all.begin());
}

}  // namespace osc
