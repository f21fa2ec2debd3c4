// The calls are redirected where they are made (base/imports.h): libosc does not export their names, so that programs
// that nothing checks do not pass through it. A redirected function gets its arguments as words, whatever their types
// (api/route_table.h), and passes as many as any of them has.
#include "plugins/verify/order_calls.h"

#include <array>
#include <climits>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/host.h"
#include "plugins/verify/entries.h"
#include "plugins/verify/target_fibres.h"

namespace osc {
namespace {

using check::IgnoredScope;
using check::JobFibres;
using check::ProcessOrder;

constexpr std::size_t kMostWords = 12;
using Words = std::array<Word, kMostWords>;

enum class Kind : std::uint8_t { Sends, ISends, Receives, IReceives, Collective, ICollective, Any };
struct Call {
    std::string_view name;
    Kind kind = Kind::Any;
    std::uint8_t source = 0, comm = 0, status = 0, request = 0;  // numbers of arguments
};
constexpr Call kCalls[] = {
#define OSC_SENDS(name) {#name, Kind::Sends},
#define OSC_ISENDS(name, at_request) {#name, Kind::ISends, 0, 0, 0, at_request},
#define OSC_RECEIVES(name, at_source, at_comm, at_status) {#name, Kind::Receives, at_source, at_comm, at_status, 0},
#define OSC_IRECEIVES(name, at_source, at_comm, at_request) {#name, Kind::IReceives, at_source, at_comm, 0, at_request},
#define OSC_COLLECTIVE(name, at_comm) {#name, Kind::Collective, 0, at_comm, 0, 0},
#define OSC_ICOLLECTIVE(name, at_comm, at_request) {#name, Kind::ICollective, 0, at_comm, 0, at_request},
#define OSC_ANY(name) {#name, Kind::Any},
#include "plugins/verify/order_calls.def"
};
constexpr std::size_t kCount = std::size(kCalls);

template <class T>
T as(Word word) {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(word);
    else
        return static_cast<T>(word);
}

// What the completion of a request acquires.
struct Awaited {
    enum class Who : std::uint8_t { Nobody, Process, Collective } who = Who::Nobody;
    std::uint32_t process = 0;
    std::uint64_t number = 0;
};

// Never destroyed: exit handlers may call MPI.
struct State {
    std::mutex mutex;
    std::unordered_map<MPI_Request, Awaited> awaited;
};
State& state() {
    static auto* const made = new State;
    return *made;
}

void remember(MPI_Request request, const Awaited& awaited) {
    const std::lock_guard lock(state().mutex);
    state().awaited.insert_or_assign(request, awaited);
}

// The job's numbers of a group's processes; UINT32_MAX: it is not of the job.
std::vector<std::uint32_t> in_job(MPI_Group group) {
    const host::Real& mpi = host::real();
    int count = 0;
    MPI_Group world = MPI_GROUP_NULL;
    if (mpi.Group_size(group, &count) != MPI_SUCCESS || mpi.Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return {};
    std::vector<int> from(static_cast<std::size_t>(count));
    std::vector<int> to(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        from[static_cast<std::size_t>(i)] = i;
    std::vector<std::uint32_t> processes;
    if (mpi.Group_translate_ranks(group, count, from.data(), world, to.data()) == MPI_SUCCESS)
        for (const int rank : to)
            processes.push_back(rank == MPI_UNDEFINED ? UINT32_MAX : static_cast<std::uint32_t>(rank));
    mpi.Group_free(&world);
    return processes;
}

// The same of an intracommunicator; empty if that cannot be known.
std::vector<std::uint32_t> members_of(MPI_Comm comm) {
    const host::Real& mpi = host::real();
    int is_inter = 1;
    MPI_Group group = MPI_GROUP_NULL;
    if (mpi.Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter != 0 ||
        mpi.Comm_group(comm, &group) != MPI_SUCCESS)
        return {};
    std::vector<std::uint32_t> members = in_job(group);
    mpi.Group_free(&group);
    for (const std::uint32_t member : members)
        if (member == UINT32_MAX) return {};
    return members;
}

void acquire(JobFibres& job, const std::vector<std::uint32_t>& processes) {
    if (processes.empty())
        job.acquire_all();
    else
        job.acquire(processes);
}

// Those that a receive may have got a message from; empty: any. `source` is a rank or MPI_ANY_SOURCE.
std::vector<std::uint32_t> sources_of(int source, MPI_Comm comm) {
    if (source >= 0 && comm == MPI_COMM_WORLD) return {static_cast<std::uint32_t>(source)};
    std::vector<std::uint32_t> members = members_of(comm);
    if (source < 0 || static_cast<std::size_t>(source) >= members.size()) return members;
    return {members[static_cast<std::size_t>(source)]};
}

void before(const Call& call, JobFibres& job, const Words& words, std::uint64_t& number) {
    const bool collective = call.kind == Kind::Collective || call.kind == Kind::ICollective;
    if (collective && as<MPI_Comm>(words[call.comm]) == MPI_COMM_WORLD)
        number = job.enter();
    else if (call.kind != Kind::IReceives)
        job.release();
}

void after(const Call& call, JobFibres& job, const Words& words, int error, std::uint64_t number) {
    const auto comm = as<MPI_Comm>(words[call.comm]);
    int source = as<int>(words[call.source]);
    if (error != MPI_SUCCESS) return job.acquire_all();
    const auto request = [&] { return *as<MPI_Request*>(words[call.request]); };
    switch (call.kind) {
        case Kind::Sends:
            return;
        case Kind::ISends:
            return remember(request(), {});
        case Kind::Receives: {
            if (source == MPI_PROC_NULL) return;
            auto* const status = as<MPI_Status*>(words[call.status]);
            if (source == MPI_ANY_SOURCE && status != MPI_STATUS_IGNORE) source = status->MPI_SOURCE;
            return acquire(job, sources_of(source, comm));
        }
        case Kind::IReceives: {
            if (source == MPI_PROC_NULL) return remember(request(), {});
            const std::vector<std::uint32_t> sources = sources_of(source, comm);
            if (sources.size() == 1) return remember(request(), {Awaited::Who::Process, sources[0], 0});
            return forget_request(request());
        }
        case Kind::Collective:
            return number != 0 ? job.leave(number) : acquire(job, members_of(comm));
        case Kind::ICollective:
            if (number != 0) return remember(request(), {Awaited::Who::Collective, 0, number});
            return forget_request(request());
        case Kind::Any:
            return job.acquire_all();
    }
}

[[gnu::tls_model("initial-exec")]] constinit thread_local unsigned t_depth = 0;

using Function = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

// A library's call of MPI from such a call is part of that one.
int run(const Call& call, Function function, const Words& w) {
    const auto pass = [&] {
        return function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]);
    };
    JobFibres* const job = JobFibres::mine();
    if (job == nullptr || t_depth > 0 || check::is_ignored()) return pass();
    std::uint64_t number = 0;
    {
        const IgnoredScope ignored;
        before(call, *job, w, number);
    }
    ++t_depth;
    const int error = pass();
    --t_depth;
    const IgnoredScope ignored;
    if (JobFibres::mine() != nullptr) after(call, *job, w, error, number);
    return error;
}

// Each call has four names.
enum Form : std::uint8_t { kMpi, kPmpi, kLarge, kPmpiLarge, kForms };
std::string name_of(std::size_t call, Form form) {
    return std::string(form == kPmpi || form == kPmpiLarge ? "PMPI_" : "MPI_") + std::string(kCalls[call].name) +
           (form >= kLarge ? "_c" : "");
}

constinit std::array<std::array<Function, kForms>, kCount> g_functions{};

template <std::size_t kCall, Form kForm>
int redirected(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l) {
    return run(kCalls[kCall], g_functions[kCall][kForm], {a, b, c, d, e, f, g, h, i, j, k, l});
}

template <std::size_t... kCall>
constexpr std::array<std::array<Function, kForms>, kCount> redirected_calls(std::index_sequence<kCall...>) {
    return {{{&redirected<kCall, kMpi>, &redirected<kCall, kPmpi>, &redirected<kCall, kLarge>,
              &redirected<kCall, kPmpiLarge>}...}};
}

// Finds what the calls reach, at the first time, and has them reach the checker.
void redirect_calls() {
    static const auto& replacements = *[] {
        constexpr auto kRedirected = redirected_calls(std::make_index_sequence<kCount>());
        auto* const names = new std::deque<std::string>;
        auto* const made = new std::vector<base::Replacement>;
        for (std::size_t call = 0; call < kCount; ++call)
            for (const Form form : {kMpi, kPmpi, kLarge, kPmpiLarge}) {
                const std::string& name = names->emplace_back(name_of(call, form));
                void* const found = plugin::g_libosc.called_function(name.c_str());
                if (found == nullptr) continue;
                g_functions[call][form] = reinterpret_cast<Function>(found);
                made->push_back({name.c_str(), found, reinterpret_cast<void*>(kRedirected[call][form])});
            }
        return made;
    }();
    plugin::g_libosc.replace_all_imports(replacements);
}

bool is_of_all(const Window& window) {
    int begun = 0;
    int size = 0;
    const host::Real& mpi = host::real();
    return mpi.Initialized(&begun) == MPI_SUCCESS && begun != 0 &&
           mpi.Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && static_cast<std::uint32_t>(size) == window.core.size;
}

// The clocks of the job, in a window of libosc's own that the program does not know; collective over `comm`, which has
// all processes. Null if they do not all share memory.
std::unique_ptr<ProcessOrder> make_order(MPI_Comm comm, const std::vector<std::uint32_t>& processes, std::uint32_t me) {
    const host::Real& mpi = host::real();
    const plugin::Table& libosc = plugin::g_libosc;
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Win win = MPI_WIN_NULL;
    void* memory = nullptr;
    const auto bytes = static_cast<MPI_Aint>(ProcessOrder::bytes_of_part(static_cast<std::uint32_t>(processes.size())));
    if (mpi.Comm_split(comm, 0, static_cast<int>(me), &own) != MPI_SUCCESS) return nullptr;
    mpi.Comm_set_errhandler(own, libosc.errors_return());
    const bool made = through(libosc.behind->Win_allocate_shared)(bytes, 1, MPI_INFO_NULL, own,
                                                                  static_cast<void*>(&memory), &win) == MPI_SUCCESS;
    mpi.Comm_free(&own);
    if (!made) return nullptr;
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
    std::vector<std::byte*> parts(processes.size());
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        MPI_Aint size = 0;
        int unit = 0;
        if (through(libosc.profiled->Win_shared_query)(win, static_cast<int>(rank), &size, &unit,
                                                       static_cast<void*>(&memory)) != MPI_SUCCESS ||
            memory == nullptr)
            return nullptr;
        parts[processes[rank]] = static_cast<std::byte*>(memory);
    }
    return std::make_unique<ProcessOrder>(processes[me], std::move(parts));
}

}  // namespace

bool watch_targets(Window& window, MPI_Comm comm) {
    static std::atomic<int> windows{0};
    static bool refused = false;  // the processes of the job do not all share memory
    const auto largest = [&](int value) {
        return plugin::g_libosc.largest(window.team, comm, {&value, 1}) == MPI_SUCCESS ? value : INT_MAX;
    };
    const bool can = base::values().check == "2" && check::thread_sanitizer() != nullptr &&
                     window.core.ledger->races() != nullptr &&
                     (JobFibres::mine() != nullptr || (!refused && is_of_all(window)));
    if (JobFibres* const job = JobFibres::mine(); job != nullptr) job->release();
    const int number = largest(can ? windows.load() + 1 : INT_MAX);
    if (number == INT_MAX) return false;
    windows.store(number);
    const std::vector<std::uint32_t> processes = in_job(window.team.group());
    if (largest(JobFibres::mine() == nullptr ? 1 : 0) != 0) {
        std::unique_ptr<ProcessOrder> order = make_order(comm, processes, window.core.me);
        refused = largest(order == nullptr ? 1 : 0) != 0;
        if (refused) return false;
        JobFibres::make(std::move(order));
    }
    redirect_calls();
    const bool by_address = window.flavor == MPI_WIN_FLAVOR_DYNAMIC;
    window.core.ledger->watch_targets(
        *JobFibres::mine(),
        {.window = static_cast<std::uint64_t>(number),
         .processes = processes,
         .me = window.core.me,
         .base = by_address ? 0 : static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(window.base)),
         .bytes = by_address ? 0 : static_cast<std::int64_t>(window.bytes),
         .defers_locks = window.core.strategies.lock->may_defer(window.core)});
    largest(0);
    JobFibres::mine()->acquire(processes);
    return true;
}

void look_at_request(MPI_Request request, bool gone) {
    JobFibres* const job = JobFibres::mine();
    if (job == nullptr) return;
    const IgnoredScope ignored;
    std::unique_lock lock(state().mutex);
    const auto found = state().awaited.find(request);
    if (found == state().awaited.end()) {
        lock.unlock();
        return job->acquire_all();  // of an unknown kind; one that stays may be persistent
    }
    if (!gone) return;
    const Awaited awaited = found->second;
    state().awaited.erase(found);
    lock.unlock();
    if (awaited.who == Awaited::Who::Process) job->acquire({&awaited.process, 1});
    if (awaited.who == Awaited::Who::Collective) job->leave(awaited.number);
}

void forget_request(MPI_Request request) {
    const std::lock_guard lock(state().mutex);
    state().awaited.erase(request);
}

}  // namespace osc
