// The way to a target of whose memory a part is mapped here: whole pages that its owner shares, between edges that it
// does not. Each piece of an operation goes by load and store, or as to private memory.
#pragma once

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

class MixedTransport final : public Transport {
  public:
    /// Displacements [first, end) are mapped here, with displacement `first` at `mapped`. `edges` is the transport to
    /// any displacement of the target. Both count as one mechanism: they take the same stripes.
    MixedTransport(std::byte* mapped, std::int64_t first, std::int64_t end, shm::Stripes stripes, Transport& edges)
        : mapped_(mapped, stripes, first), edges_(edges), first_(first), end_(end) {}

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    Fault finish() override;
    /// The same for the mapped part alone.
    Fault finish_mapped() { return mapped_.finish(); }
    /// Whether some bytes went by the other transport.
    bool used_edges() const { return used_edges_; }

  private:
    bool is_mapped(std::int64_t disp, std::size_t bytes) const {
        return disp >= first_ && disp + static_cast<std::int64_t>(bytes) <= end_;
    }
    template <class F>
    void split(std::int64_t disp, std::size_t units, std::size_t unit, F&& f);

    shm::Direct mapped_;
    Transport& edges_;
    std::int64_t first_, end_;
    bool used_edges_ = false;
};

}  // namespace osc::reach
