// The first fault of several steps, of which later ones may fail too.
#pragma once

#include "base/fault.h"

namespace osc::base {

class FirstFault {
  public:
    /// Keeps the fault that a call of this thread has just returned, with its line, if it is the first one.
    void note(Fault fault) {
        if (fault != Fault::None && !is_set()) keep(fault);
    }
    bool is_set() const { return fault_ != Fault::None; }
    /// Returns the fault, once, as if it had just arisen.
    Fault take() { return is_set() ? raise() : Fault::None; }

  private:
    void keep(Fault fault);
    Fault raise();

    Fault fault_ = Fault::None;
    char text_[kLongestFault];  // once there is a fault; an allocation could fail
};

}  // namespace osc::base
