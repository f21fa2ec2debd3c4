// What a stream issues, in order: a fixed number of places in flight, and requests that wait for one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "net/origin/stream_fault.h"
#include "net/origin/stream_route.h"

namespace osc::net {

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
        return started(serial) && std::ranges::all_of(places_, [&](const Place& place) {
                   const std::uint64_t its = place.serial.load(std::memory_order_seq_cst);
                   return its == 0 || its > serial;
               });
    }

  protected:
    StreamQueue(const StreamRoute& route, StreamFault& faults) : route_(route), faults_(faults) {}
    ~StreamQueue() = default;

    /// A free place; null if all are taken.
    Place* free() {
        const auto found = std::ranges::find_if(
            places_, [](const Place& place) { return place.serial.load(std::memory_order_seq_cst) == 0; });
        return found == places_.end() ? nullptr : &*found;
    }
    std::size_t taken() const {
        return static_cast<std::size_t>(std::ranges::count_if(
            places_, [](const Place& place) { return place.serial.load(std::memory_order_relaxed) != 0; }));
    }
    /// Whether a request can leave the queue: over an ended connection it needs no place.
    bool has_room() { return route_.to.ended() || free() != nullptr; }
    /// The serial of a request that is issued now.
    std::uint64_t next_serial() { return ++serial_; }
    void push(Request&& request) {
        waiting_.push_back(std::move(request));
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

  private:
    void publish() {
        waiting_from_.store(waiting_.empty() ? kNone : waiting_.front().serial, std::memory_order_seq_cst);
    }

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t serial_ = 0;
    // The serial of the first in waiting_. A request has its place before it leaves waiting_, so a thread that reads
    // this first misses none.
    std::atomic<std::uint64_t> waiting_from_{kNone};
};

}  // namespace osc::net
