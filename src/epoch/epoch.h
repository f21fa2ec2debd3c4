// What is legal now, and the synchronisation calls: each checks the state of the window's epochs, changes it, and has
// the sync room do the work. Collective and passive calls alike return a Fault; diag::fault_text() says the rule.
// Thread-safe where the window is (MPI_THREAD_MULTIPLE). Sections are those of the MPI 4.1 report.
#pragma once

#include <span>

#include "epoch/core.h"

namespace osc::epoch {

/// The asserts of the standard, free of the host's constants.
enum Assert : unsigned {
    kNoCheck = 1,
    kNoStore = 2,
    kNoPut = 4,
    kNoPrecede = 8,
    kNoSucceed = 16,
};

/// Lets operations go to `peer` in the epoch that is open, taking the lock or awaiting the post that this needs.
Fault open_target(Core& core, Peer& peer);

/// In a start epoch: awaits the post of a target of the group, once.
Fault open_started(Core& core, StateGuard& guard, Peer& peer);

Fault fence(Core& core, unsigned asserts);                                            // 12.5.1
Fault post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts);     // 12.5.2
Fault start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts);    // 12.5.2
Fault complete(Core& core);                                                           // 12.5.2
Fault wait(Core& core);                                                               // 12.5.2
Fault test(Core& core, bool& done);                                                   // 12.5.2
Fault lock(Core& core, std::uint32_t target, sync::LockKind kind, unsigned asserts);  // 12.5.3
Fault unlock(Core& core, std::uint32_t target);                                       // 12.5.3
Fault lock_all(Core& core, unsigned asserts);                                         // 12.5.3
Fault unlock_all(Core& core);                                                         // 12.5.3
/// All four flush calls and sync (12.5.4): on a node operations are complete when they return, what is left is order.
Fault flush(Core& core, std::uint32_t target);
Fault flush_all(Core& core);
/// Whether the window may be freed now (12.2.5).
Fault may_free(Core& core);

/// After the user got pointers to other processes' memory: an open lock_all must hold their locks from now on, because
/// loads and stores through the pointers are not seen by libosc.
Fault pointers_given(Core& core);

/// Orders everything this thread has done before against everything after, for every observer. A read-modify-write
/// rather than a fence because ThreadSanitizer understands it.
inline void full_order() {
    std::atomic<int> local{0};
    local.exchange(1, std::memory_order_seq_cst);
}

}  // namespace osc::epoch
