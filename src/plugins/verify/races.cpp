// Feeds the parts of conflict detection, carries accesses between processes, and words the reports.
// Build: osc_verify_core
#include "plugins/verify/races.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "op/kernels.h"
#include "plugins/verify/ledger.h"
#include "shm/machine.h"

namespace osc::check {
namespace {

constexpr std::size_t kMostLocal = 131072;  // loads and stores between two comparisons

static_assert(std::is_trivially_copyable_v<Access> && std::is_trivially_copyable_v<Piece>);

// Processes with the same number read the same clock: one kernel, one time namespace.
std::uint64_t clock_number() {
    struct stat space {};
    const bool known = ::stat("/proc/thread-self/ns/time", &space) == 0;  // absent: kernels before 5.6 have one clock
    return shm::machine_number() ^ (known ? static_cast<std::uint64_t>(space.st_ino) * 0x9e3779b97f4a7c15ull : 0);
}

template <class T>
void append(Message& message, const T* data, std::size_t count) {
    const std::size_t before = message.size();
    message.resize(before + count * sizeof(T));
    if (count != 0) std::memcpy(message.data() + before, data, count * sizeof(T));
}

// Takes values from the front of a message; false if it has not so many.
template <class T>
bool take(std::span<const std::byte>& rest, T* data, std::uint64_t count) {
    if (rest.size() / sizeof(T) < count) return false;
    if (count > 0) std::memcpy(data, rest.data(), count * sizeof(T));
    rest = rest.subspan(count * sizeof(T));
    return true;
}

bool is_valid(const Access& access) {
    return access.kind <= op::OpKind::CompareAndSwap && access.op < Op::Count && access.basic < Basic::Count &&
           access.world <= World::Lock && access.call[sizeof access.call - 1] == '\0';
}

std::string text_of(Bytes where, bool addresses) {
    return addresses
               ? base::format("addresses [0x%llx, 0x%llx)", static_cast<unsigned long long>(where.lo),
                              static_cast<unsigned long long>(where.hi))
               : base::format("bytes [%lld, %lld)", static_cast<long long>(where.lo), static_cast<long long>(where.hi));
}

std::string reason_of(const Conflict& conflict) {
    const Access& a = conflict.accesses[0];
    const Access& b = conflict.accesses[1];
    if (conflict.clash == Clash::Types)
        return std::string("; accumulates of different types: ") + op::name(a.basic) + ", " + op::name(b.basic);
    if (conflict.clash == Clash::Operations)
        return std::string("; accumulates of different operations: ") + op::name(a.op) + ", " + op::name(b.op);
    return conflict.clash == Clash::Elements ? "; accumulates whose elements overlap in part" : "";
}

}  // namespace

Message to_message(std::uint64_t clock, const Entries& entries) {
    Message message;
    append(message, &clock, 1);
    for (const Entry& entry : entries) {
        const std::uint64_t pieces = entry.pieces.size();
        append(message, &entry.access, 1);
        append(message, &pieces, 1);
        append(message, entry.pieces.data(), entry.pieces.size());
    }
    return message;
}

bool from_message(const Message& message, std::uint64_t& clock, Entries& entries) {
    std::span<const std::byte> rest(message);
    if (!take(rest, &clock, 1)) return false;
    while (!rest.empty()) {
        Entry entry;
        std::uint64_t pieces = 0;
        if (!take(rest, &entry.access, 1) || !is_valid(entry.access) || !take(rest, &pieces, 1) || pieces == 0 ||
            pieces > rest.size() / sizeof(Piece))
            return false;
        entry.pieces.resize(pieces);
        take(rest, entry.pieces.data(), pieces);
        for (const Piece& piece : entry.pieces)
            if (piece.bytes <= 0 || piece.count < 1 || (piece.count > 1 && piece.stride <= piece.bytes)) return false;
        entries.push_back(std::move(entry));
    }
    return true;
}

std::vector<Line> lines_of(const Conflict& conflict, bool addresses) {
    const std::string bytes = text_of(conflict.where, addresses);
    std::vector<Line> lines;
    for (int i = 0; i < 2; ++i) {
        const Access& access = conflict.accesses[i];
        std::string text = std::string(access.call) + " of rank " + std::to_string(conflict.origins[i]);
        if (access.local)
            text += " in its own memory, " + bytes + ", in an epoch that exposes it to the operation";
        else
            text += " at rank " + std::to_string(conflict.target) + ", " + bytes;
        if (i == 1 && !access.local)
            text += (conflict.origins[0] == conflict.origins[1] ? ", while the first is not complete"
                                                                : ", and no synchronisation orders the two") +
                    reason_of(conflict);
        lines.push_back({std::move(text), Site{access.site}});
    }
    return lines;
}

Races::Races(const Ledger& ledger, Setting setting)
    : ledger_(ledger),
      setting_(std::move(setting)),
      log_(setting_.me, setting_.promises),
      finder_(setting_.me, setting_.promises),
      notifications_(setting_.threads) {}

void Races::on_operation(const Operation& operation) {
    std::vector<Conflict> found;
    {
        const std::lock_guard lock(mutex_);
        log_.add(operation, now_ns(), found);
    }
    tell(found);
}

// What the call completes counts as complete from its begin: its effects may reach other processes before it returns.
void Races::before(const Synchronisation& call) {
    const std::int64_t now = now_ns();
    const std::lock_guard lock(mutex_);
    if (call.act == Act::Fence || call.act == Act::Wait || call.act == Act::Free) conceal();
    if (completes(call.act)) log_.complete(call.target, now);
    if (call.act == Act::FlushLocal) log_.complete_results(call.target, now);
    if (call.act == Act::Complete) log_.end_start();
    if (call.act == Act::Unlock) log_.unlock(call.target);
    if (call.act == Act::UnlockAll) log_.lock_all(false);
}

void Races::after(const Synchronisation& call) {
    const std::lock_guard lock(mutex_);
    if (call.act == Act::Start) log_.start(call.group);
    if (call.act == Act::Post) {
        finder_.post(call.group, now_ns());
        expose(World::Pscw);
    }
    if (call.act == Act::Wait) conceal();
    if (call.act == Act::Fence && call.exposes) expose(World::Fence);
    if (call.act == Act::Lock) log_.lock(call.target, call.exclusive);
    if (call.act == Act::LockAll) log_.lock_all(true);
}

void Races::on_notification(std::uint32_t counter, std::uint64_t value, bool resets) {
    const std::lock_guard lock(mutex_);
    notifications_.observe(counter, value, resets, now_ns());
}

void Races::on_new_counters() {
    const std::lock_guard lock(mutex_);
    notifications_.reset_all();
}

// Ends notified operations where this process may have known them complete. Times of another clock say nothing.
void Races::end_notified(std::uint64_t clock, Entries& entries) const {
    const bool same = clock == clock_number();
    for (auto& [access, pieces] : entries) {
        if (access.notification < 0) continue;
        const auto counter = static_cast<std::uint32_t>(access.notification);
        access.ended = same ? std::min(access.ended, notifications_.seen_since(counter, access.began)) : access.began;
    }
}

// Loads and stores are recorded from here on.
void Races::expose(World world) {
    conceal();
    exposed_ = world;
    if (guard_ != nullptr) guard_->close();
}

// Keeps what has been recorded.
void Races::conceal() {
    if (guard_ == nullptr) return;
    guard_->open();
    for (const Touch& touch : guard_->take()) {
        if (local_.size() == kMostLocal) return;
        Access access;
        access.site = touch.site.value;
        access.issued = touch.when;
        access.fence = log_.fences();
        access.exposure = exposed_ == World::Pscw ? finder_.exposures() : 0;
        std::strcpy(access.call, touch.store ? "store" : "load");
        access.kind = touch.store ? op::OpKind::Put : op::OpKind::Get;
        access.world = exposed_;
        access.local = true;
        local_.push_back({access, {{touch.offset, 1, 0, 1}}});
    }
}

bool Races::compare() {
    if (failed_) return false;
    std::vector<Message> out(setting_.processes);
    std::vector<Message> in;
    std::uint64_t left_out = 0;
    {
        const std::lock_guard lock(mutex_);
        log_.fence(now_ns());
        const std::uint64_t clock = clock_number();
        for (const auto& [target, entries] : log_.take())
            out[target] = to_message(clock, entries);
        left_out = log_.take_left_out();
    }
    if (!setting_.exchange(out, in)) {
        failed_ = true;
        return false;
    }
    std::vector<Conflict> found;
    bool time = false;
    {
        const std::lock_guard lock(mutex_);
        for (std::uint32_t origin = 0; origin < in.size(); ++origin) {
            std::uint64_t clock = 0;
            Entries entries;
            if (in[origin].empty() || !from_message(in[origin], clock, entries)) continue;
            end_notified(clock, entries);
            finder_.add(origin, clock, std::move(entries));
        }
        finder_.add_local(clock_number(), std::exchange(local_, {}));
        found = finder_.find();
        time = finder_.take_incomplete();
    }
    tell(found);
    tell_incomplete(left_out, time);
    return true;
}

// A source line may load and store by several instructions: the first one counts.
void Races::tell(const std::vector<Conflict>& found) {
    for (const Conflict& conflict : found) {
        const auto& [operation, local] = conflict.accesses;
        if (local.local && !reported_local_.emplace(operation.site, check::text_of(Site{local.site})).second) continue;
        ledger_.report(Rule::Conflict, lines_of(conflict, setting_.addresses));
    }
}

void Races::tell_incomplete(std::uint64_t left_out, bool time) {
    if (told_incomplete_ || (left_out == 0 && !time)) return;
    told_incomplete_ = true;
    if (left_out > 0)
        base::say("OSC_CHECK: %s: %llu accesses were too many, or of too many pieces, to compare with those of others",
                  ledger_.name().c_str(), static_cast<unsigned long long>(left_out));
    else
        base::say("OSC_CHECK: %s: accesses were too many to compare all with those of others", ledger_.name().c_str());
}

}  // namespace osc::check
