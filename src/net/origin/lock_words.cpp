// Atomics on lock words, each awaited.
// Build: osc_core_cold
#include "net/origin/lock_words.h"

#include <atomic>
#include <cstring>
#include <memory>

namespace osc::net {

using fabric::RowForm;

/// One atomic. A caller that gives it up because the target is dead leaves it to the provider, which may still end it.
struct LockWords::Call {
    enum class State { UnderWay, Ended, Left };
    Call(RowForm form, std::uint64_t operand, std::uint64_t expected)
        : row(form, Basic::U64, Op::Sum, 1, sizeof operand) {
        std::memcpy(row.operands(), &operand, sizeof operand);
        if (form == RowForm::Swap) std::memcpy(row.expected(), &expected, sizeof expected);
    }

    Transfer transfer;
    fabric::AtomicRow row;
    Status status = Status::Done;
    std::atomic<State> state{State::UnderWay};

    static void ended(Transfer& transfer, Status status) {
        auto* call = static_cast<Call*>(transfer.owner);
        call->status = status;
        if (call->state.exchange(State::Ended, std::memory_order_seq_cst) == State::Left) delete call;
    }
};

LockWords::LockWords(NetworkStack& network, RemoteWindow& far, std::uint32_t me)
    : network_(network), far_(far), me_(me) {
    fabric::Endpoint& endpoint = network_.endpoint();
    if (endpoint.atomics_flaw()[0] == '\0') endpoint.expose(words_, sizeof words_, exposed_);
}

LockWords::~LockWords() {
    network_.endpoint().revoke(exposed_);
}

const char* LockWords::flaw() const {
    const char* flaw = network_.endpoint().atomics_flaw();
    return flaw[0] != '\0' || exposed_.registration != nullptr ? flaw : "can register no memory for them";
}

// This process's own words are reached through the provider too.
Fault LockWords::find(std::uint32_t rank, WordAddress& place) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = addresses_.find(rank); found != addresses_.end()) {
            place = found->second;
            return Fault::None;
        }
    }
    place.to = far_.connect(rank);
    if (place.to == nullptr) return Fault::Other;
    if (rank == me_) {
        place.base = exposed_.base;
        place.key = exposed_.key;
    } else {
        Stream* stream = far_.stream(rank);
        if (stream == nullptr) return Fault::Other;
        const std::lock_guard lock(stream->mutex);
        Description there{};
        if (const Fault fault = stream->queries.describe(there); fault != Fault::None) return fault;
        place.base = there.words_base;
        place.key = there.words_key;
    }
    const std::lock_guard lock(mutex_);
    addresses_[rank] = place;
    return Fault::None;
}

Fault LockWords::perform(std::uint32_t rank, Word word, RowForm form, std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t& before) {
    using State = Call::State;
    WordAddress place;
    if (const Fault fault = find(rank, place); fault != Fault::None) return fault;
    auto call = std::make_unique<Call>(form, operand, expected);
    call->transfer.connection = place.to;
    call->transfer.owner = call.get();
    call->transfer.ended = &Call::ended;
    const std::uint64_t address = place.base + sizeof words_[0] * static_cast<std::uint64_t>(word);
    network_.rdma.update_when_room(call->transfer, call->row, address, place.key);
    const bool ended = network_.engine.wait([&] { return call->state.load(std::memory_order_seq_cst) == State::Ended; },
                                            [&] { return rank != me_ && !network_.messenger.alive(*place.to); });
    if (!ended && call->state.exchange(State::Left, std::memory_order_seq_cst) != State::Ended) {
        static_cast<void>(call.release());
        return net::fault_of(place.to->end.load(std::memory_order_acquire), rank);
    }
    if (call->status != Status::Done) return net::fault_of(call->status, rank);
    std::memcpy(&before, call->row.before(), sizeof before);
    return Fault::None;
}

Fault LockWords::add(std::uint32_t rank, Word word, std::uint64_t value, std::uint64_t& before) {
    return perform(rank, word, RowForm::Fetch, value, 0, before);
}

Fault LockWords::swap(std::uint32_t rank, Word word, std::uint64_t expected, std::uint64_t wanted,
                      std::uint64_t& before) {
    return perform(rank, word, RowForm::Swap, wanted, expected, before);
}

}  // namespace osc::net
