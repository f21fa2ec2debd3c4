// The report of a failure: one line with the seed and the round, the difference, and a command that reproduces it.
#pragma once

namespace diff {

struct Context {
    unsigned long long seed = 0;
    int round = -1;
    const char* what = "";  // flavour of the window
    const char* sync = "";
    bool host_safe = false;
};
Context& context();

/// Prints and ends the job.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Ends the job with a failure unless called again within so many seconds; 0 ends the watch.
void watch(unsigned seconds);

/// An MPI call that must succeed.
void check_call(int error, const char* what);

}  // namespace diff
