// Executing requests, and continuing those that waited.
#include "net/target/target_service.h"

#include <algorithm>
#include <utility>

#include "sync/pscw.h"

namespace osc::net {
namespace {

// Answers questions about this process's regions.
Status describe_regions(const ExposedWindow& window, std::uint32_t origin, const Record& record, std::byte* out) {
    if (window.leases == nullptr) return Status::Malformed;
    const auto address = static_cast<std::uint64_t>(record.disp);
    Lease leases[kMostLeases];
    if (record.opcode == Opcode::Expose) {
        window.leases->expose(origin, address, leases[0]);
    } else {
        if (record.bytes == 0 || record.bytes > kMostLeases) return Status::Malformed;
        window.leases->look_up(origin, address, std::span(leases, record.bytes));
    }
    std::memcpy(out, leases, returned(record));
    return Status::Done;
}

bool is_ask(std::int64_t value) {
    return value >= static_cast<std::int64_t>(LockAsk::Shared) && value <= static_cast<std::int64_t>(LockAsk::Barging);
}

}  // namespace

std::shared_ptr<Arrivals> TargetService::add(const ExposedWindow& window) {
    auto made = std::make_unique<Window>();
    made->exposed = window;
    std::shared_ptr<Arrivals> arrivals = made->arrivals;
    windows_[window.id] = std::move(made);
    return arrivals;
}

void TargetService::remove(std::uint64_t id) {
    const auto found = windows_.find(id);
    if (found == windows_.end()) return;
    Window& window = *found->second;
    // After a death requests may wait for a lock or fence that does not come any more.
    for (const auto& [origin, saved] : window.saved)
        for (const Saved& request : saved)
            answers_.answer(window.exposed.tokens[origin], request.number, Status::UnknownWindow, nullptr, 0);
    std::erase(busy_, &window);
    windows_.erase(found);
    // There are none if all processes have ended their accesses; else the detaching process must not wait for ever.
    end_withdrawals([id](const Withdrawing& waiting) { return waiting.window == id; });
}

template <class Which>
void TargetService::end_withdrawals(Which&& which) {
    std::erase_if(withdrawing_, [&](const Withdrawing& waiting) {
        if (!which(waiting)) return false;
        answers_.answer(waiting.token, waiting.number, Status::UnknownWindow, waiting.out.data(), waiting.out.size());
        return true;
    });
}

void TargetService::died(std::uint64_t token) {
    // The provider may never end accesses to a dead owner's regions.
    end_withdrawals([token](const Withdrawing& waiting) { return waiting.token == token; });
    for (auto& [id, window] : windows_)
        break_locks(*window, token);
}

void TargetService::request(const Frame& frame, const std::byte* body) {
    const auto answer = [&](Status status) {
        if (frame.kind != FrameKind::Notice)
            answers_.answer(frame.sender, frame.number, status, out_.data(), out_.size());
        else if (status != Status::Done)
            answers_.dropped();
    };
    out_.clear();
    in_use_.clear();
    const auto found = windows_.find(frame.window);
    if (found == windows_.end()) return answer(Status::UnknownWindow);
    Window& window = *found->second;
    const ExposedWindow& own = window.exposed;
    if (frame.origin >= own.processes || own.tokens[frame.origin] != frame.sender) return answer(Status::Malformed);
    // All requests of this origin in this window wait behind one that waits for a lock or a fence.
    if (frame.kind == FrameKind::Request)
        if (const auto before = window.saved.find(frame.origin); before != window.saved.end()) {
            before->second.push_back({frame.number, 0, {body, body + frame.bytes}, {}, Status::Done});
            return;
        }
    std::size_t at = 0;
    Status status = Status::Done;
    if (run(window, frame.kind, frame.origin, body, frame.bytes, at, status, out_) == Ran::Ended) {
        if (in_use_.empty()) return answer(status);
        withdrawing_.push_back({frame.window, frame.origin, frame.sender, frame.number, status, out_, in_use_});
        return;
    }
    window.saved[frame.origin].push_back({frame.number, at, {body, body + frame.bytes}, out_, status});
    if (std::ranges::find(busy_, &window) == busy_.end()) busy_.push_back(&window);
}

// Executes records from `at` on. A record that fails returns zeros and sets the status; the records behind it are
// executed all the same, as if each had been sent alone. A malformed record, or one that this kind of frame may not
// carry, ends the message. Waits: `at` is behind the record that waits for a lock or for a fence of this process. Only
// records of a request wait: later requests of its origin queue up behind it.
TargetService::Ran TargetService::run(Window& window, FrameKind kind, std::uint32_t origin, const std::byte* body,
                                      std::size_t bytes, std::size_t& at, Status& status, std::vector<std::byte>& out) {
    Records records(body, bytes, at);
    while (!records.done()) {
        at = records.at();
        Record record;
        const std::byte* data = nullptr;
        if (!records.next(record, data) || !travels_in(record.opcode, kind) ||
            out.size() + padded(returned(record)) > room_) {
            status = Status::Malformed;
            return Ran::Ended;
        }
        Status now = Status::Done;
        if (record.opcode == Opcode::Lock) {
            if (!is_ask(record.disp)) {
                now = Status::Malformed;
            } else if (!lock(window, origin, static_cast<LockAsk>(record.disp), now)) {
                at = records.at();
                return Ran::Waits;
            }
        } else if (record.opcode == Opcode::FenceOpen) {
            const auto fence = static_cast<std::uint64_t>(record.disp);
            if (!window.arrivals->is_open(fence)) {
                window.fenced.emplace_back(origin, fence);
                at = records.at();
                return Ran::Waits;
            }
        } else if (record.opcode == Opcode::Withdraw) {
            now = withdraw(window.exposed, origin, record);
        } else if (record.opcode == Opcode::Notify) {
            if (status == Status::Done) now = notify(window, origin, record);
        } else if (is_small(window.exposed, record) && window.refused.empty()) {
            const ExposedWindow& own = window.exposed;
            if (changes(record)) own.controls->block(own.rank).note_update(origin);
            now = execute_alike(own, records, record, data, out, room_);
        } else {
            now = execute(window, origin, record, data, out);
        }
        if (status == Status::Done) status = now;
    }
    at = bytes;
    return Ran::Ended;
}

Status TargetService::execute(Window& window, std::uint32_t origin, const Record& record, const std::byte* data,
                              std::vector<std::byte>& out) {
    const ExposedWindow& own = window.exposed;
    const auto refused = std::ranges::find(window.refused, origin);
    if (refused != window.refused.end() && is_operation(record.opcode)) {
        out.resize(out.size() + padded(returned(record)));
        return Status::HolderDied;
    }
    switch (record.opcode) {
        case Opcode::Unlock:
            if (refused != window.refused.end()) {
                window.refused.erase(refused);
                return Status::Done;
            }
            unlock(window, origin);
            return Status::Done;
        case Opcode::Post:
            sync::send_post(*own.controls, origin, own.rank);
            return Status::Done;
        case Opcode::Complete:
            sync::send_complete(*own.controls, own.rank);
            return Status::Done;
        case Opcode::Barrier:
            window.arrivals->arrived(origin, static_cast<std::uint64_t>(record.disp), record.bytes, record.flags);
            return Status::Done;
        case Opcode::FenceClose:
            window.arrivals->closed();
            return Status::Done;
        case Opcode::FenceCount:
            return window.arrivals->count(origin, static_cast<std::uint64_t>(record.disp), record.bytes, own.processes)
                       ? Status::Done
                       : Status::Malformed;
        case Opcode::Tested:
            window.arrivals->tested_by(origin);
            return Status::Done;
        case Opcode::Counters: {
            const sync::NotifyBoard* const board =
                own.board != nullptr ? own.board->load(std::memory_order_acquire) : nullptr;
            const std::uint64_t count = board != nullptr ? board->count.load(std::memory_order_acquire) : 0;
            const auto* bytes = reinterpret_cast<const std::byte*>(&count);
            out.insert(out.end(), bytes, bytes + sizeof count);
            return Status::Done;
        }
        case Opcode::Describe: {
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
            if (record.opcode == Opcode::Inspect) return inspect(window, data, out.data() + before);
            if (!is_operation(record.opcode)) return describe_regions(own, origin, record, out.data() + before);
            return operate(window, origin, {record, data, {}, {}}, out.data() + before);
        }
    }
}

// Counts a notified operation, whose records have been executed.
Status TargetService::notify(const Window& window, std::uint32_t origin, const Record& record) {
    if (std::ranges::find(window.refused, origin) != window.refused.end()) return Status::HolderDied;
    const ExposedWindow& own = window.exposed;
    sync::NotifyBoard* const board = own.board != nullptr ? own.board->load(std::memory_order_acquire) : nullptr;
    if (board == nullptr || record.disp < 0 ||
        static_cast<std::uint64_t>(record.disp) >= board->count.load(std::memory_order_relaxed))
        return Status::Malformed;
    board->add(static_cast<std::uint32_t>(record.disp));
    return Status::Done;
}

// An owner takes back a lease that this process has.
Status TargetService::withdraw(const ExposedWindow& window, std::uint32_t origin, const Record& record) {
    if (window.caches == nullptr) return Status::Malformed;
    const LeaseName lease(static_cast<std::uint64_t>(record.disp), record.bytes);
    if (!window.caches->drop(origin, lease.first, lease.second)) in_use_.push_back(lease);
    return Status::Done;
}

void TargetService::resume_withdrawing() {
    std::erase_if(withdrawing_, [&](Withdrawing& waiting) {
        Caches& caches = *windows_.at(waiting.window)->exposed.caches;
        std::erase_if(waiting.in_use,
                      [&](const LeaseName& lease) { return caches.drop(waiting.origin, lease.first, lease.second); });
        if (!waiting.in_use.empty()) return false;
        answers_.answer(waiting.token, waiting.number, waiting.status, waiting.out.data(), waiting.out.size());
        return true;
    });
}

Status TargetService::operate(Window& window, std::uint32_t origin, CheckedRecord operation, std::byte* out) {
    const ExposedWindow& own = window.exposed;
    const Status status = net::execute(own, std::span(&operation, 1), out, shapes_);
    if (status == Status::Done && changes(operation.record)) own.controls->block(own.rank).note_update(origin);
    return status;
}

bool TargetService::resume() {
    // A request that continues may end the wait of others, here or in another window, or begin one.
    for (bool again = true; again && !busy_.empty();) {
        again = false;
        std::erase_if(busy_, [&](Window* window) {
            if (resume(*window)) again = true;
            return window->saved.empty();
        });
    }
    if (!withdrawing_.empty()) resume_withdrawing();
    return waits();
}

bool TargetService::resume(Window& window) {
    const bool entered = resume_fenced(window);
    const bool followed = resume_granted(window);
    std::size_t none = 0;
    const bool joined = resume_queue(window, window.barging, window.barging_queued, none);
    return resume_queue(window, window.waiting, window.queued, window.turns) || joined || followed || entered;
}

// Continues requests that waited for a fence that this process has made by now. Later ones may wait for the next fence.
bool TargetService::resume_fenced(Window& window) {
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

void TargetService::go_on(Window& window, std::uint32_t origin) {
    std::deque<Saved>& saved = window.saved[origin];
    while (!saved.empty()) {
        Saved& next = saved.front();
        if (run(window, FrameKind::Request, origin, next.body.data(), next.body.size(), next.at, next.status,
                next.out) == Ran::Waits)
            return;
        answers_.answer(window.exposed.tokens[origin], next.number, next.status, next.out.data(), next.out.size());
        saved.pop_front();
    }
    window.saved.erase(origin);
}

}  // namespace osc::net
