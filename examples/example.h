// What the case studies share: a session with MPI, options of the command line, random numbers, a display of progress,
// the peak of memory, and the verdict. Header only and plain C++17, so that `mpicxx gups.cpp` builds a program.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace example {

enum Status { kRight = 0, kWrong = 1, kUsage = 2 };

/// MPI from here to the end of the scope.
class Session {
  public:
    Session(int* argc, char*** argv) {
        MPI_Init(argc, argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() { MPI_Finalize(); }

    bool first() const { return rank == 0; }
    bool last() const { return rank == ranks - 1; }
    /// Whether `right` holds on all ranks.
    bool all(bool right) const {
        int mine = right ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
        return mine != 0;
    }
    std::int64_t sum(std::int64_t mine) const {
        MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return mine;
    }
    double sum(double mine) const {
        MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return mine;
    }
    std::int64_t most(std::int64_t mine) const {
        MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        return mine;
    }
    /// The time, in seconds, once all ranks have arrived.
    static double start_together() {
        MPI_Barrier(MPI_COMM_WORLD);
        return MPI_Wtime();
    }

    int rank = 0;
    int ranks = 1;
};

/// The options of one program: `--name value`, `--name=value` or `--flag`.
class Options {
  public:
    static constexpr int kGoOn = -1;

    explicit Options(const char* what) : what_(what) {}
    void number(const char* name, long& value, long least, long most, const char* help) {
        all_.push_back({name, help, &value, nullptr, nullptr, nullptr, least, most});
    }
    void flag(const char* name, bool& value, const char* help) {
        all_.push_back({name, help, nullptr, &value, nullptr, nullptr, 0, 0});
    }
    /// `choices`: words separated by |, or nullptr for any text.
    void word(const char* name, std::string& value, const char* choices, const char* help) {
        all_.push_back({name, help, nullptr, nullptr, &value, choices, 0, 0});
    }

    /// kGoOn, or the status to exit with: after --help, or after one line about a wrong argument.
    int parse(int argc, char** argv, const Session& session) const {
        const char* slash = std::strrchr(argv[0], '/');
        const std::string program = slash != nullptr ? slash + 1 : argv[0];
        for (int i = 1; i < argc; ++i) {
            if (std::strcmp(argv[i], "--help") == 0) {
                if (session.first()) help(program);
                return kRight;
            }
            const std::string wrong = read(argc, argv, i);
            if (wrong.empty()) continue;
            if (session.first())
                std::fprintf(stderr, "%s: %s; %s --help lists the options\n", program.c_str(), wrong.c_str(),
                             program.c_str());
            return kUsage;
        }
        return kGoOn;
    }

  private:
    struct Option {
        const char* name;
        const char* help;
        long* number;
        bool* flag;
        std::string* word;
        const char* choices;
        long least;
        long most;
    };

    // Reads the argument at `i` and its value behind it. What is wrong, or nothing.
    std::string read(int argc, char** argv, int& i) const {
        const std::string given = argv[i];
        const std::size_t equals = given.find('=');
        for (const Option& o : all_) {
            if (given.substr(0, equals) != std::string("--") + o.name) continue;
            if (o.flag != nullptr) {
                if (equals != std::string::npos) return given + ": takes no value";
                *o.flag = true;
                return "";
            }
            if (equals == std::string::npos && i + 1 == argc) return given + ": its value is missing";
            const std::string value = equals == std::string::npos ? argv[++i] : given.substr(equals + 1);
            return o.number != nullptr ? read_number(o, value) : read_word(o, value);
        }
        return given + ": no such option";
    }
    static std::string read_number(const Option& o, const std::string& value) {
        char* end = nullptr;
        errno = 0;
        const long number = std::strtol(value.c_str(), &end, 10);
        if (value.empty() || *end != '\0' || errno != 0 || number < o.least || number > o.most)
            return std::string("--") + o.name + " must be a number from " + std::to_string(o.least) + " to " +
                   std::to_string(o.most) + ", not '" + value + "'";
        *o.number = number;
        return "";
    }
    static std::string read_word(const Option& o, const std::string& value) {
        const std::string choices = std::string("|") + (o.choices != nullptr ? o.choices : "") + "|";
        if (value.empty() || (o.choices != nullptr && choices.find("|" + value + "|") == std::string::npos))
            return std::string("--") + o.name + " must be " + (o.choices != nullptr ? o.choices : "a name") +
                   ", not '" + value + "'";
        *o.word = value;
        return "";
    }
    void help(const std::string& program) const {
        std::printf("%s: %s\n", program.c_str(), what_);
        for (const Option& o : all_) {
            std::string line = std::string("  --") + o.name;
            std::string preset;
            if (o.number != nullptr) {
                line += " N";
                preset = std::to_string(*o.number);
            } else if (o.word != nullptr) {
                line += o.choices != nullptr ? std::string(" ") + o.choices : " NAME";
                preset = *o.word;
            }
            std::printf("%-34s %s%s\n", line.c_str(), o.help,
                        preset.empty() ? "" : (" (default " + preset + ")").c_str());
        }
    }

    const char* what_;
    std::vector<Option> all_;
};

/// A bijection of 64-bit numbers that scatters them (splitmix64); mix(seed + i) is the i-th random number.
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// Shows on rank 0's terminal how far a long run is: nothing in its first second, then five times a second.
class Progress {
  public:
    Progress(const Session& session, const char* what, std::int64_t total)
        : shows_(session.first() && isatty(STDERR_FILENO) != 0), what_(what), total_(total), next_(MPI_Wtime() + 1) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() {
        if (shown_) std::fprintf(stderr, "\r\033[K");
    }
    void at(std::int64_t done) {
        if (!shows_ || MPI_Wtime() < next_) return;
        next_ = MPI_Wtime() + 0.2;
        shown_ = true;
        std::fprintf(stderr, "\r%s: %lld of %lld", what_, static_cast<long long>(done), static_cast<long long>(total_));
        std::fflush(stderr);
    }

  private:
    bool shows_;
    bool shown_ = false;
    const char* what_;
    std::int64_t total_;
    double next_;
};

/// Loads and stores of this process's own window memory, from here to the end of the scope: an exclusive lock of itself
/// makes them right in both of MPI's memory models.
class OwnMemory {
  public:
    OwnMemory(const Session& session, MPI_Win win) : rank_(session.rank), win_(win) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, win_);
    }
    OwnMemory(const OwnMemory&) = delete;
    OwnMemory& operator=(const OwnMemory&) = delete;
    ~OwnMemory() { MPI_Win_unlock(rank_, win_); }

  private:
    int rank_;
    MPI_Win win_;
};

/// How far this process's resident memory rises above what it is when the object is made. Linux; elsewhere 0.
class PeakMemory {
  public:
    PeakMemory() {
        if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
            std::fputs("5", file);  // the peak starts again from here
            std::fclose(file);
        }
        at_start_ = kib("VmRSS:");
    }
    std::int64_t risen_kib() const {
        const std::int64_t peak = kib("VmHWM:");
        return peak > at_start_ ? peak - at_start_ : 0;
    }

  private:
    static std::int64_t kib(const char* name) {
        std::int64_t found = 0;
        if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
            char line[256];
            while (std::fgets(line, sizeof line, file) != nullptr) {
                if (std::strncmp(line, name, std::strlen(name)) == 0)
                    found = std::strtol(line + std::strlen(name), nullptr, 10);
            }
            std::fclose(file);
        }
        return found;
    }
    std::int64_t at_start_;
};

/// The bundles of a message-passing twin: one for each rank, all of them exchanged at once.
template <class Item>
class Bundles {
  public:
    explicit Bundles(int ranks) : to_(static_cast<std::size_t>(ranks)) {}
    void add(int rank, const Item& item) {
        to_[static_cast<std::size_t>(rank)].push_back(item);
        ++size_;
    }
    std::int64_t size() const { return size_; }

    /// Sends every bundle to its rank and returns what came, ordered by rank; collective. The bundles are empty then.
    const std::vector<Item>& exchange() {
        const std::size_t ranks = to_.size();
        constexpr int kBytes = static_cast<int>(sizeof(Item));
        counts_.assign(4 * ranks, 0);
        int* send = counts_.data();
        int* send_at = send + ranks;
        int* receive = send_at + ranks;
        int* receive_at = receive + ranks;
        outgoing_.clear();
        for (std::size_t r = 0; r < ranks; ++r) {
            send[r] = static_cast<int>(to_[r].size()) * kBytes;
            send_at[r] = static_cast<int>(outgoing_.size()) * kBytes;
            outgoing_.insert(outgoing_.end(), to_[r].begin(), to_[r].end());
            to_[r].clear();
        }
        MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
        for (std::size_t r = 1; r < ranks; ++r)
            receive_at[r] = receive_at[r - 1] + receive[r - 1];
        received_ = counts_;
        incoming_.resize(static_cast<std::size_t>((receive_at[ranks - 1] + receive[ranks - 1]) / kBytes));
        MPI_Alltoallv(outgoing_.data(), send, send_at, MPI_BYTE, incoming_.data(), receive, receive_at, MPI_BYTE,
                      MPI_COMM_WORLD);
        size_ = 0;
        return incoming_;
    }
    /// How many items of the last exchange came from a rank.
    std::int64_t from(int rank) const {
        return received_[2 * to_.size() + static_cast<std::size_t>(rank)] / static_cast<int>(sizeof(Item));
    }

  private:
    std::vector<std::vector<Item>> to_;
    std::vector<Item> outgoing_;
    std::vector<Item> incoming_;
    std::vector<int> counts_;
    std::vector<int> received_;
    std::int64_t size_ = 0;
};

inline const char* yes(bool right) {
    return right ? "yes" : "NO";
}

}  // namespace example
