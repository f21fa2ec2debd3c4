// Overlaps are found when an operation is issued, changes when it completes.
#include "plugins/verify/local_buffers.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "plugins/verify/ledger.h"
#include "plugins/verify/page_guard.h"

namespace osc::check {
namespace {

// More operations at once are not watched: each costs some hundred bytes.
constexpr std::size_t kMostOperations = 200'000;

// Copies memory that the program may have unmapped. False if it has.
bool copy_safely(std::int64_t address, std::byte* to, std::size_t bytes) {
    void* const from = own_address(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)));
    const iovec local{to, bytes};
    const iovec remote{from, bytes};
    const ssize_t copied = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    if (copied == static_cast<ssize_t>(bytes)) return true;
    if (copied >= 0 || errno == EFAULT) return false;
    std::memcpy(to, from, bytes);  // the system forbids the call
    return true;
}

// A hash of the bytes in `ranges`; none if some are not mapped.
std::optional<std::uint64_t> hash_of(const std::vector<Bytes>& ranges) {
    std::array<std::byte, 16384> piece;
    std::uint64_t hash = 14695981039346656037ULL;
    for (const Bytes range : ranges)
        for (std::int64_t at = range.lo; at < range.hi; at += static_cast<std::int64_t>(piece.size())) {
            const std::size_t bytes = std::min(piece.size(), static_cast<std::size_t>(range.hi - at));
            if (!copy_safely(at, piece.data(), bytes)) return {};
            std::memset(piece.data() + bytes, 0, std::min<std::size_t>(8, piece.size() - bytes));
            for (std::size_t i = 0; i < bytes; i += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, piece.data() + i, sizeof word);
                hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
                hash ^= hash >> 29;
            }
        }
    return hash;
}

std::string describe(const Operation& operation) {
    return std::string(operation.call) + " to rank " + std::to_string(operation.target) + ", bytes " +
           text_of(operation.bytes);
}

}  // namespace

void AddressMap::add(Bytes range, std::uint64_t operation) {
    auto next = pieces_.upper_bound(range.lo);
    if (next != pieces_.begin()) range.lo = std::max(range.lo, std::prev(next)->second.hi);
    while (range.lo < range.hi) {
        const std::int64_t hi = next != pieces_.end() ? std::min(range.hi, next->first) : range.hi;
        if (range.lo < hi) pieces_.emplace_hint(next, range.lo, Piece{hi, operation});
        if (next == pieces_.end()) return;
        range.lo = next->second.hi;
        ++next;
    }
}

std::uint64_t AddressMap::find(Bytes range) const {
    if (range.lo >= range.hi) return 0;
    const auto next = pieces_.lower_bound(range.hi);  // the first piece behind the range
    if (next == pieces_.begin()) return 0;
    const auto& [lo, piece] = *std::prev(next);
    return piece.hi > range.lo ? piece.operation : 0;
}

const LocalBuffers::Pending* LocalBuffers::find(const AddressMap Group::*map, Bytes range) const {
    for (const auto& [key, group] : groups_)
        if (const std::uint64_t number = (group.*map).find(range); number != 0) return &group.operations.at(number);
    return nullptr;
}

void LocalBuffers::look_for_overlaps(const Operation& operation) const {
    const auto say = [&](const char* what, const Pending& other, const char* uses) {
        ledger_.report(Rule::LocalBuffer,
                       {{describe(operation) + ": " + what + " overlaps a buffer that an incomplete operation " + uses,
                         operation.site},
                        {"the incomplete operation: " + other.text, other.site}});
    };
    for (const Bytes range : operation.writes_here) {
        if (const Pending* const other = find(&Group::writes, range); other != nullptr)
            return say("its result buffer", *other, "writes");
        if (const Pending* const other = find(&Group::reads, range); other != nullptr)
            return say("its result buffer", *other, "reads");
    }
    for (const Bytes range : operation.reads_here)
        if (const Pending* const other = find(&Group::writes, range); other != nullptr)
            return say("its origin buffer", *other, "writes");
}

void LocalBuffers::on_operation(const Operation& operation) {
    if (!operation.exact_here || (operation.reads_here.empty() && operation.writes_here.empty())) return;
    AddressMap own;
    for (const Bytes range : operation.reads_here)
        own.add(range, operation.number);
    for (const Bytes range : operation.writes_here)
        if (own.find(range) != 0) {
            ledger_.report(Rule::LocalBuffer,
                           {{describe(operation) + ": its origin and its result buffer overlap", operation.site}});
            break;
        }
    look_for_overlaps(operation);
    if (watched_ >= kMostOperations) return;
    ++watched_;
    Group& group = groups_[{operation.target, operation.request ? operation.number : 0}];
    for (const Bytes range : operation.reads_here)
        group.reads.add(range, operation.number);
    for (const Bytes range : operation.writes_here)
        group.writes.add(range, operation.number);
    group.operations.emplace(operation.number, Pending{describe(operation), operation.site, operation.reads_here,
                                                       hash_of(operation.reads_here)});
}

void LocalBuffers::look_for_changes(const Group& group, const Synchronisation& call) const {
    for (const auto& [number, pending] : group.operations) {
        if (!pending.hash) continue;
        const std::optional<std::uint64_t> hash = hash_of(pending.reads);
        if (hash == pending.hash) continue;
        ledger_.report(
            Rule::Changed,
            {{pending.text + (hash ? ": its origin buffer has changed" : ": its origin buffer is not mapped any more"),
              pending.site},
             {std::string("before ") + call.call + " completed it", call.site}});
    }
}

void LocalBuffers::complete(const Synchronisation& call) {
    const bool all = call.target == kEveryTarget;
    const bool one = call.act == Act::Request;
    // The least and the greatest key of what the call completes.
    const auto first = groups_.lower_bound({all ? 0 : call.target, call.operation});
    const auto last = groups_.upper_bound({call.target, one ? call.operation : UINT64_MAX});
    for (auto at = first; at != last; ++at) {
        look_for_changes(at->second, call);
        watched_ -= at->second.operations.size();
    }
    groups_.erase(first, last);
}

void LocalBuffers::before(const Synchronisation& call) {
    switch (call.act) {
        case Act::Fence:
        case Act::Complete:
        case Act::Unlock:
        case Act::UnlockAll:
        case Act::Flush:
        case Act::FlushLocal:
        case Act::Request:
        case Act::Free:
            complete(call);
            return;
        case Act::Start:
        case Act::Post:
        case Act::Wait:
        case Act::Lock:
        case Act::LockAll:
        case Act::Sync:
            return;
    }
}

}  // namespace osc::check
