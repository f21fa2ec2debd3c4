// The progress policy: which thread polls the network, and for how long. Times are in ns.
//
//   situation                         which thread polls           latency              cost
//   a thread waits in libosc          that one; the network        immediate            its core, for kRounds polls, or
//                                     thread parks                                      kQuiet without an event, or
//                                                                                       kPolling
//   it waits longer                   the network thread           two wake-ups         none
//   a thread waits in the host        that one, by the hook        immediate            a poll per poll of the host,
//                                     (host_polls)                                      until kWarm find nothing
//   the program computes              the network thread           a wake-up            kThreadSpin after each event
//   it has just stopped polling       the network thread, when     300 us; kParkLongest before that: a system call
//                                     its park ends                if no peer waited    per park
//                                                                  lately
//   it polls now and then             both                         as when it computes  a poll per poll of the host
//   a peer announced direct accesses  the network thread, or the   a poll               a core, kDirectHint after each
//                                     thread that waits                                 announcement
//   the host has no hook              the network thread           a wake-up            as when it computes
//
// docs/NETWORK.md ("The thread") has the rest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace osc::progress {

struct Policy {
    // The network thread.
    static constexpr std::int64_t kThreadSpin = 20000;     // polls so long after an event: one message brings the next
    static constexpr std::int64_t kThreadYields = 200000;  // parks if an application thread polled so recently
    static constexpr int kSleepMs = 1000;                  // longest sleep
    static constexpr int kRetrySleepMs = 1;                // the same while something awaits a change without an event
    static constexpr std::int64_t kPeerCheck = 200000000;  // between searches for dead peers

    // Its park, which polling threads prolong. A process that stops polling is not served before the park ends, so a
    // park lasts hardly longer than the polling has; beyond kParkLong it grows slowly: on a virtual machine setting a
    // timer below a millisecond takes 22 us (1.5 us for 2 ms), 4 % of it. Where parks have ended without a peer that
    // waited they begin longer: a program that exchanges data every millisecond then never has the thread on its core.
    static constexpr std::int64_t kParkShort = 100000;
    static constexpr std::int64_t kParkLong = 1000000;
    static constexpr std::int64_t kParkLongest = 2000000;
    // A thread that pauses longer than this between two polls does something else meanwhile. Includes an interruption
    // by the network thread.
    static constexpr std::int64_t kPause = 60000;

    // wait(): so many polls, or so many without an event, or so long, before the waiting thread sleeps. Where each
    // yield leaves the core to a thread that computes, few polls take long, and a sleeping thread gets the core sooner.
    static constexpr int kRounds = 20000;
    static constexpr int kQuiet = 2000;
    static constexpr std::int64_t kPolling = 20000000;
    static constexpr int kHostEvery = 16;  // polls between two calls of the host's progress (invariant I3)

    // host_polls(): the host's loops poll the network for so many calls without an event, then leave it to the thread.
    static constexpr int kWarm = 500;
    static constexpr int kLongWarm = 5000;  // the same after a peer has announced direct accesses
    // With so many calls without a pause before it, a call means that the host waits.
    static constexpr int kManyPolls = 16;
    static constexpr int kDirectPolls = 8;  // polls per call while peers access memory directly

    // Direct accesses. The target of accesses that a provider performs in software must poll, and no event makes it.
    static constexpr std::int64_t kDirectHint = 2000000;              // a target polls so long after an announcement
    static constexpr std::int64_t kHintInterval = kDirectHint / 2;    // between two announcements to one target
    static constexpr std::size_t kHintBytes = std::size_t{32} << 10;  // a single access from this size on is announced
    static constexpr std::uint32_t kTransfersPerPoll = 8;  // a thread that streams reaps several ends at once
};

}  // namespace osc::progress
