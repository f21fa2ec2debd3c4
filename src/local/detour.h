// The way around process_vm_* for operations on a process whose memory they have reached, and to which the system
// refuses them now: a filter of system calls that the program has installed since, a process that has given up what
// its user may do.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/fault.h"
#include "local/locked.h"
#include "op/transport.h"

namespace osc::cma {

struct Place;

/// Opens other transports to memory.
class Detours {
  public:
    /// Null: no other way leads there.
    virtual std::unique_ptr<Transport> open_detour(const Place& place) = 0;

  protected:
    ~Detours() = default;
};

/// The memory of process `pid`, with displacement 0 at address `base`.
struct Place {
    pid_t pid;
    std::uint64_t base;
    shm::Stripes stripes;
    std::uint32_t rank = 0;
    Detours* detours = nullptr;
};

/// Of one operation. What the system has moved or updated before it refuses, it does not take.
class Detour {
  public:
    explicit Detour(const Place& place) : place_(place) {}

    /// Whether what a call has failed at with `error` goes this way.
    bool takes(int error) {
        if (error != EPERM && error != EACCES && error != ENOSYS) return false;
        if (way_ == nullptr && place_.detours != nullptr) way_ = place_.detours->open_detour(place_);
        return is_open();
    }
    bool is_open() const { return way_ != nullptr; }
    void move(bool write, std::uint64_t address, void* memory, std::size_t bytes) {
        way_->move(write, static_cast<std::int64_t>(address - place_.base), memory, bytes);
    }
    void update(const Update& how, std::uint64_t disp, const void* origin, void* result, std::size_t count) {
        way_->update(how, static_cast<std::int64_t>(disp), origin, result, count);
    }
    Fault finish() { return is_open() ? way_->finish() : Fault::None; }

  private:
    const Place place_;
    std::unique_ptr<Transport> way_;
};

}  // namespace osc::cma
