// Executing requests, and going on with those that waited.
#include "agent/hosted.h"

#include <algorithm>
#include <utility>

#include "sync/pscw.h"
#include "transport/direct/direct.h"

namespace osc::net {
namespace {

bool inside(const Serving& window, const Record& record) {
    const auto disp = static_cast<std::uint64_t>(record.disp);
    return record.disp >= 0 && disp <= window.size && record.bytes <= window.size - disp;
}

// Whether all bytes lie in attached regions, and every element of `width` in one.
bool inside(const std::vector<shm::Region>& regions, const Record& record, std::size_t width) {
    for (std::uint64_t done = 0; done < record.bytes;) {
        const std::uint64_t address = static_cast<std::uint64_t>(record.disp) + done;
        const shm::Region* region = shm::find_region(regions, address);
        if (region == nullptr) return false;
        const std::uint64_t part = std::min(record.bytes - done, region->size - (address - region->base));
        if (part % width != 0) return false;
        done += part;
    }
    return true;
}

// What is told of this process's regions.
Status tell(const Serving& window, std::uint32_t origin, const Record& record, std::byte* out) {
    if (window.leases == nullptr) return Status::Malformed;
    const auto address = static_cast<std::uint64_t>(record.disp);
    Lease leases[kMostLeases];
    if (record.what == What::Expose) {
        window.leases->expose(origin, address, leases[0]);
    } else {
        if (record.bytes == 0 || record.bytes > kMostLeases) return Status::Malformed;
        window.leases->look_up(origin, address, std::span(leases, record.bytes));
    }
    std::memcpy(out, leases, returned(record));
    return Status::Done;
}

bool is_ask(std::int64_t value) {
    return value >= static_cast<std::int64_t>(LockAsk::Shared) && value <= static_cast<std::int64_t>(LockAsk::Passing);
}

}  // namespace

Hosted::~Hosted() = default;

std::shared_ptr<Arrivals> Hosted::add(const Serving& window) {
    auto made = std::make_unique<Window>();
    made->serving = window;
    std::shared_ptr<Arrivals> arrivals = made->arrivals;
    windows_[window.id] = std::move(made);
    return arrivals;
}

void Hosted::remove(std::uint64_t id) {
    const auto found = windows_.find(id);
    if (found == windows_.end()) return;
    Window& window = *found->second;
    // After a death there may be requests that wait for what does not come any more.
    for (const auto& [origin, saved] : window.saved)
        for (const Saved& request : saved)
            answers_.answer(window.serving.tokens[origin], request.number, Status::UnknownWindow, nullptr, 0);
    std::erase(busy_, &window);
    windows_.erase(found);
    // Where all have ended their accesses there are none; else who detaches must not wait for ever.
    std::erase_if(withdrawing_, [&](const Withdrawing& waiting) {
        if (waiting.window != id) return false;
        answers_.answer(waiting.token, waiting.number, Status::UnknownWindow, waiting.out.data(), waiting.out.size());
        return true;
    });
}

void Hosted::request(const Frame& frame, const std::byte* body) {
    const auto answer = [&](Status status) {
        if (frame.kind != FrameKind::Notice)
            answers_.answer(frame.sender, frame.number, status, out_.data(), out_.size());
    };
    out_.clear();
    left_.clear();
    const auto found = windows_.find(frame.window);
    if (found == windows_.end()) return answer(Status::UnknownWindow);
    Window& window = *found->second;
    const Serving& own = window.serving;
    if (frame.origin >= own.processes || own.tokens[frame.origin] != frame.sender) return answer(Status::Malformed);
    // Behind a request that waits for a lock all others of this origin in this window wait too.
    if (frame.kind == FrameKind::Request)
        if (const auto before = window.saved.find(frame.origin); before != window.saved.end()) {
            before->second.push_back({frame.number, 0, {body, body + frame.bytes}, {}, Status::Done});
            return;
        }
    std::size_t at = 0;
    Status status = Status::Done;
    // Only a request may wait: its place in line is what the others of its origin stand behind.
    const bool may_wait = frame.kind == FrameKind::Request;
    if (run(window, frame.origin, body, frame.bytes, may_wait, at, status, out_) == Ran::Ended) {
        if (left_.empty() || frame.kind != FrameKind::Query) return answer(status);
        withdrawing_.push_back({frame.window, frame.origin, frame.sender, frame.number, status, out_, left_});
        return;
    }
    window.saved[frame.origin].push_back({frame.number, at, {body, body + frame.bytes}, out_, status});
    if (std::find(busy_.begin(), busy_.end(), &window) == busy_.end()) busy_.push_back(&window);
}

// Executes records from `at` on. A record that fails returns zeros and is told of by the status; those behind it are
// executed all the same, as they would be had each been sent alone. Waits: `at` is behind the record that waits, for a
// lock that has been asked for or for a fence of this process.
Hosted::Ran Hosted::run(Window& window, std::uint32_t origin, const std::byte* body, std::size_t bytes, bool may_wait,
                        std::size_t& at, Status& status, std::vector<std::byte>& out) {
    Records records(body, bytes, at);
    while (!records.done()) {
        at = records.at();
        Record record;
        const std::byte* data = nullptr;
        if (!records.next(record, data) || out.size() + padded(returned(record)) > kBody - sizeof(ReplyHead)) {
            status = Status::Malformed;
            return Ran::Ended;
        }
        Status now = Status::Done;
        if (record.what == What::Lock) {
            if (!is_ask(record.disp) || !may_wait) {
                now = Status::Malformed;
            } else if (!lock(window, origin, static_cast<LockAsk>(record.disp), now)) {
                at = records.at();
                return Ran::Waits;
            }
        } else if (record.what == What::FenceOpen) {
            const auto fence = static_cast<std::uint64_t>(record.disp);
            if (!may_wait) {
                now = Status::Malformed;
            } else if (!window.arrivals->is_open(fence)) {
                window.fenced.emplace_back(origin, fence);
                at = records.at();
                return Ran::Waits;
            }
        } else if (record.what == What::Withdraw) {
            now = may_wait ? Status::Malformed : withdraw(window.serving, origin, record);
        } else {
            now = execute(window, origin, record, data, out);
        }
        if (status == Status::Done) status = now;
    }
    at = bytes;
    return Ran::Ended;
}

Status Hosted::execute(Window& window, std::uint32_t origin, const Record& record, const std::byte* data,
                       std::vector<std::byte>& out) {
    const Serving& own = window.serving;
    const auto refused = std::find(window.refused.begin(), window.refused.end(), origin);
    if (refused != window.refused.end() && is_operation(record.what)) {
        out.resize(out.size() + padded(returned(record)));
        return Status::HolderDied;
    }
    switch (record.what) {
        case What::Unlock:
            if (refused != window.refused.end()) {
                window.refused.erase(refused);
                return Status::Done;
            }
            unlock(window, origin);
            return Status::Done;
        case What::Post:
            sync::send_post(*own.slot, origin, own.rank);
            return Status::Done;
        case What::Complete:
            sync::send_complete(*own.slot, own.rank);
            return Status::Done;
        case What::Barrier:
            window.arrivals->arrived(origin, static_cast<std::uint64_t>(record.disp), record.bytes, record.flags);
            return Status::Done;
        case What::FenceClose:
            window.arrivals->closed();
            return Status::Done;
        case What::FenceCount:
            return window.arrivals->count(origin, static_cast<std::uint64_t>(record.disp), record.bytes, own.processes)
                       ? Status::Done
                       : Status::Malformed;
        case What::Describe: {
            const Description description{own.size,
                                          own.unit,
                                          own.exposed.base,
                                          own.exposed.key,
                                          own.exposed.registration != nullptr,
                                          own.regions != nullptr,
                                          own.words.base,
                                          own.words.key};
            const auto* bytes = reinterpret_cast<const std::byte*>(&description);
            out.insert(out.end(), bytes, bytes + sizeof description);
            return Status::Done;
        }
        default: {
            const std::size_t before = out.size();
            out.resize(before + padded(returned(record)));
            if (!is_operation(record.what)) return tell(own, origin, record, out.data() + before);
            return access(window, origin, record, data, out.data() + before);
        }
    }
}

// An owner takes back a lease that this process holds. Not part of a request, whose turn may come late.
Status Hosted::withdraw(const Serving& window, std::uint32_t origin, const Record& record) {
    if (window.caches == nullptr) return Status::Malformed;
    const Withdrawn lease(static_cast<std::uint64_t>(record.disp), record.bytes);
    if (!window.caches->drop(origin, lease.first, lease.second)) left_.push_back(lease);
    return Status::Done;
}

void Hosted::resume_withdrawing() {
    std::erase_if(withdrawing_, [&](Withdrawing& waiting) {
        Caches& caches = *windows_.at(waiting.window)->serving.caches;
        std::erase_if(waiting.left,
                      [&](const Withdrawn& lease) { return caches.drop(waiting.origin, lease.first, lease.second); });
        if (!waiting.left.empty()) return false;
        answers_.answer(waiting.token, waiting.number, waiting.status, waiting.out.data(), waiting.out.size());
        return true;
    });
}

Status Hosted::access(Window& window, std::uint32_t origin, const Record& record, const std::byte* data,
                      std::byte* out) {
    const Serving& own = window.serving;
    const auto kind = static_cast<agent::Kind>(record.what);
    Update how{};
    const Status sound = agent::check_operation(kind, record.basic, record.op, record.bytes, how);
    if (sound != Status::Done) return sound;
    if (record.what != What::Get && how.op != Op::NoOp) own.slot->block(own.rank).note_update(origin);
    const shm::Stripes stripes{own.slot->block(own.rank), own.rank, *own.liveness};
    if (own.regions == nullptr) {
        if (!inside(own, record)) return Status::OutOfRange;
        shm::Direct memory(own.base, stripes);
        return agent::work(memory, kind, how, record.disp, record.bytes, data, out);
    }
    return own.regions->while_attached([&](const std::vector<shm::Region>& regions) {
        if (!inside(regions, record, how.width != 0 ? how.width : 1)) return Status::OutOfRange;
        // Attached regions are addresses of this process: one operation that spans several lies in one piece.
        shm::Direct memory(reinterpret_cast<std::byte*>(record.disp), stripes, record.disp);
        return agent::work(memory, kind, how, record.disp, record.bytes, data, out);
    });
}

bool Hosted::resume() {
    // A request that goes on may end the wait of others, here or in another window, or begin one.
    for (bool again = true; again && !busy_.empty();) {
        again = false;
        for (std::size_t i = 0; i < busy_.size();) {
            Window& window = *busy_[i];
            if (resume(window)) again = true;
            if (window.saved.empty())
                busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(i));
            else
                ++i;
        }
    }
    if (!withdrawing_.empty()) resume_withdrawing();
    return waits();
}

bool Hosted::resume(Window& window) {
    const bool entered = resume_fenced(window);
    const bool followed = resume_passed(window);
    std::size_t none = 0;
    const bool joined = resume_queue(window, window.passing, window.passing_queued, none);
    return resume_queue(window, window.waiting, window.queued, window.turns) || joined || followed || entered;
}

// What waits for a fence that this process has made by now. What comes behind may wait for the next one.
bool Hosted::resume_fenced(Window& window) {
    std::vector<std::uint32_t> entered;
    std::erase_if(window.fenced, [&](const auto& waiting) {
        if (!window.arrivals->is_open(waiting.second)) return false;
        entered.push_back(waiting.first);
        return true;
    });
    for (const std::uint32_t origin : entered)
        go_on(window, origin);
    return !entered.empty();
}

void Hosted::go_on(Window& window, std::uint32_t origin) {
    std::deque<Saved>& saved = window.saved[origin];
    while (!saved.empty()) {
        Saved& next = saved.front();
        if (run(window, origin, next.body.data(), next.body.size(), true, next.at, next.status, next.out) == Ran::Waits)
            return;
        answers_.answer(window.serving.tokens[origin], next.number, next.status, next.out.data(), next.out.size());
        saved.pop_front();
    }
    window.saved.erase(origin);
}

}  // namespace osc::net
