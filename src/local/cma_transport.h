// The transport to memory of another process of this node that is not mapped here: put and get use process_vm_*,
// updates read, compute and write under the target's stripe lock.
#pragma once

#include "local/cma.h"
#include "local/updates.h"
#include "op/transport.h"

namespace osc::cma {

class Cross final : public Transport {
  public:
    /// `base`: address of displacement 0 in process `pid`.
    Cross(pid_t pid, std::uint64_t base, shm::Stripes stripes)
        : pid_(pid),
          base_(base),
          writes_(Direction::Write, pid),
          reads_(Direction::Read, pid),
          updates_(pid, base, stripes) {}

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    Fault finish() override;

  private:
    void note(Fault fault) {
        if (fault_ == Fault::None) fault_ = fault;
    }

    pid_t pid_;
    std::uint64_t base_;
    Batch writes_;
    Batch reads_;
    Updates updates_;
    Fault fault_ = Fault::None;
};

}  // namespace osc::cma
