// An endpoint of a fake fabric.
#pragma once

#include <atomic>
#include <vector>

#include "fake_fabric/fabric.h"

namespace osc::fake {

class FakeEndpoint final : public fabric::Endpoint {
  public:
    FakeEndpoint(Fabric& fabric, std::uint32_t number);
    ~FakeEndpoint() override;

    const fabric::Address& address() const override { return address_; }
    const char* provider() const override { return "fake"; }
    std::uint32_t ipv4() const override { return 0; }
    bool insert(const fabric::Address& address, fabric::PeerId& peer) override;
    fabric::Posted send(fabric::PeerId peer, const void* message, std::size_t bytes,
                        fabric::Operation& operation) override;
    fabric::Posted send_copied(fabric::PeerId peer, const void* message, std::size_t bytes) override;
    std::size_t largest_copied() const override { return behaviour().largest_copied; }
    fabric::Posted write(fabric::PeerId peer, const void* from, std::size_t bytes, std::uint64_t address,
                         std::uint64_t key, fabric::Operation& operation) override;
    fabric::Posted read(fabric::PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        fabric::Operation& operation) override;
    std::size_t longest_row(fabric::RowForm form, Basic type, Op op) const override;
    fabric::Posted update(fabric::PeerId peer, fabric::AtomicRow& row, std::uint64_t address, std::uint64_t key,
                          fabric::Operation& operation) override;
    bool has_hardware_atomics() const override { return false; }
    std::size_t largest_message() const override { return behaviour().buffer; }
    std::size_t largest_transfer() const override { return behaviour().largest_transfer; }
    std::size_t direct_from() const override { return behaviour().direct_from; }
    const char* flaw() const override { return behaviour().registers ? "" : "no memory can be registered"; }
    const char* atomics_flaw() const override { return behaviour().atomics ? "" : "has no atomics"; }
    bool expose(void* base, std::size_t bytes, fabric::Exposed& exposed) override;
    void revoke(fabric::Exposed& exposed) override;
    int poll(fabric::Receiver& receiver) override;
    int sleep(int milliseconds, fabric::Receiver& receiver) override;
    void wake() override;

  private:
    using ParcelKind = Fabric::ParcelKind;
    const Behaviour& behaviour() const { return fabric_.behaviour_; }
    fabric::Posted post(ParcelKind kind, fabric::PeerId peer, const void* memory, std::size_t bytes,
                        fabric::Operation* operation, std::uint64_t address = 0, std::uint64_t key = 0,
                        fabric::AtomicRow* row = nullptr);

    Fabric& fabric_;
    const std::uint32_t number_;
    fabric::Address address_;
    std::vector<Fabric::Event> events_;  // of the current poll
    std::atomic<int> polling_{0};        // threads inside poll(): at most one
};

}  // namespace osc::fake
