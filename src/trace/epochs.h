// Finds the epochs of a process's windows in its synchronisation calls (MPI 4.1 section 12.5).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/record.h"

namespace osc::trace {

/// An epoch: from the begin of the call that opened it to the end of the call that closed it. Where one call closes an
/// epoch and opens another, the second begins with the end of the first.
struct Epoch {
    enum class Type : std::uint8_t { Fence, Access, Exposure, Lock, LockAll };
    Type type = Type::Fence;
    std::uint16_t window = 0;
    std::uint32_t target = kNoTarget;  // of a lock
    bool exclusive = false;
    bool closed = true;  // false: no call closed it before the records ended
    std::uint64_t begin = 0, end = 0;
};

/// Takes the calls of one process in the order of their ends.
class Epochs {
  public:
    void add(const Event& call);
    /// All epochs; those that are open end at `end`.
    std::vector<Epoch> finish(std::uint64_t end);

  private:
    using Key = std::pair<std::uint16_t, std::uint64_t>;  // window; type and target
    void open(Epoch::Type type, const Event& call, std::uint64_t at, bool exclusive = false);
    bool close(Epoch::Type type, const Event& call, std::uint64_t at);

    std::map<Key, Epoch> open_;
    std::vector<Epoch> closed_;
};

/// "fence epoch", "exclusive lock epoch at 3".
std::string name_of(const Epoch& epoch);

}  // namespace osc::trace
