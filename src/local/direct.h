// The transport to memory that is mapped here: loads and stores.
#pragma once

#include "base/copy_bytes.h"
#include "local/locked.h"
#include "op/transport.h"

namespace osc::shm {

/// Moves `bytes` bytes; 1, 2, 4 and 8 as one load and one store, so that an aligned element is never seen half written.
inline void move_bytes(void* to, const void* from, std::size_t bytes) {
    switch (bytes) {
        case 1:
            *static_cast<volatile std::uint8_t*>(to) = *static_cast<const volatile std::uint8_t*>(from);
            return;
        case 2:
            __builtin_memcpy(to, from, 2);
            return;
        case 4:
            __builtin_memcpy(to, from, 4);
            return;
        case 8:
            __builtin_memcpy(to, from, 8);
            return;
        default:
            base::copy_bytes(to, from, bytes);
    }
}

class Direct final : public Transport {
  public:
    /// `base`: the address at which displacement `zero` of the target is mapped.
    Direct(std::byte* base, Stripes stripes, std::int64_t zero = 0) : base_(base), zero_(zero), stripes_(stripes) {}

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override {
        if (write)
            move_bytes(at(disp), memory, bytes);
        else
            move_bytes(memory, at(disp), bytes);
    }
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    void update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                    std::byte* result, std::size_t bytes) override;
    Fault finish() override { return fault_; }

  private:
    std::byte* at(std::int64_t disp) const { return base_ + (disp - zero_); }

    std::byte* base_;
    std::int64_t zero_;
    Stripes stripes_;
    Fault fault_ = Fault::None;
};

}  // namespace osc::shm
