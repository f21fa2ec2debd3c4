// Owns the process's wait policy.
#include "transport/shm/wait.h"

namespace osc::shm {

WaitPolicy& wait_policy() {
    static WaitPolicy policy;
    return policy;
}

}  // namespace osc::shm
