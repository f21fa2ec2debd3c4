// What the two queues of a stream share, messages and direct transfers: the way to the target, the first fault, and a
// fixed number of places in flight with the requests that wait for one, in order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "base/fault.h"
#include "net/network_stack.h"
#include "shm/activity.h"

namespace osc::net {

/// The way of one window's operations from this process to one target.
struct StreamRoute {
    NetworkStack& network;
    Connection& to;
    std::uint64_t window;
    std::uint32_t me;
    std::uint32_t target;

    /// What a thread waits for while it waits for the target.
    shm::WaitScope scope() const { return {shm::WaitKind::Operations, window, me, target}; }
};

/// The first fault of a stream, kept until a call of the program returns it. Thread-safe.
class StreamFault {
  public:
    /// `target`: the rank that texts name.
    explicit StreamFault(std::uint32_t target) : target_(target) {}

    void note(Status status) {
        if (status == Status::Done) return;
        const Fault fault = net::fault_of(status, target_);
        const std::lock_guard lock(mutex_);
        first_.note(fault);
        noted_.store(true, std::memory_order_relaxed);
    }
    Fault take() {
        if (!noted_.load(std::memory_order_relaxed)) return Fault::None;
        const std::lock_guard lock(mutex_);
        noted_.store(false, std::memory_order_relaxed);
        return first_.take();
    }

  private:
    const std::uint32_t target_;
    std::mutex mutex_;
    base::FirstFault first_;
    std::atomic<bool> noted_{false};  // what ended with the fault frees its place afterwards, and take() looks later
};

/// `Place` has an atomic `serial`, which is 0 while the place is free; `Request` has a `serial` too. Serials grow in
/// the order of issue. Under the stream's mutex, unless said otherwise.
template <class Request, class Place, std::size_t kCount>
class StreamQueue {
  public:
    static constexpr std::size_t kPlaces = kCount;

    /// How many requests wait.
    std::size_t waiting() const { return waiting_.size(); }
    /// The serial of the last request that was issued.
    std::uint64_t issued() const { return serial_; }
    /// Whether all requests up to this serial are in flight, or ended. Thread-safe, like the next one.
    bool started(std::uint64_t serial) const { return waiting_from_.load(std::memory_order_seq_cst) > serial; }
    bool ended(std::uint64_t serial) const {
        if (!started(serial)) return false;
        for (const Place& place : places_) {
            const std::uint64_t its = place.serial.load(std::memory_order_seq_cst);
            if (its != 0 && its <= serial) return false;
        }
        return true;
    }

  protected:
    StreamQueue(const StreamRoute& route, StreamFault& faults) : route_(route), faults_(faults) {}
    ~StreamQueue() = default;

    /// A free place; null if all are taken.
    Place* free() {
        for (Place& place : places_)
            if (place.serial.load(std::memory_order_seq_cst) == 0) return &place;
        return nullptr;
    }
    void push(Request&& request) {
        base::insist([&] { waiting_.push_back(std::move(request)); });
        publish();
    }
    void pop() {
        waiting_.pop_front();
        publish();
    }

    const StreamRoute route_;
    StreamFault& faults_;
    std::array<Place, kPlaces> places_;
    std::deque<Request> waiting_;
    std::uint64_t serial_ = 0;  // see issued()

  private:
    void publish() {
        waiting_from_.store(waiting_.empty() ? kNone : waiting_.front().serial, std::memory_order_seq_cst);
    }

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    // The serial of the first in waiting_. A request has its place before it leaves waiting_, so a thread that reads
    // this first misses none.
    std::atomic<std::uint64_t> waiting_from_{kNone};
};

}  // namespace osc::net
