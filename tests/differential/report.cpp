// Failure lines and the watchdog.
#include "report.h"

#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace diff {
namespace {

int describe(char* line, std::size_t bytes) {
    const Context& now = context();
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return std::snprintf(line, bytes, "differential: seed %llu round %d (%s, %s) rank %d: ", now.seed, now.round,
                         now.what, now.sync, rank);
}

int repeat(char* line, std::size_t bytes) {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return std::snprintf(line, bytes, "\n  again: mpiexec -n %d test_differential --seed %llu%s\n", size,
                         context().seed, context().host_safe ? " --host-safe" : "");
}

void say(const char* line) {
    if (::write(STDERR_FILENO, line, std::strlen(line)) < 0) ::_exit(4);
}

// Only for a job that is stuck anyway, so what a handler may not call does no harm that matters.
void expired(int) {
    char line[512];
    const int used = describe(line, sizeof line);
    const int more = std::snprintf(line + used, sizeof line - static_cast<std::size_t>(used), "no progress, given up");
    repeat(line + used + more, sizeof line - static_cast<std::size_t>(used + more));
    say(line);
    ::_exit(3);
}

}  // namespace

Context& context() {
    static Context now;
    return now;
}

void fail(const char* format, ...) {
    char line[1500];
    int used = describe(line, sizeof line - 200);
    va_list args;
    va_start(args, format);
    const int more = std::vsnprintf(line + used, sizeof line - 200 - static_cast<std::size_t>(used), format, args);
    va_end(args);
    used += more < 1100 ? more : 1100;
    repeat(line + used, 190);
    say(line);
    MPI_Abort(MPI_COMM_WORLD, 1);
    ::_exit(1);
}

void watch(unsigned seconds) {
    static const bool installed = [] {
        struct sigaction action = {};
        action.sa_handler = expired;
        return ::sigaction(SIGALRM, &action, nullptr) == 0;
    }();
    if (installed) ::alarm(seconds);
}

void check_call(int error, const char* what) {
    if (error == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    fail("%s failed: %s", what, text);
}

}  // namespace diff
