// The failure of a call: a kind, which the window room turns into the host's error class, and one line that names the
// violated rule. The rooms that do not know MPI return these.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace osc {

enum class Fault {
    None,
#define OSC_FAULT_KIND(id, error) id,
#include "base/faults.def"
};

namespace base {

inline constexpr std::size_t kLongestFault = 400;  // of a line, with its end

/// Keeps the line for this thread and returns `fault`, so that a check reads `return fail(Fault::Rank, ...)`.
Fault fail(Fault fault, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// The line of this thread's last fault.
const char* fault_text();

/// Fault::NoMem, with its line.
Fault out_of_memory();

/// The fault of `call`, also if an allocation in it fails. `call` returns a Fault, or nothing.
template <class F>
Fault attempt(F&& call) {
    try {
        if constexpr (std::is_same_v<decltype(call()), Fault>) return call();
        call();
        return Fault::None;
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

/// The first fault of several steps, of which later ones may fail too.
class FirstFault {
  public:
    /// Keeps the fault that a call of this thread has just returned, with its line, if it is the first one.
    void note(Fault fault) {
        if (fault != Fault::None && !is_set()) keep(fault);
    }
    bool is_set() const { return fault_ != Fault::None; }
    /// Returns the fault, once, as if it had just arisen.
    Fault take() { return is_set() ? raise() : Fault::None; }

  private:
    void keep(Fault fault);
    Fault raise();

    Fault fault_ = Fault::None;
    char text_[kLongestFault];  // once there is a fault; an allocation could fail
};

}  // namespace base
}  // namespace osc
