// Compares the clocks once more, closes the processes' files, and brings those that rank 0 cannot see to it. Recording
// needs no communication, so only the end has any.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/options.h"
#include "host/host.h"
#include "plugins/libosc.h"
#include "plugins/reports/reports.h"
#include "trace/file.h"
#include "trace/merge.h"
#include "trace/output.h"
#include "trace/reader.h"
#include "trace/recorder.h"

namespace osc {
namespace {

using plugin::g_libosc;

constexpr int kTag = 32001;
constexpr std::uint64_t kPings = 16;                  // between two clocks, each way
constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes of a file in one message

// What a process says about its recording.
struct Account {
    std::uint64_t run, clock, bytes;
};
bool recorded(const Account& account) {
    return account.run != 0;
}
constexpr int kWords = sizeof(Account) / sizeof(std::uint64_t);

// The end of a job's recording. Its memory is the host's for ever if a process dies meanwhile.
class Ending {
  public:
    Ending() : windows_(live_windows()) {
        host::real().Comm_rank(MPI_COMM_WORLD, &rank_);
        host::real().Comm_size(MPI_COMM_WORLD, &processes_);
    }
    /// False: a process has died.
    bool run();

  private:
    bool exchange();
    bool compare_clocks();
    bool ping(int peer);
    bool ask_for_files();
    bool bring_file(int from);
    bool send_file();
    void merge_files();
    bool agree_to_clean_up();
    bool send(const void* data, std::size_t bytes, int to);
    bool receive(void* data, std::size_t bytes, int from);
    bool broadcast(void* data, std::size_t bytes);

    const std::vector<Window*> windows_;
    const std::string& path_ = base::values().trace;
    int rank_ = 0;
    int processes_ = 0;
    Account mine_{};
    std::vector<Account> all_;
    std::vector<char> hidden_;  // by rank: rank 0 cannot see its file
    std::vector<std::byte> piece_;
    char merged_ = 0;
};

bool Ending::send(const void* data, std::size_t bytes, int to) {
    MPI_Request request = MPI_REQUEST_NULL;
    return host::real().Isend(data, static_cast<int>(bytes), MPI_BYTE, to, kTag, MPI_COMM_WORLD, &request) ==
               MPI_SUCCESS &&
           g_libosc.await_all(request, windows_);
}

bool Ending::receive(void* data, std::size_t bytes, int from) {
    MPI_Request request = MPI_REQUEST_NULL;
    return host::real().Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, kTag, MPI_COMM_WORLD, &request) ==
               MPI_SUCCESS &&
           g_libosc.await_all(request, windows_);
}

bool Ending::broadcast(void* data, std::size_t bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    return host::real().Ibcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           g_libosc.await_all(request, windows_);
}

bool Ending::exchange() {
    const trace::Facts facts = g_libosc.trace_facts();
    mine_ = {facts.run, facts.clock, g_libosc.trace_contents().size()};
    all_.resize(static_cast<std::size_t>(processes_));
    MPI_Request request = MPI_REQUEST_NULL;
    return host::real().Iallgather(&mine_, kWords, MPI_UINT64_T, all_.data(), kWords, MPI_UINT64_T, MPI_COMM_WORLD,
                                   &request) == MPI_SUCCESS &&
           g_libosc.await_all(request, windows_);
}

// Messages between rank 0 and the first process of each other clock. The merge reads their records.
bool Ending::compare_clocks() {
    if (all_[0].run == 0) return true;
    std::vector<std::uint64_t> seen{0, all_[0].clock};  // 0: a process without a file
    for (int peer = 1; peer < processes_; ++peer) {
        const std::uint64_t clock = all_[static_cast<std::size_t>(peer)].clock;
        if (std::find(seen.begin(), seen.end(), clock) != seen.end()) continue;
        seen.push_back(clock);
        if ((rank_ == 0 || rank_ == peer) && !ping(peer)) return false;
    }
    return true;
}

bool Ending::ping(int peer) {
    const int other = rank_ == 0 ? peer : 0;
    const std::uint64_t there = all_[static_cast<std::size_t>(other)].run;
    std::uint64_t token = 0;
    for (std::uint64_t i = 0; i < 2 * kPings; ++i) {
        if ((i % 2 == 0) == (rank_ == 0)) {
            g_libosc.note_clock_message(trace::Kind::ClockSend, trace::flow_of(mine_.run, there, i));
            if (!send(&token, sizeof token, other)) return false;
        } else {
            if (!receive(&token, sizeof token, other)) return false;
            g_libosc.note_clock_message(trace::Kind::ClockReceive, trace::flow_of(there, mine_.run, i));
        }
    }
    return true;
}

bool Ending::ask_for_files() {
    hidden_.assign(static_cast<std::size_t>(processes_), 0);
    for (std::size_t rank = 0; rank_ == 0 && rank < hidden_.size(); ++rank) {
        if (all_[rank].run == 0) continue;
        std::string why;
        const auto file = trace::File::open(trace::file_of(path_, static_cast<std::uint32_t>(rank)), why);
        hidden_[rank] = file == nullptr || file->run() != all_[rank].run ? 1 : 0;
    }
    return broadcast(hidden_.data(), hidden_.size());
}

bool Ending::send_file() {
    const std::byte* const data = g_libosc.trace_contents().data();
    for (std::size_t at = 0; at < mine_.bytes; at += kPiece)
        if (!send(data + at, std::min<std::size_t>(kPiece, mine_.bytes - at), 0)) return false;
    return true;
}

// The merge says which files it could not read.
bool Ending::bring_file(int from) {
    const std::size_t bytes = all_[static_cast<std::size_t>(from)].bytes;
    piece_.resize(kPiece);
    trace::Output file;
    const bool opened = file.open(trace::file_of(path_, static_cast<std::uint32_t>(from)));
    for (std::size_t at = 0; at < bytes; at += kPiece) {
        const std::size_t length = std::min(kPiece, bytes - at);
        if (!receive(piece_.data(), length, from)) return false;
        if (opened) file.raw({reinterpret_cast<const char*>(piece_.data()), length}).flush();
    }
    if (!opened || !file.close())
        base::say("cannot keep the timeline of rank %d beside %s: %s", from, path_.c_str(), std::strerror(errno));
    return true;
}

void Ending::merge_files() {
    trace::Merged merged;
    std::string why;
    if (!trace::merge(path_, merged, why)) {
        base::say("cannot write the timeline to %s: %s; the processes' files stay beside it, for osc_info --merge",
                  path_.c_str(), why.c_str());
        return;
    }
    merged_ = 1;
    const auto files = static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), recorded));
    if (merged.found < files)
        base::say("the timeline in %s lacks %zu of %zu processes: %s", path_.c_str(), files - merged.found, files,
                  merged.left_out.empty() ? "their files are gone" : merged.left_out.front().c_str());
    if (merged.dropped > 0)
        base::say("the timeline in %s lacks %llu records of %llu, for which OSC_DEBUG=trace_mib=%ld had no room",
                  path_.c_str(), static_cast<unsigned long long>(merged.dropped),
                  static_cast<unsigned long long>(merged.dropped + merged.records), base::values().trace_mib);
}

// A file that was brought is removed by both processes, each in its own file system.
bool Ending::agree_to_clean_up() {
    if (!broadcast(&merged_, sizeof merged_)) return false;
    if (merged_ == 0) return true;
    if (mine_.run != 0) ::unlink(trace::file_of(path_, static_cast<std::uint32_t>(rank_)).c_str());
    for (std::size_t rank = 0; rank_ == 0 && rank < hidden_.size(); ++rank)
        if (hidden_[rank] != 0) ::unlink(trace::file_of(path_, static_cast<std::uint32_t>(rank)).c_str());
    return true;
}

bool Ending::run() {
    for (Window* window : windows_)
        (window->*g_libosc.describe_statistics)();
    if (!exchange() || !compare_clocks()) return false;
    g_libosc.trace_close();
    if (!exchange() || !ask_for_files()) return false;  // all files are closed
    for (int rank = 1; rank < processes_; ++rank) {
        if (hidden_[static_cast<std::size_t>(rank)] == 0) continue;
        if (rank_ == rank && !send_file()) return false;
        if (rank_ == 0 && !bring_file(rank)) return false;
    }
    if (rank_ == 0 && std::any_of(all_.begin(), all_.end(), recorded)) merge_files();
    return agree_to_clean_up();
}

}  // namespace

void finish_timeline() {
    const std::string differs = g_libosc.difference_in_job();
    if (!differs.empty()) {
        g_libosc.trace_close();
        base::say("OSC_TRACE: %s; osc_info --merge %s merges what was recorded", differs.c_str(),
                  base::values().trace.c_str());
        return;
    }
    auto ending = std::make_unique<Ending>();
    if (ending->run()) return;
    base::say("a process has died; osc_info --merge %s merges what was recorded", base::values().trace.c_str());
    static_cast<void>(ending.release());
}

}  // namespace osc
