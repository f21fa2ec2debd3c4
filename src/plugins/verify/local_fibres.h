// Finds loads and stores of the buffers of operations that are not complete, where the program has ThreadSanitizer's
// runtime (thread_sanitizer.h): an operation accesses its buffers in a fibre, which begins with its call and which the
// call passes that completes the operation at this process.
//
// Operations that complete together share a fibre. The fibre is a later group's once its group has completed.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "plugins/verify/events.h"
#include "plugins/verify/thread_sanitizer.h"

namespace osc::check {

/// Part of a ledger, which calls it, in an IgnoredScope.
class LocalFibres {
  public:
    void on_operation(const Operation& operation);
    void before(const Synchronisation& call);

  private:
    struct Group {
        Fibre fibre{"buffers of RMA operations"};
        SyncPoint began, ended;
    };
    Group* group_of(const Operation& operation);

    // As LocalBuffers: by target, and of an operation with a request by its number, else 0.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::unique_ptr<Group>> groups_;
    std::vector<std::unique_ptr<Group>> spare_;
};

}  // namespace osc::check
