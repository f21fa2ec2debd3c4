// Checking and executing messages.
#include "agent/served.h"

#include <cstring>

#include "transport/direct/direct.h"

namespace osc::agent {
namespace {

// What can be checked without knowing the window. `how` is filled in for updates and compare-and-swap.
Status check_form(const Header& header, std::size_t capacity, Update& how) {
    if (header.version != kVersion) return Status::Malformed;
    if (header.kind < Kind::Put || header.kind > Kind::CompareAndSwap) return Status::Malformed;
    if (header.parts == 0 || header.parts > kMostParts || header.bytes == 0) return Status::Malformed;
    if (extents(header.kind, header.op, header.bytes, header.parts).needed > capacity) return Status::Malformed;
    if (header.kind == Kind::CompareAndSwap && header.parts != 1) return Status::Malformed;
    return check_operation(header.kind, header.basic, header.op, header.bytes, how);
}

bool inside(const Served& window, const std::vector<shm::Region>* regions, const Part& part) {
    if (regions == nullptr) {
        const auto disp = static_cast<std::uint64_t>(part.disp);
        return part.disp >= 0 && disp <= window.size && part.bytes <= window.size - disp;
    }
    const auto address = static_cast<std::uint64_t>(part.disp);
    const shm::Region* region = shm::find_region(*regions, address);
    return region != nullptr && part.bytes <= region->size - (address - region->base);
}

}  // namespace

std::uint64_t ServedWindows::add(const Served& window) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = (++count_ << 24) | (shm::random64() & 0xffffff);
    windows_.emplace(number, window);
    return number;
}

void ServedWindows::remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    windows_.erase(number);
}

Status ServedWindows::execute(const Header& header, std::byte* payload, std::size_t capacity) {
    const std::lock_guard lock(mutex_);
    const Status status = run(header, payload, capacity);
    answered_[static_cast<std::size_t>(status)].fetch_add(1, std::memory_order_relaxed);
    return status;
}

Status ServedWindows::run(const Header& header, std::byte* payload, std::size_t capacity) {
    Update how{};
    if (const Status status = check_form(header, capacity, how); status != Status::Done) return status;
    parts_[0] = header.first;
    for (std::uint32_t i = 1; i < header.parts; ++i)
        std::memcpy(&parts_[i], payload + part_at(capacity, i), sizeof(Part));
    std::uint64_t left = header.bytes;
    for (std::uint32_t i = 0; i < header.parts; ++i) {
        const std::uint64_t bytes = parts_[i].bytes;
        if (bytes == 0 || bytes > left || (how.width != 0 && bytes % how.width != 0)) return Status::Malformed;
        left -= bytes;
    }
    if (left != 0) return Status::Malformed;
    const auto found = windows_.find(header.window);
    if (found == windows_.end()) return Status::UnknownWindow;
    const Served& window = found->second;
    const auto execute = [&](const std::vector<shm::Region>* regions) {
        for (std::uint32_t i = 0; i < header.parts; ++i)
            if (!inside(window, regions, parts_[i])) return Status::OutOfRange;
        return perform(window, header, payload, how);
    };
    if (window.regions == nullptr) return execute(nullptr);
    return window.regions->while_attached([&](const std::vector<shm::Region>& regions) { return execute(&regions); });
}

Status ServedWindows::perform(const Served& window, const Header& header, std::byte* payload, const Update& how) {
    const Extents place = extents(header.kind, header.op, header.bytes, header.parts);
    const std::byte* in = payload;
    std::byte* out = payload + place.out_at;
    for (std::uint32_t i = 0; i < header.parts; ++i) {
        const auto& [disp, bytes] = parts_[i];
        const bool dynamic = window.regions != nullptr;
        shm::Direct memory(dynamic ? reinterpret_cast<std::byte*>(disp) : window.base,
                           {*window.block, window.rank, *window.liveness}, dynamic ? disp : 0);
        const Status status = work(memory, header.kind, how, disp, bytes, in, out);
        if (status != Status::Done) return status;
        if (place.in != 0) in += bytes;
        if (place.out != 0) out += bytes;
    }
    return Status::Done;
}

}  // namespace osc::agent
