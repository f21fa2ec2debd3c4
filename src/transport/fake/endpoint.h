// An endpoint of a fake fabric.
#pragma once

#include <atomic>
#include <vector>

#include "transport/fake/fabric.h"

namespace osc::fake {

class FakeEndpoint final : public ofi::Endpoint {
  public:
    FakeEndpoint(Fabric& fabric, std::uint32_t number);
    ~FakeEndpoint() override;

    const ofi::Address& address() const override { return address_; }
    const char* provider() const override { return "fake"; }
    std::uint32_t ipv4() const override { return 0; }
    bool insert(const ofi::Address& address, ofi::PeerId& peer) override;
    ofi::Posted send(ofi::PeerId peer, const void* message, std::size_t bytes, ofi::Operation& operation) override;
    ofi::Posted send_copied(ofi::PeerId peer, const void* message, std::size_t bytes) override;
    std::size_t largest_copied() const override { return behaviour().largest_copied; }
    ofi::Posted write(ofi::PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                      ofi::Operation& operation) override;
    ofi::Posted read(ofi::PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                     ofi::Operation& operation) override;
    ofi::Posted atomic(ofi::PeerId peer, ofi::Atomic& what, std::uint64_t address, std::uint64_t key,
                       ofi::Operation& operation) override;
    bool prefers_deposits() const override { return behaviour().deposits && behaviour().registers; }
    ofi::Posted deposit(ofi::PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        ofi::Operation* operation) override;
    bool settled() const override { return posting_.load(std::memory_order_acquire) == 0; }
    std::size_t largest_transfer() const override { return behaviour().largest_transfer; }
    std::size_t direct_from() const override { return behaviour().direct_from; }
    const char* flaw() const override { return behaviour().registers ? "" : "no memory can be registered"; }
    const char* atomics_flaw() const override { return behaviour().atomics ? "" : "has no atomics"; }
    bool expose(void* base, std::size_t bytes, ofi::Exposed& exposed) override;
    void revoke(ofi::Exposed& exposed) override;
    int poll(ofi::Receiver& receiver) override;
    int sleep(int milliseconds, ofi::Receiver& receiver) override;
    void wake() override;

  private:
    using Kind = Fabric::Kind;
    const Behaviour& behaviour() const { return fabric_.behaviour_; }
    ofi::Posted post(Kind kind, ofi::PeerId peer, const void* memory, std::size_t bytes, ofi::Operation* operation,
                     std::uint64_t address = 0, std::uint64_t key = 0, ofi::Atomic* atomic = nullptr);

    Fabric& fabric_;
    const std::uint32_t number_;
    ofi::Address address_;
    std::vector<Fabric::Event> events_;  // of the poll that is being made
    std::atomic<int> posting_{0};        // threads that post
    std::atomic<int> polling_{0};        // threads that poll: at most one
};

}  // namespace osc::fake
