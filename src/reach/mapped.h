// The way to memory that is mapped here: loads and stores. Updates of a long run wait in a batch; the targets of such a
// run are closed for the fast paths, so that every other operation on them ends it first.
#pragma once

#include "reach/reach.h"

namespace osc::reach {

class Mapped final : public LocalReach {
  public:
    explicit Mapped(const Origin& origin) : LocalReach(origin), run_(origin) {}

    Outcome simple(Target& target, const op::Simple& what, bool prepared) override;
    Fault complete(std::uint32_t /*rank*/, Completion /*until*/) override { return run_.take_fault(); }
    void end_run() override { run_.end(); }
    void leave_run(Target& target) override;

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;

  private:
    bool joins(Target& target, const op::Simple& what);

    Run run_;
};

}  // namespace osc::reach
