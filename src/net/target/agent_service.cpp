// From a message slot's body to operations.
#include "net/target/agent_service.h"

#include <new>

namespace osc::net {

std::uint64_t AgentService::add(const ExposedWindow& window) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = (++count_ << 24) | (secret_ & 0xffffff);
    windows_.emplace(number, window);
    return number;
}

void AgentService::remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    windows_.erase(number);
}

Status AgentService::execute(std::uint64_t number, std::byte* body, std::size_t bytes, std::size_t capacity,
                             std::span<std::byte> reply) {
    const std::lock_guard lock(mutex_);
    Status status = Status::Malformed;
    if (bytes != 0 && bytes <= capacity && bytes % kAlign == 0) {
        // The caller may be a function of the host. All is allocated before the first operation is executed.
        try {
            status = run(number, body, bytes, reply.empty() ? std::span(body, capacity).subspan(bytes) : reply);
        } catch (const std::bad_alloc&) {
            status = Status::Exhausted;
        }
    }
    replies_[static_cast<std::size_t>(status)].fetch_add(1, std::memory_order_relaxed);
    return status;
}

Status AgentService::run(std::uint64_t number, const std::byte* body, std::size_t bytes, std::span<std::byte> reply) {
    records_.clear();
    std::size_t room = reply.size();
    for (Records records(body, bytes); !records.done();) {
        CheckedRecord& operation = records_.emplace_back();
        if (!records.next(operation.record, operation.data)) return Status::Malformed;
        const std::size_t back = padded(returned(operation.record));
        if (back > room) return Status::Malformed;
        room -= back;
    }
    const auto found = windows_.find(number);
    if (found == windows_.end()) return Status::UnknownWindow;
    return net::execute(found->second, records_, reply.data(), shapes_);
}

}  // namespace osc::net
