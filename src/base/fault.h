// The failure of a call: a kind, which the window room turns into the host's error class, and one line that names the
// violated rule. The rooms that do not know MPI return these.
#pragma once

#include <cstddef>
#include <new>

namespace osc {

enum class Fault {
    None,
    Arg,
    Assert,
    Attach,
    AttachRefused,  // libosc cannot attach the memory, but the program may ask for it
    Base,
    Buffer,
    Count,
    Dead,  // a process that this call needs has died, or the connection to it is lost
    Disp,
    Flavor,
    Group,
    Info,
    LockType,
    NoMem,
    Op,
    Other,
    Range,
    Rank,
    Shared,
    Size,
    Sync,
    Truncate,
    Type,
    Win,
};

namespace base {

inline constexpr std::size_t kLongestFault = 400;  // of a line, with its end

/// Keeps the line for this thread and returns `fault`, so that a check reads `return fail(Fault::Rank, ...)`.
Fault fail(Fault fault, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// The line of this thread's last fault.
const char* fault_text();

/// Fault::NoMem, with its line.
Fault out_of_memory();

/// The fault of `call`, also if an allocation in it fails. `call` returns a Fault.
template <class F>
Fault attempt(F&& call) {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
}

/// After a failed allocation in insist(): pauses. Ends the process when there has been no memory for some seconds.
void await_memory(int tries, const std::bad_alloc& failure);

/// Calls `step` again until no allocation in it fails. For steps, which can be repeated, of a protocol that cannot be
/// left in the middle: other processes await its end.
template <class F>
auto insist(F&& step) {
    for (int tries = 1;; ++tries) {
        try {
            return step();
        } catch (const std::bad_alloc& failure) {
            await_memory(tries, failure);
        }
    }
}

}  // namespace base
}  // namespace osc
