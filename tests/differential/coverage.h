// Which combinations have run. Every rank counts all operations of all ranks, so the counts are the same everywhere.
#pragma once

#include "plan.h"

namespace diff {

class Coverage {
  public:
    void note(Flavor flavor, Sync sync, const Operation& op);
    void note(Flavor flavor, Sync sync, Call call, const Basic& basic, Shape there, Shape here);
    /// Prints the counts; returns how many possible pairs have not run.
    int report(bool print) const;

  private:
    static constexpr std::size_t kCalls = static_cast<std::size_t>(Call::Count);
    static constexpr std::size_t kShapes = static_cast<std::size_t>(Shape::Count);
    static constexpr std::size_t kSyncs = static_cast<std::size_t>(Sync::Count);
    static constexpr std::size_t kFlavors = static_cast<std::size_t>(Flavor::Count);
    long flavor_call_[kFlavors][kCalls] = {};
    long call_shape_[kCalls][kShapes] = {};
    long call_sync_[kCalls][kSyncs] = {};
    long flavor_sync_[kFlavors][kSyncs] = {};
    std::vector<long> basic_ = std::vector<long>(basics().size(), 0);
    long operations_ = 0;
};

}  // namespace diff
