// Accumulates by the provider's atomics: which the provider has, and the transport that splits an operation into rows
// of at most the provider's length.
//
// One mechanism of atomicity works on a location (invariant I1). So the mechanism depends on nothing but the element's
// type and alignment, and on the operation: all processes of the window choose alike. docs/NETWORK.md has the argument.
#pragma once

#include <array>

#include "net/origin/stream.h"

namespace osc::net {

/// How an accumulate travels. Refused: another operation on the element may go by the provider, and the two would not
/// be atomic.
enum class Mechanism { Message, Provider, Refused };

/// The atomics of a provider.
class AtomicsTable {
  public:
    AtomicsTable() = default;
    explicit AtomicsTable(const fabric::Endpoint& endpoint);

    /// Whether the provider has atomics on a type: at least replacing, reading and, where MPI admits it, comparing and
    /// swapping.
    bool has(Basic type) const { return has(type, Op::NoOp); }
    /// Whether it also has this operation, with a result and without.
    bool has(Basic type, Op op) const {
        return (ops_[static_cast<std::size_t>(type)] >> static_cast<unsigned>(op) & 1) != 0;
    }
    /// The mechanism of an operation, Op::None for compare-and-swap. `promised`: operations that meet at an element are
    /// the same one or MPI_NO_OP.
    Mechanism mechanism(Basic type, Op op, bool promised) const;
    bool is_empty() const;
    /// A number of 31 bits, which differs for different tables but for one in 2^31.
    int sum() const;

  private:
    std::array<std::uint16_t, static_cast<std::size_t>(Basic::Count)> ops_{};  // by type: a bit for each operation
};

/// For one accumulate, compare-and-swap included, by the thread that holds the stream's mutex. Rows of elements that
/// are not aligned go by message.
class ProviderAtomics final : public Transport {
  public:
    /// `base` and `key`: of the target's displacement 0, as its Description has them.
    ProviderAtomics(Stream& stream, const fabric::Endpoint& endpoint, std::uint64_t base, std::uint64_t key)
        : stream_(stream), endpoint_(endpoint), base_(base), key_(key) {}

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override {
        stream_.move(write, disp, memory, bytes);
    }
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    Fault finish() override { return stream_.finish(); }

  private:
    static bool is_aligned(const Update& how, std::int64_t disp) {
        return static_cast<std::uint64_t>(disp) % how.width == 0;
    }
    std::uint64_t address(std::int64_t disp) const { return base_ + static_cast<std::uint64_t>(disp); }

    Stream& stream_;
    const fabric::Endpoint& endpoint_;
    const std::uint64_t base_;
    const std::uint64_t key_;
};

}  // namespace osc::net
