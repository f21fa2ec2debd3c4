// The ways to memory of another process of this node that is not mapped here: put and get use process_vm_*, updates
// read, compute and write under the target's stripe lock.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/fault.h"
#include "local/cma.h"
#include "local/detour.h"
#include "local/updates.h"
#include "op/call.h"
#include "op/simple.h"
#include "op/transport.h"

namespace osc::cma {

/// Gets, which happen in any order. Those that lie near one another are read with the gaps between them.
class Gets {
  public:
    Gets(pid_t pid, Detour& detour) : pid_(pid), detour_(detour) {}

    /// Collects a get; performs all when there are many. `to` is in use until finish().
    void add(std::uint64_t address, void* to, std::size_t bytes) {
        gets_[count_] = {address, static_cast<std::byte*>(to), bytes, nullptr};
        if (++count_ == kMost) perform();
    }
    /// Performs the remaining gets. Returns 0 or the first errno.
    int finish() {
        perform();
        return error_;
    }

  private:
    struct Get {
        std::uint64_t address;
        std::byte* to;
        std::size_t bytes;
        const std::byte* copy;  // null: read to its place

        std::uint64_t end() const { return address + bytes; }
    };
    static constexpr std::size_t kMost = 512;

    void perform();
    int read(std::span<Get> gets);

    pid_t pid_;
    Detour& detour_;
    std::size_t count_ = 0;
    int error_ = 0;
    Get gets_[kMost];
};

class Cross final : public Transport {
  public:
    explicit Cross(const Place& place)
        : pid_(place.pid),
          base_(place.base),
          detour_(place),
          writes_(Direction::Write, pid_, &detour_),
          gets_(pid_, detour_),
          updates_(place, &detour_) {}
    Cross(const Cross&) = delete;
    Cross& operator=(const Cross&) = delete;

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override;
    void move_all(const op::Call& call, std::int64_t start) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    Fault finish() override;
    /// Whether the system has refused something, which has gone another way.
    bool has_detour() const { return detour_.is_open(); }

  private:
    bool get_with_gaps(const op::Call& call, std::int64_t start);
    void note(Fault fault) {
        if (fault_ == Fault::None) fault_ = fault;
    }

    pid_t pid_;
    std::uint64_t base_;
    Detour detour_;
    PieceList writes_;
    Gets gets_;
    Updates updates_;
    Fault fault_ = Fault::None;
};

/// Simple operations of several calls on the memory of one process, performed together: a call of the system costs as
/// much as the copies of dozens of them. One thread at a time.
class Collected {
  public:
    static constexpr std::size_t kMostPut = 64;    // bytes: a put is copied
    static constexpr std::size_t kMostGet = 1024;  // bytes: longer ones gain little

    explicit Collected(const Place& place) : place_(place) {}

    /// Adds an operation on the bytes at `disp`, an update of one element at the most. Its operands are copied; its
    /// result is in use until finish().
    void add(const op::Simple& what, std::int64_t disp);
    /// Performs all operations. The first fault since the last call; operations behind a fault may be lost.
    Fault finish();

  private:
    template <class T>
    T* keep(const void* from, std::size_t bytes);
    void perform();

    const Place place_;
    std::optional<Cross> cross_;
    const Update* how_ = nullptr;  // of the last update
    base::FirstFault fault_;
    std::size_t used_ = 0;                                 // bytes of copies_
    alignas(Update) std::array<std::byte, 16384> copies_;  // puts without gaps, so that adjacent ones are one piece
};

}  // namespace osc::cma
