// Checks pieces against the regions, and moves them.
// Build: osc_core_cold
#include "net/origin/attached.h"

#include <algorithm>
#include <span>
#include <utility>

#include "op/call.h"

namespace osc::net {

// The lease of the region that contains `address`: from the cache, else from the target.
bool Attached::look_up(std::uint64_t address, Lease& lease) {
    RegionCache& regions = stream_.regions;
    bool unsure = false;
    for (std::uint32_t last = 0;;) {
        if (std::exchange(unsure, false)) stream_.confirm();
        if (regions.find(address, lease)) return true;
        const TargetQueries::Turn turn(stream_.queries);
        if (turn.waited()) continue;
        // The regions attached when this process has its lock count, not those attached before.
        const bool sure = stream_.is_confirmed();
        Lease leases[kMostLeases];
        const std::uint32_t count = regions.ahead();
        regions.asks();
        fault_ = stream_.queries.ask(
            {Opcode::Lookup, Basic::None, Op::None, 0, count, static_cast<std::int64_t>(address)}, leases);
        regions.answered(std::span(leases, fault_ == Fault::None ? count : 0));
        if (fault_ != Fault::None) return false;
        if (leases[0].size == 0) {
            if (sure) break;
            unsure = true;
        } else if (std::exchange(last, leases[0].number) == leases[0].number) {
            // The cache drops a lease that the target withdrew meanwhile; the next answer lacks it.
            fault_ = net::fault_of(Status::Malformed, stream_.route.target);
            return false;
        }
    }
    fault_ = base::fail(Fault::Range, "address 0x%llx of the target is in no region that is attached there",
                        static_cast<unsigned long long>(address));
    return false;
}

// Whether all bytes lie in attached regions, and every element of `width` in one. A refused piece changes nothing.
bool Attached::holds(std::int64_t disp, std::size_t bytes, std::size_t width) {
    if (fault_ != Fault::None) return false;
    for (std::uint64_t seen = 0; seen < bytes;) {
        const std::uint64_t address = static_cast<std::uint64_t>(disp) + seen;
        Lease lease;
        if (!look_up(address, lease)) return false;
        const std::uint64_t part = std::min(bytes - seen, lease.address + lease.size - address);
        if (part % width != 0) {
            fault_ = base::fail(Fault::Range, "an element lies across the end of an attached region");
            return false;
        }
        seen += part;
    }
    return true;
}

// Moves a part that lies in one region, if it is large and the region can be accessed directly.
bool Attached::directly(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    if (!stream_.wants_direct(bytes)) return false;
    const auto address = static_cast<std::uint64_t>(disp);
    RegionCache& regions = stream_.regions;
    // Before the region is in use: the process that withdraws it waits for its users, and may hold this lock.
    stream_.confirm();
    Lease lease;
    if (!regions.find(address, lease)) return false;
    if (lease.exposed == kNotYet) {
        const TargetQueries::Turn turn(stream_.queries);
        regions.asks();
        const Fault fault = stream_.queries.ask(
            {Opcode::Expose, Basic::None, Op::None, 0, 0, static_cast<std::int64_t>(address)}, &lease);
        regions.answered(std::span(&lease, fault == Fault::None ? 1 : 0));
        if (fault != Fault::None) return false;  // the message reports it
    }
    RegionCache::Kept* const entry = regions.use(address, bytes);
    if (entry == nullptr) return false;
    stream_.transfer(write, entry->lease.base + (address - entry->lease.address), entry->lease.key, memory, bytes,
                     entry);
    regions.release(*entry);
    return true;
}

void Attached::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    if (!holds(disp, bytes, 1)) return;
    auto* data = static_cast<std::byte*>(memory);
    while (bytes > 0) {
        Lease lease;
        const auto address = static_cast<std::uint64_t>(disp);
        // A message may span regions. The target refuses a region that it withdrew meanwhile.
        const bool large = stream_.wants_direct(bytes) && stream_.regions.find(address, lease);
        const std::size_t part = large ? std::min<std::size_t>(bytes, lease.address + lease.size - address) : bytes;
        if (!directly(write, disp, data, part)) stream_.move(write, disp, data, part);
        disp += static_cast<std::int64_t>(part);
        data += part;
        bytes -= part;
    }
}

void Attached::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    if (holds(disp, count * how.width, how.width)) stream_.update(how, disp, origin, result, count);
}

// holds() for each piece of a shape.
bool Attached::holds_all(op::Cursor pieces, std::int64_t start, std::size_t width) {
    for (Lease lease; !pieces.done(); pieces.advance(pieces.bytes())) {
        const std::int64_t disp = start + pieces.offset();
        const auto address = static_cast<std::uint64_t>(disp);
        const std::uint64_t end = lease.address + lease.size;
        if (address >= lease.address && address < end && pieces.bytes() <= end - address) continue;
        if (!holds(disp, pieces.bytes(), width)) return false;
        if (!stream_.regions.find(address, lease)) lease = {};
    }
    return true;
}

void Attached::move_all(const op::Call& call, std::int64_t start) {
    const op::Cursor pieces(call.target.layout->data(), call.target.count);
    if (!stream_.gathers(pieces)) return Transport::move_all(call, start);
    if (holds_all(pieces, start, 1)) stream_.move_all(call, start);
}

void Attached::update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                          std::byte* result, std::size_t bytes) {
    if (!stream_.gathers(target)) return Transport::update_all(how, start, target, origin, result, bytes);
    if (holds_all(target, start, how.width)) stream_.update_all(how, start, target, origin, result, bytes);
}

Fault Attached::finish() {
    if (fault_ == Fault::None) return stream_.finish();
    base::FirstFault first;
    first.note(fault_);
    stream_.operation.notification = kNoNotification;
    stream_.finish();
    return first.take();
}

}  // namespace osc::net
