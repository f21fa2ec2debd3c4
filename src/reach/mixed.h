// The way to a target of whose memory a part is mapped here: whole pages that its owner shares, between edges that it
// does not. Each piece of an operation goes by load and store, or as to private memory.
#pragma once

#include "base/function_ref.h"
#include "local/direct.h"
#include "reach/mapped.h"
#include "reach/private.h"

namespace osc::reach {

class Mixed final : public LocalReach {
  public:
    Mixed(const Origin& origin, Mapped& pages, Private& edges) : LocalReach(origin), pages_(pages), edges_(edges) {}

    Outcome simple(Target& target, const op::Simple& what, bool prepared) override;
    void leave_run(Target& target) override {
        pages_.leave_run(target);
        edges_.leave_run(target);
    }

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;
    stats::DataPath path(const Target& target) const override { return edges_.path(target); }

  private:
    Mapped& pages_;
    Private& edges_;
};

/// A transport that passes each part of an operation on to another one.
class SplitTransport : public Transport {
  public:
    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) final;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) final;

  protected:
    using Part = base::FunctionRef<void(Transport& by, std::int64_t disp, std::size_t units)>;
    /// Calls `part` for each part of `units` units of `unit` bytes from `disp` on.
    virtual void split(std::int64_t disp, std::size_t units, std::size_t unit, Part part) = 0;
};

class MixedTransport final : public SplitTransport {
  public:
    /// Displacements [first, end) are mapped here, with displacement `first` at `mapped`. `edges` is the transport to
    /// any displacement of the target. Both count as one mechanism: they take the same stripes.
    MixedTransport(std::byte* mapped, std::int64_t first, std::int64_t end, shm::Stripes stripes, Transport& edges)
        : mapped_(mapped, stripes, first), edges_(edges), first_(first), end_(end) {}

    Fault finish() override;
    /// The same for the mapped part alone.
    Fault finish_mapped() { return mapped_.finish(); }
    /// Whether some bytes went by the other transport.
    bool used_edges() const { return used_edges_; }

  private:
    void split(std::int64_t disp, std::size_t units, std::size_t unit, Part part) override;

    shm::Direct mapped_;
    Transport& edges_;
    std::int64_t first_, end_;
    bool used_edges_ = false;
};

}  // namespace osc::reach
