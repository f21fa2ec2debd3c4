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

// A hash of the bytes in `ranges`; false if some are not mapped.
bool hash_of(const std::vector<Bytes>& ranges, std::uint64_t& hash) {
    std::array<std::byte, 16384> piece;
    hash = 14695981039346656037ULL;
    for (const Bytes range : ranges)
        for (std::int64_t at = range.lo; at < range.hi; at += static_cast<std::int64_t>(piece.size())) {
            const std::size_t bytes = std::min(piece.size(), static_cast<std::size_t>(range.hi - at));
            if (!copy_safely(at, piece.data(), bytes)) return false;
            std::memset(piece.data() + bytes, 0, std::min<std::size_t>(8, piece.size() - bytes));
            for (std::size_t i = 0; i < bytes; i += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, piece.data() + i, sizeof word);
                hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
                hash ^= hash >> 29;
            }
        }
    return true;
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
    for (const auto& [target, group] : targets_)
        if (const std::uint64_t number = (group.*map).find(range); number != 0) return &group.operations.at(number);
    for (const auto& [operation, entry] : requests_)
        if (const std::uint64_t number = (entry.second.*map).find(range); number != 0)
            return &entry.second.operations.at(number);
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
    Group* group = nullptr;
    if (operation.request) {
        auto& [target, single] = requests_[operation.number];
        target = operation.target;
        group = &single;
    } else {
        group = &targets_[operation.target];
    }
    Pending pending{describe(operation), operation.site, operation.reads_here, 0, false};
    pending.hashed = !pending.reads.empty() && hash_of(pending.reads, pending.hash);
    for (const Bytes range : operation.reads_here)
        group->reads.add(range, operation.number);
    for (const Bytes range : operation.writes_here)
        group->writes.add(range, operation.number);
    group->operations.emplace(operation.number, std::move(pending));
}

void LocalBuffers::complete(const Group& group, const Synchronisation& call) const {
    for (const auto& [number, pending] : group.operations) {
        if (!pending.hashed) continue;
        std::uint64_t hash = 0;
        const bool mapped = hash_of(pending.reads, hash);
        if (mapped && hash == pending.hash) continue;
        ledger_.report(Rule::Changed, {{pending.text + (mapped ? ": its origin buffer has changed"
                                                               : ": its origin buffer is not mapped any more"),
                                        pending.site},
                                       {std::string("before ") + call.call + " completed it", call.site}});
    }
}

void LocalBuffers::before(const Synchronisation& call) {
    switch (call.act) {
        case Act::Fence:
        case Act::Complete:
        case Act::UnlockAll:
        case Act::FlushAll:
        case Act::FlushLocalAll:
        case Act::Free:
            for (const auto& [target, group] : targets_)
                complete(group, call);
            for (const auto& [number, entry] : requests_)
                complete(entry.second, call);
            targets_.clear();
            requests_.clear();
            watched_ = 0;
            return;
        case Act::Unlock:
        case Act::Flush:
        case Act::FlushLocal:
            if (const auto found = targets_.find(call.target); found != targets_.end()) {
                complete(found->second, call);
                watched_ -= found->second.operations.size();
                targets_.erase(found);
            }
            for (auto entry = requests_.begin(); entry != requests_.end();) {
                if (entry->second.first == call.target) {
                    complete(entry->second.second, call);
                    entry = requests_.erase(entry);
                    --watched_;
                } else {
                    ++entry;
                }
            }
            return;
        case Act::Request:
            if (const auto found = requests_.find(call.operation); found != requests_.end()) {
                complete(found->second.second, call);
                requests_.erase(found);
                --watched_;
            }
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
