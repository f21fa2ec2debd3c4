// Overlaps are found when an operation is issued, changes when it completes.
// Build: osc_verify_core
#include "plugins/verify/local_buffers.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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

// Whether ascending ranges share a byte.
bool share(const std::vector<Bytes>& some, const std::vector<Bytes>& others) {
    for (auto one = some.begin(), other = others.begin(); one != some.end() && other != others.end();)
        if (one->hi <= other->lo)
            ++one;
        else if (other->hi <= one->lo)
            ++other;
        else
            return true;
    return false;
}

std::string describe(const Operation& operation) {
    return std::string(operation.call) + " to rank " + std::to_string(operation.target) + ", bytes " +
           text_of(operation.bytes);
}

}  // namespace

// An operation of `index` that uses some of the bytes; null: none.
const LocalBuffers::Pending* LocalBuffers::find(const Index& index, const std::vector<Bytes>& ranges) const {
    std::uint64_t found = 0;
    Bytes where;
    for (const Piece& one : pieces_of(ranges, 1))
        index.visit(one, [&](const Piece& other, std::uint64_t number) {
            if (overlap(one, other, where)) found = number;
            return found == 0;
        });
    return found != 0 ? &operations_.at(found) : nullptr;
}

void LocalBuffers::look_for_overlaps(const Operation& operation) const {
    const auto say = [&](const char* what, const Pending* other, const char* uses) {
        if (other == nullptr) return false;
        ledger_.report(Rule::LocalBuffer,
                       {{describe(operation) + ": " + what + " overlaps a buffer that an incomplete operation " + uses,
                         operation.site},
                        {"the incomplete operation: " + other->text, other->site}});
        return true;
    };
    static_cast<void>(say("its result buffer", find(writes_, operation.writes_here), "writes") ||
                      say("its result buffer", find(reads_, operation.writes_here), "reads") ||
                      say("its origin buffer", find(writes_, operation.reads_here), "writes"));
}

void LocalBuffers::on_operation(const Operation& operation) {
    if (!operation.exact_here || (operation.reads_here.empty() && operation.writes_here.empty())) return;
    if (share(operation.reads_here, operation.writes_here))
        ledger_.report(Rule::LocalBuffer,
                       {{describe(operation) + ": its origin and its result buffer overlap", operation.site}});
    look_for_overlaps(operation);
    if (operations_.size() >= kMostOperations) return;
    std::vector<std::uint64_t>& group = groups_[{operation.target, operation.request ? operation.number : 0}];
    const Pending* const before = group.empty() ? nullptr : &operations_.at(group.back());
    const bool known =
        before != nullptr && before->reads == operation.reads_here && before->writes == operation.writes_here;
    if (!known) {
        for (const Piece& piece : pieces_of(operation.reads_here, 1))
            reads_.insert(piece, operation.number);
        for (const Piece& piece : pieces_of(operation.writes_here, 1))
            writes_.insert(piece, operation.number);
    }
    group.push_back(operation.number);
    operations_.emplace(operation.number, Pending{describe(operation), operation.site, operation.reads_here,
                                                  operation.writes_here, hash_of(operation.reads_here), !known});
}

void LocalBuffers::look_for_change(const Pending& pending, const Synchronisation& call) const {
    if (!pending.hash) return;
    const std::optional<std::uint64_t> hash = hash_of(pending.reads);
    if (hash == pending.hash) return;
    ledger_.report(
        Rule::Changed,
        {{pending.text + (hash ? ": its origin buffer has changed" : ": its origin buffer is not mapped any more"),
          pending.site},
         {std::string("before ") + call.call + " completed it", call.site}});
}

void LocalBuffers::before(const Synchronisation& call) {
    if (!completes_here(call.act)) return;
    const bool all = call.target == kEveryTarget;
    const bool one = call.act == Act::Request;
    // The least and the greatest key of what the call completes.
    const auto first = groups_.lower_bound({all ? 0 : call.target, call.operation});
    const auto last = groups_.upper_bound({call.target, one ? call.operation : UINT64_MAX});
    for (auto at = first; at != last; ++at)
        for (const std::uint64_t number : at->second) {
            const auto pending = operations_.find(number);
            look_for_change(pending->second, call);
            if (pending->second.indexed) {
                for (const Piece& piece : pieces_of(pending->second.reads, 1))
                    reads_.erase(piece, number);
                for (const Piece& piece : pieces_of(pending->second.writes, 1))
                    writes_.erase(piece, number);
            }
            operations_.erase(pending);
        }
    groups_.erase(first, last);
}

}  // namespace osc::check
