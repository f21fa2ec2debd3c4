// A program that has closed its standard streams before its first window, another set of them on each rank, and then
// writes to them: no descriptor of libosc takes their numbers, and the windows' memory stays right. Between nodes,
// where libfabric opens sockets at any time, /dev/null has these numbers. The case must be the first one of its process
// that makes a window.
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_create", "MPI_Win_create_dynamic",
             "MPI_Win_allocate_shared", "MPI_Win_free", "MPI_Put", "MPI_Accumulate", "MPI_Win_fence", "MPI_Win_lock",
             "MPI_Win_unlock", "MPI_Alloc_mem", "MPI_Free_mem")

namespace {

constexpr std::size_t kWords = 16384;
constexpr int kRounds = 5;
constexpr int kStreams = 3;

// What each rank in turn closes: as a daemon, as a rank that is silenced, and mixtures.
constexpr std::array<std::array<bool, kStreams>, 5> kClosed = {
    {{true, true, true}, {false, true, false}, {true, false, true}, {false, true, true}, {true, false, false}}};

std::map<int, std::string> open_files() {
    std::map<int, std::string> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
    CHECK(folder != nullptr);
    if (folder == nullptr) return found;
    while (const dirent* const entry = ::readdir(folder.get())) {
        const int number = std::atoi(entry->d_name);
        char file[256] = "";
        const std::string link = std::string("/proc/self/fd/") + entry->d_name;
        if (entry->d_name[0] != '.' && number != ::dirfd(folder.get()) &&
            ::readlink(link.c_str(), file, sizeof file - 1) > 0)
            found[number] = file;
    }
    return found;
}

// Closes streams; the destructor opens them again, for the harness.
class ClosedStreams {
  public:
    explicit ClosedStreams(const std::array<bool, kStreams>& which) {
        std::fflush(nullptr);
        for (int stream = 0; stream < kStreams; ++stream) {
            kept_[stream] = which[static_cast<std::size_t>(stream)] ? ::fcntl(stream, F_DUPFD_CLOEXEC, 40) : -1;
            if (kept_[stream] >= 0) ::close(stream);
        }
    }
    ~ClosedStreams() {
        for (int stream = 0; stream < kStreams; ++stream) {
            if (kept_[stream] < 0) continue;
            ::dup2(kept_[stream], stream);
            ::close(kept_[stream]);
        }
    }
    ClosedStreams(const ClosedStreams&) = delete;
    ClosedStreams& operator=(const ClosedStreams&) = delete;
    bool closed(int stream) const { return kept_[stream] >= 0; }

  private:
    int kept_[kStreams] = {};
};

bool between_nodes() {
    return !osct::debug_setting("fake_nodes").empty();
}

// A number that is still closed refuses the text.
void write_to(const ClosedStreams& streams) {
    const std::string text(4096, 'J');
    for (int stream = 1; stream < kStreams; ++stream)
        if (streams.closed(stream))
            CHECK(::write(stream, text.data(), text.size()) < 0 ? errno == EBADF : between_nodes());
}

// A child inherits only what is not close-on-exec.
void execute_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        ::execl("/bin/sh", "sh", "-c", "case $(ls -l /proc/self/fd) in *memfd:osc*) exit 1;; esac; exit 0",
                static_cast<char*>(nullptr));
        ::_exit(2);
    }
    int status = -1;
    CHECK(child > 0 && ::waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

void use(const Window& window, int round) {
    const long word = 100 * round + rank();
    const long one = 1;
    const int to = right();
    CHECK_OK(MPI_Win_fence(0, window));
    CHECK_OK(MPI_Put(&word, 1, MPI_LONG, to, window.at(to, 0), 1, MPI_LONG, window));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, to, window.at(to, 8), 1, MPI_LONG, MPI_SUM, window));
    CHECK_OK(MPI_Win_unlock(to, window));
}

bool is_listed(const std::map<int, std::string>& files, const char* what) {
    for (const auto& [number, file] : files)
        if (file.find(what) != std::string::npos) return true;
    return false;
}

}  // namespace

CASE(closed_streams_stay_closed) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::map<int, std::string> before = open_files();
    {
        const ClosedStreams streams(kClosed[static_cast<std::size_t>(rank()) % kClosed.size()]);
        long* memory = nullptr;
        CHECK_OK(MPI_Alloc_mem(kWords * sizeof(long), MPI_INFO_NULL, &memory));
        for (std::size_t i = 0; i < kWords; ++i)
            memory[i] = static_cast<long>(i);
        std::vector<std::unique_ptr<Window>> windows;
        for (const WindowKind kind : kAllWindowKinds)
            if (kind != WindowKind::Shared || osct::shares_memory(MPI_COMM_WORLD))
                windows.push_back(std::make_unique<Window>(kind, kWords * sizeof(long)));
        for (int round = 0; round < kRounds; ++round) {
            for (const auto& window : windows)
                use(*window, round);
            write_to(streams);
        }
        execute_child();
        MPI_Barrier(MPI_COMM_WORLD);
        for (const auto& window : windows) {
            const long* const words = window->base<long>();
            CHECK_EQ(words[0], 100 * (kRounds - 1) + left());
            CHECK_EQ(words[1], kRounds);
            CHECK_ALL(words + 2, kWords - 2, [](std::size_t) { return 0; });
        }
        CHECK_ALL(memory, kWords, [](std::size_t i) { return i; });

        const std::map<int, std::string> files = open_files();
        CHECK(!osct::served_by_osc() || is_listed(files, "memfd:osc"));
        for (const auto& [number, file] : files) {
            if (number < kStreams && streams.closed(number) && !(between_nodes() && file == "/dev/null"))
                osct::fail(__FILE__, __LINE__, "descriptor " + std::to_string(number) + " is " + file);
            // Sockets and sets of events may be libfabric's.
            const bool is_new =
                before.count(number) == 0 &&
                (!between_nodes() || (file.find("socket") == file.npos && file.find("eventpoll") == file.npos));
            if (is_new && (::fcntl(number, F_GETFD) & FD_CLOEXEC) == 0)
                osct::fail(__FILE__, __LINE__, "descriptor " + std::to_string(number) + " outlives exec: " + file);
        }
        windows.clear();
        CHECK_OK(MPI_Free_mem(memory));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
