// The behaviours of libfabric's providers that a fake fabric can show, and the errors that it can make on purpose.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/endpoint.h"
#include "op/types.h"

namespace osc::fake {

/// Errors that no provider may make: a test that runs over a fabric with one of them must fail.
enum class Flaw {
    None,
    SwapsMessages,    // of one sender to one receiver
    LosesMessages,    // a message never arrives
    RepeatsMessages,  // a message arrives twice
    DamagesMessages,  // a message arrives with one bit changed
    EndsWritesEarly,  // a write ends before its data is in the target's memory
    EndsReadsEarly,   // a read ends before its data has arrived
    EndsSendsEarly,   // a send ends before its data has left the sender's buffer
    SplitsAtomics,    // another atomic on the same elements executes between the load and the store of one
};

constexpr const char* name_of(Flaw flaw) {
    constexpr const char* kNames[] = {
        "None",           "SwapsMessages",  "LosesMessages", "RepeatsMessages", "DamagesMessages", "EndsWritesEarly",
        "EndsReadsEarly", "EndsSendsEarly", "SplitsAtomics"};
    return kNames[static_cast<int>(flaw)];
}

/// The outcome of operations to a dead process.
enum class DeadPeer {
    Errors,  // they end with an error
    Full,    // their posts return Again forever, as with tcp;ofi_rxm; earlier ones never end
    Silent,  // their posts succeed, and they never end
};

/// All times are in polls of any endpoint of the fabric. All choices follow from the seed and from the order in which
/// threads enter the fabric: with one thread a run repeats exactly.
struct Behaviour {
    std::uint64_t seed = 1;

    // Registration. FI_MR_LOCAL, FI_MR_ALLOCATED and FI_MR_ENDPOINT lie below this interface: see fake_libfabric.
    bool registers = true;                          // false: no memory can be exposed, messages carry all data
    bool virtual_addresses = true;                  // FI_MR_VIRT_ADDR: peers give addresses; else offsets
    bool provider_keys = false;                     // FI_MR_PROV_KEY: keys count up from 1; else they are random
    std::size_t registrations = ~std::size_t{0};    // the most at a time of one endpoint
    std::size_t largest_message = ~std::size_t{0};  // the memory of a longer one cannot be registered

    // Completion and progress.
    bool transmit_complete = true;    // a send ends when its buffer is free; else when it has arrived
    bool automatic_progress = false;  // every poll of any endpoint moves data; else the target's own polls do
    bool posts_move_data = false;     // a posting thread may move arriving data, like a polling one

    // Time and order.
    unsigned delay = 6;      // longest, of each step of an operation
    unsigned splits = 3;     // one of so many writes arrives in two parts; 0: none
    unsigned burst = 16;     // the most events of one poll
    std::size_t queue = 64;  // operations of one endpoint in flight; a further post returns Again
    unsigned full = 50;      // so many of 1,000 posts return Again at random
    unsigned errors = 0;     // so many of 1,000,000 operations end with an error and have no effect

    // Properties of the endpoint.
    bool atomics = true;
    std::size_t longest_row = 256;                 // elements of one atomic
    Op lacking = Op::None;                         // no atomic has this operation
    std::size_t buffer = fabric::kLargestMessage;  // the longest message
    std::size_t largest_copied = 128;
    std::size_t largest_transfer = std::size_t{1} << 30;
    std::size_t direct_from = 4096;

    DeadPeer dead = DeadPeer::Errors;
    Flaw flaw = Flaw::None;
    unsigned flawed = 200;  // one of so many operations of the kind
};

}  // namespace osc::fake
