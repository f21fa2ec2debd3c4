// Filling messages, sending them, and bringing the answers home.
#include "transport/agent/remote.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/agent/answer.h"
#include "transport/direct/direct.h"

namespace osc::agent {
// Makes sure that a message of this kind is being filled that has room for data, and returns for how many bytes; 0 if
// the operation has failed.
std::size_t Remote::room(Kind kind, const Update& how) {
    if (fault_ != Fault::None) return 0;
    if (filling_ != Outbox::kNone) {
        const bool fits = header_.kind == kind && header_.basic == how.basic && header_.op == how.op &&
                          header_.parts < kMostParts && kind != Kind::CompareAndSwap;
        const std::size_t used = extents(kind, how.op, header_.bytes, header_.parts + 1).needed;
        const std::size_t per_byte = kind == Kind::UpdateReturn && how.op != Op::NoOp ? 2 : 1;
        // An element at least: 64 bytes hold any. The out area begins at a multiple of 16.
        if (fits && used + per_byte * 64 + 16 <= kPayload) return (kPayload - used - 16) / per_byte;
        send();
    }
    if (!acquire()) return 0;
    header_ = Header{};
    header_.kind = kind;
    header_.basic = how.basic;
    header_.op = how.op;
    header_.window = window_;
    how_ = how;
    return (kPayload - 32) / (kind == Kind::UpdateReturn && how.op != Op::NoOp ? 2 : 1);
}

// How much of a put or get goes into the next part. A cut lies where no naturally aligned word is in two parts.
std::size_t Remote::cut(Kind kind, std::int64_t disp, std::size_t bytes) {
    const std::size_t space = room(kind, Update{});
    if (bytes <= space || space == 0) return std::min(bytes, space);
    return space - static_cast<std::size_t>((base_ + static_cast<std::uint64_t>(disp) + space) % 16);
}

// Adds a part to the message; returns where its data goes.
std::byte* Remote::add(std::int64_t disp, std::size_t bytes, void* landing) {
    Slot& slot = outbox_.slot(filling_);
    const Part part{disp, bytes};
    if (header_.parts == 0) {
        header_.first = part;
    } else {
        std::memcpy(slot.payload + part_at(kPayload, header_.parts), &part, sizeof part);
    }
    std::byte* data = slot.payload + header_.bytes;
    ++header_.parts;
    header_.bytes += static_cast<std::uint32_t>(bytes);
    if (landing != nullptr) {
        outbox_.landings(filling_).push_back({landing, bytes});
        returns_ = true;
    }
    return data;
}

bool Remote::acquire() {
    filling_ = outbox_.try_claim();
    if (filling_ != Outbox::kNone) return true;
    // Messages that nobody waits for are the oldest. Then its own; without any, it waits for other threads, which wait
    // for agents only.
    while (outbox_.reap()) {
        filling_ = outbox_.try_claim();
        if (filling_ != Outbox::kNone) return true;
    }
    if (under_way_ > 0) {
        collect();
        if (fault_ != Fault::None) return false;
        filling_ = outbox_.try_claim();
        if (filling_ != Outbox::kNone) return true;
        while (under_way_ > 0)
            collect();
        if (fault_ != Fault::None) return false;
    }
    filling_ = outbox_.claim();
    return true;
}

void Remote::send() {
    const std::uint32_t number = std::exchange(filling_, Outbox::kNone);
    Slot& slot = outbox_.slot(number);
    slot.header = header_;
    slot.state.store(SlotState::Sent, std::memory_order_relaxed);
    if (!push(*connection_.box, connection_.card * kLinksPerCard + number)) {
        if (fault_ == Fault::None) fault_ = diag::fail(Fault::Dead, "the agent of rank %u has ended", rank_);
        outbox_.landings(number).clear();
        outbox_.give_back(number);
        return;
    }
    sent_[(first_ + under_way_++) % kSlots] = number;
}

// Waits for the oldest message under way.
void Remote::collect() {
    const std::uint32_t number = sent_[first_];
    first_ = (first_ + 1) % kSlots;
    --under_way_;
    Slot& slot = outbox_.slot(number);
    const bool answered = await_answer(slot, *connection_.box, *connection_.arena);
    if (fault_ == Fault::None) fault_ = answered ? fault_of(slot.status, rank_) : not_answered(rank_);
    if (fault_ == Fault::None) land(number);
    outbox_.landings(number).clear();
    outbox_.give_back(number);
}

void Remote::land(std::uint32_t number) {
    const std::vector<Landing>& landings = outbox_.landings(number);
    if (landings.empty()) return;
    const Slot& slot = outbox_.slot(number);
    const Header& header = slot.header;
    const std::byte* from = slot.payload + extents(header.kind, header.op, header.bytes, header.parts).out_at;
    for (const Landing& landing : landings) {
        if (header.kind == Kind::Get) {
            shm::move_bytes(landing.to, from, landing.bytes);
        } else {
            how_.copy(landing.to, from, landing.bytes / how_.width);  // padding at the origin stays as it is
        }
        from += landing.bytes;
    }
}

void Remote::put(std::int64_t disp, const void* from, std::size_t bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        const std::size_t n = cut(Kind::Put, disp, bytes);
        if (n == 0) return;
        shm::move_bytes(add(disp, n, nullptr), data, n);
        data += n;
        disp += static_cast<std::int64_t>(n);
        bytes -= n;
    }
}

void Remote::get(std::int64_t disp, void* to, std::size_t bytes) {
    auto* landing = static_cast<std::byte*>(to);
    while (bytes > 0) {
        const std::size_t n = cut(Kind::Get, disp, bytes);
        if (n == 0) return;
        add(disp, n, landing);
        landing += n;
        disp += static_cast<std::int64_t>(n);
        bytes -= n;
    }
}

void Remote::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    const auto* data = static_cast<const std::byte*>(origin);
    auto* landing = static_cast<std::byte*>(result);
    std::size_t left = count * how.width;
    while (left > 0) {
        const std::size_t space = room(result != nullptr ? Kind::UpdateReturn : Kind::Update, how);
        const std::size_t n = std::min(left, space / how.width * how.width);
        if (n == 0) return;
        std::byte* out = add(disp, n, landing);
        if (how.op != Op::NoOp) {
            std::memcpy(out, data, n);
            data += n;
        }
        if (landing != nullptr) landing += n;
        disp += static_cast<std::int64_t>(n);
        left -= n;
    }
}

void Remote::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                              void* result) {
    if (room(Kind::CompareAndSwap, how) == 0) return;
    std::byte* data = add(disp, how.width, result);
    std::memcpy(data, origin, how.width);
    std::memcpy(data + how.width, compare, how.width);
}

Fault Remote::finish() {
    if (filling_ != Outbox::kNone) send();
    if (pending_ != nullptr && !returns_ && fault_ == Fault::None) {
        for (; under_way_ > 0; --under_way_, first_ = (first_ + 1) % kSlots)
            outbox_.leave({sent_[first_], rank_, &connection_, pending_});
    }
    while (under_way_ > 0)
        collect();
    return fault_;
}

}  // namespace osc::agent
