// The harness's main(): runs the cases, sums the failures of all ranks, and proves by the counters of libosc and of the
// spy library below it that no RMA data or synchronisation call was left to the host.
#include "harness.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "osc/osc.h"

// Absent when the host runs alone.
#pragma weak osc_served
#pragma weak osc_forwarded
#pragma weak osc_counter
extern "C" unsigned long long spy_count(const char* mpi_function) __attribute__((weak));

namespace osct {
namespace {

struct Case {
    std::string program;
    const char* name;
    void (*body)();
};

constexpr int kShownPerCase = 10;
int world_rank = 0;
int world_size = 1;
std::vector<int> node_of;  // of each rank of MPI_COMM_WORLD, as the host sees it
long failures = 0;
int shown = 0;
const char* current = "start";
bool skipped = false;
bool left_to_others = false;

std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}
std::vector<Program>& programs() {
    static std::vector<Program> all;
    return all;
}
const Program* chosen = nullptr;
int level = MPI_THREAD_SINGLE;

// Everything that moves data or synchronises a window; none of it may reach the host.
#define OSC_ENTRY(kind, name, parameters, arguments) OSCT_NAME_##kind(name)
#define OSCT_NAME_Data(name) "MPI_" #name,
#define OSCT_NAME_Sync OSCT_NAME_Data
#define OSCT_NAME_Window(name)
#define OSCT_NAME_Comm(name)
#define OSCT_NAME_Query(name)
const char* const kDataAndSync[] = {
    "MPI_Win_attach",
    "MPI_Win_detach",
#include "api/entries.def"
};

void prove_served() {
    current = "served by libosc";
    shown = 0;
    if (!served_by_osc()) {
        const char* preload = std::getenv("LD_PRELOAD");
        const bool disabled = std::getenv("OSC_DISABLE") != nullptr;
        if (preload && std::strstr(preload, "libosc.so") && !disabled) fail(__FILE__, __LINE__, "libosc is not loaded");
        return;
    }
    for (const std::string& name : chosen->uses) {
        unsigned long long served = osc_served(name.c_str());
        MPI_Allreduce(MPI_IN_PLACE, &served, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        // Some cases need more ranks or a single node; other runs check that libosc served their calls.
        if (served == 0 && world_rank == 0 && !left_to_others)
            fail(__FILE__, __LINE__, name + " was served 0 times by libosc");
    }
    for (const char* name : kDataAndSync) {
        if (osc_forwarded(name) != 0) fail(__FILE__, __LINE__, std::string(name) + " was forwarded to the host");
        if (spy_count && spy_count(name) != 0)
            fail(__FILE__, __LINE__,
                 std::string(name) + " reached the host " + std::to_string(spy_count(name)) + " times");
    }
}

bool selected(const char* name, const std::vector<std::string>& wanted) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

// Takes the words that choose a program off the arguments. False: no such program.
bool choose(std::vector<std::string>& arguments) {
    std::string name, threads;
    if (programs().size() > 1 && !arguments.empty()) {
        name = arguments.front();
        arguments.erase(arguments.begin());
        if (const std::size_t colon = name.find(':'); colon != std::string::npos) {
            threads = name.substr(colon + 1);
            name.resize(colon);
        }
    }
    for (const Program& program : programs())
        if (programs().size() == 1 || program.name == name) chosen = &program;
    if (chosen == nullptr) return false;
    level = threads == "multiple"     ? MPI_THREAD_MULTIPLE
            : threads == "serialized" ? MPI_THREAD_SERIALIZED
            : threads == "single"     ? MPI_THREAD_SINGLE
                                      : chosen->thread_level;
    return true;
}

void find_nodes() {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int first = world_rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    node_of.resize(static_cast<std::size_t>(world_size));
    MPI_Allgather(&first, 1, MPI_INT, node_of.data(), 1, MPI_INT, MPI_COMM_WORLD);
}

void run_case(const Case& test) {
    current = test.name;
    shown = 0;
    skipped = false;
    MPI_Barrier(MPI_COMM_WORLD);
    const long before = failures;
    const double begin = now();
    test.body();
    MPI_Barrier(MPI_COMM_WORLD);
    long here = failures - before;
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (world_rank == 0) {
        const char* verdict = here ? "FAILED" : skipped ? "skipped" : "ok";
        std::printf("%-8s %s (%.3f s)\n", verdict, test.name, now() - begin);
        std::fflush(stdout);
    }
}

}  // namespace

Program::Program(const char* program_name, int level_of_threads, std::initializer_list<std::string> calls)
    : name(program_name), thread_level(level_of_threads), uses(calls) {
    programs().push_back(*this);
}
int thread_level() {
    return level;
}

Registrar::Registrar(const char* program, const char* name, void (*body)()) {
    cases().push_back({program, name, body});
}

int rank() {
    return world_rank;
}
int size() {
    return world_size;
}
MPI_Group group_of(const std::vector<int>& ranks) {
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group);
    MPI_Group_free(&world);
    return group;
}
bool same_node(int peer) {
    const long nodes = std::min<long>(std::atol(debug_setting("fake_nodes").c_str()), size());
    if (nodes < 2) return node_of[peer] == node_of[rank()];
    return peer * nodes / size() == rank() * nodes / size();
}
bool on_one_node() {
    for (int peer = 0; peer < size(); ++peer)
        if (!same_node(peer)) return false;
    return true;
}
std::string info_value(MPI_Win win, const char* key) {
    MPI_Info info;
    CHECK_OK(MPI_Win_get_info(win, &info));
    char text[128] = "";
    int found = 0;
    MPI_Info_get(info, key, sizeof text - 1, text, &found);
    MPI_Info_free(&info);
    return found ? text : "(none)";
}
bool served_by_osc() {
    return osc_served != nullptr && std::getenv("OSC_DISABLE") == nullptr;
}

bool over_openmpi() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    return std::strstr(version, "Open MPI") != nullptr;
}

bool full() {
    const char* value = std::getenv("OSC_TEST_FULL");
    return value && *value && *value != '0';
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void compute(double seconds) {
    const double end = now() + seconds;
    while (now() < end) {
    }
}

void while_one_computes(int busy, const std::function<void()>& f) {
    // Each rank adds a byte to a file, which all read without MPI: the busy one when it has left MPI, then the others
    // when they have run f().
    int owner = static_cast<int>(::getpid());
    MPI_Bcast(&owner, 1, MPI_INT, 0, MPI_COMM_WORLD);
    const std::string path = "/tmp/osc_test." + std::to_string(owner);
    const auto add_byte = [&] {
        if (std::FILE* const file = std::fopen(path.c_str(), "a")) {
            std::fputc('.', file);
            std::fclose(file);
        }
    };
    const auto await_bytes = [&](int bytes) {
        struct stat all {};
        for (const double end = now() + 10; ::stat(path.c_str(), &all) != 0 || all.st_size < bytes;) {
            compute(0.001);
            if (now() > end) return fail(__FILE__, __LINE__, "the other ranks wait for one that computes");
        }
    };
    if (rank() == busy) {
        add_byte();
        await_bytes(size());
    } else {
        await_bytes(1);
        f();
        add_byte();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) ::unlink(path.c_str());
    MPI_Barrier(MPI_COMM_WORLD);
}

long resident_kib() {
    long pages = 0, resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
        std::fclose(file);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int open_descriptors() {
    int count = 0;
    if (DIR* dir = opendir("/proc/self/fd")) {
        while (readdir(dir))
            ++count;
        closedir(dir);
    }
    return count;
}

long long counter(const char* name) {
    unsigned long long value = 0;
    if (osc_counter == nullptr || osc_counter(name, &value) != 0) return -1;
    return static_cast<long long>(value);
}

void fail(const char* file, int line, const std::string& what) {
    ++failures;
    if (++shown > kShownPerCase) return;
    const char* slash = std::strrchr(file, '/');
    std::fprintf(stderr, "%s:%d: rank %d of %d, case %s: %s\n", slash ? slash + 1 : file, line, world_rank, world_size,
                 current, what.c_str());
    std::fflush(stderr);
}

void note_skip(const char* why) {
    const bool first = !std::exchange(skipped, true);
    if (std::strstr(why, "size()") || std::strstr(why, "shares_memory")) left_to_others = true;
    if (world_rank == 0 && first) std::printf("         %s: not run: %s\n", current, why);
}

int error_class(int error) {
    int value = error;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &value);
    return value;
}

std::string error_class_name(int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    return "class " + std::to_string(error_class(error)) + " (" + text + ")";
}

// The process's first thread ends after the first case: libosc goes on to reach a process without it. Its memory map is
// empty then.
std::atomic<bool> first_thread_ends{false};

void end_first_thread() {
    first_thread_ends = true;
    first_thread_ends.notify_one();
    while (std::ifstream("/proc/self/maps").peek() != std::ifstream::traits_type::eof())
        usleep(1000);
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace osct

static int run(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!osct::choose(arguments)) {
        std::fprintf(stderr, "usage: %s PROGRAM[:THREADS] [CASE...], where PROGRAM is one of", argv[0]);
        for (const auto& program : osct::programs())
            std::fprintf(stderr, " %s", program.name.c_str());
        std::fprintf(stderr, "\n");
        return 2;
    }
    int provided = 0;
    MPI_Init_thread(&argc, &argv, osct::level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &osct::world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &osct::world_size);
    osct::find_nodes();
    int ran = 0;
    if (provided < osct::level) {
        osct::fail(__FILE__, __LINE__, "the host does not provide the thread level");
    } else {
        for (const auto& test : osct::cases()) {
            if (test.program != osct::chosen->name || !osct::selected(test.name, arguments)) continue;
            osct::run_case(test);
            if (++ran == 1 && std::getenv("TEST_FIRST_THREAD_ENDS") != nullptr) osct::end_first_thread();
        }
    }
    if (ran == 0) osct::fail(__FILE__, __LINE__, "no case selected");
    if (arguments.empty()) osct::prove_served();
    long total = osct::failures;
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (osct::world_rank == 0) {
        std::printf("%s: %d cases, %ld failures, %d ranks, %s\n", total ? "FAILED" : "PASSED", ran, total,
                    osct::world_size, osct::served_by_osc() ? "libosc" : "host MPI alone");
    }
    MPI_Finalize();
    return total != 0;
}

int main(int argc, char** argv) {
    if (std::getenv("TEST_FIRST_THREAD_ENDS") == nullptr) return run(argc, argv);
    std::thread([=] { std::exit(run(argc, argv)); }).detach();
    osct::first_thread_ends.wait(false);
    ::pthread_exit(nullptr);
}
