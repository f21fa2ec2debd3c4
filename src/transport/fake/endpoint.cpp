// The interface of endpoint.h over the fabric.
#include "transport/fake/endpoint.h"

#include <chrono>
#include <cstring>

namespace osc::fake {
namespace {

/// Addresses are good in one fabric only.
struct Name {
    const Fabric* fabric;
    std::uint32_t number;
};

}  // namespace

std::unique_ptr<ofi::Endpoint> Fabric::open() {
    std::uint32_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back(std::make_unique<Node>());
        for (const auto& node : nodes_)
            node->channels.resize(nodes_.size());
    }
    return std::make_unique<FakeEndpoint>(*this, number);
}

FakeEndpoint::FakeEndpoint(Fabric& fabric, std::uint32_t number) : fabric_(fabric), number_(number) {
    const Name name{&fabric, number};
    std::memcpy(address_.bytes, &name, sizeof name);
    address_.size = sizeof name;
}

FakeEndpoint::~FakeEndpoint() {
    fabric_.close(number_);
}

bool FakeEndpoint::insert(const ofi::Address& address, ofi::PeerId& peer) {
    Name name{};
    std::memcpy(&name, address.bytes, sizeof name);
    if (address.size != sizeof name || name.fabric != &fabric_) return false;
    peer = name.number;
    return true;
}

ofi::Posted FakeEndpoint::post(Kind kind, ofi::PeerId peer, const void* memory, std::size_t bytes,
                               ofi::Operation* operation, std::uint64_t address, std::uint64_t key,
                               ofi::Atomic* atomic) {
    Fabric::Parcel parcel;
    parcel.kind = kind;
    parcel.from = number_;
    parcel.to = static_cast<std::uint32_t>(peer);
    parcel.operation = operation;
    parcel.memory = static_cast<std::byte*>(const_cast<void*>(memory));
    parcel.bytes = bytes;
    parcel.address = address;
    parcel.key = key;
    parcel.atomic = atomic;
    posting_.fetch_add(1, std::memory_order_seq_cst);
    ofi::Posted posted = ofi::Posted::Failed;
    {
        const std::lock_guard lock(fabric_.mutex_);
        posted = fabric_.post(std::move(parcel));
    }
    posting_.fetch_sub(1, std::memory_order_release);
    return posted;
}

ofi::Posted FakeEndpoint::send(ofi::PeerId peer, const void* message, std::size_t bytes, ofi::Operation& operation) {
    if (bytes > ofi::kLargestMessage) return ofi::Posted::Failed;
    return post(Kind::Message, peer, message, bytes, &operation);
}

ofi::Posted FakeEndpoint::send_copied(ofi::PeerId peer, const void* message, std::size_t bytes) {
    if (bytes > largest_copied()) return ofi::Posted::Failed;
    return post(Kind::Message, peer, message, bytes, nullptr);
}

ofi::Posted FakeEndpoint::write(ofi::PeerId peer, const void* from, std::size_t bytes, std::uint64_t address,
                                std::uint64_t key, ofi::Operation& operation) {
    if (bytes > largest_transfer()) return ofi::Posted::Failed;
    return post(Kind::Write, peer, from, bytes, &operation, address, key);
}

ofi::Posted FakeEndpoint::read(ofi::PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                               ofi::Operation& operation) {
    if (bytes > largest_transfer()) return ofi::Posted::Failed;
    return post(Kind::Read, peer, to, bytes, &operation, address, key);
}

ofi::Posted FakeEndpoint::atomic(ofi::PeerId peer, ofi::Atomic& what, std::uint64_t address, std::uint64_t key,
                                 ofi::Operation& operation) {
    if (!behaviour().atomics || address % sizeof what.operand != 0) return ofi::Posted::Failed;
    return post(Kind::Atomic, peer, nullptr, sizeof what.operand, &operation, address, key, &what);
}

ofi::Posted FakeEndpoint::deposit(ofi::PeerId peer, const void* from, std::size_t bytes, std::uint64_t address,
                                  std::uint64_t key, ofi::Operation* operation) {
    if (operation == nullptr && bytes > largest_copied()) return ofi::Posted::Failed;
    return post(Kind::Deposit, peer, from, bytes, operation, address, key);
}

bool FakeEndpoint::expose(void* base, std::size_t bytes, ofi::Exposed& exposed) {
    const std::lock_guard lock(fabric_.mutex_);
    Fabric::Node& node = *fabric_.nodes_[number_];
    if (!behaviour().registers || node.regions.size() >= behaviour().registrations) return false;
    exposed.key = behaviour().provider_keys ? ++node.last_key : fabric_.random_() | 1;
    exposed.base = behaviour().virtual_addresses ? reinterpret_cast<std::uint64_t>(base) : 0;
    exposed.registration = base;
    node.regions[exposed.key] = {static_cast<std::byte*>(base), bytes, exposed.base};
    return true;
}

void FakeEndpoint::revoke(ofi::Exposed& exposed) {
    const std::lock_guard lock(fabric_.mutex_);
    if (exposed.registration != nullptr && fabric_.nodes_[number_]->regions.erase(exposed.key) != 1)
        fabric_.violation("memory was revoked that is not exposed");
    exposed = {};
}

int FakeEndpoint::poll(ofi::Receiver& receiver) {
    bool alone = polling_.fetch_add(1, std::memory_order_acquire) == 0;
    events_.clear();
    {
        const std::lock_guard lock(fabric_.mutex_);
        if (!alone) fabric_.violation("two threads poll one endpoint");
        if (!fabric_.nodes_[number_]->dead) {
            fabric_.progress(number_);
            fabric_.collect(number_, events_);
        }
    }
    for (const Fabric::Event& event : events_) {
        if (event.message != nullptr) {
            // A copy of its own: a repeated message arrives as it was sent.
            std::vector<std::byte> buffer = event.message->data;
            receiver.received(buffer.data(), buffer.size());
        } else {
            event.operation->ended(*event.operation, event.error);
        }
    }
    polling_.fetch_sub(1, std::memory_order_release);
    return static_cast<int>(events_.size());
}

int FakeEndpoint::sleep(int milliseconds, ofi::Receiver& receiver) {
    int moved = 0;
    {
        const bool landed = receiver.landed();
        std::unique_lock lock(fabric_.mutex_);
        Fabric::Node& node = *fabric_.nodes_[number_];
        const auto stirred = [&] { return node.woken || node.moved || (!node.dead && fabric_.pending(node)); };
        if (!landed) {
            if (milliseconds < 0)
                node.bell.wait(lock, stirred);
            else
                node.bell.wait_for(lock, std::chrono::milliseconds(milliseconds), stirred);
        }
        moved = node.moved || fabric_.pending(node) ? 1 : 0;
        node.woken = false;
        node.moved = false;
    }
    const int events = poll(receiver);
    return events > 0 ? events : moved;
}

void FakeEndpoint::wake() {
    const std::lock_guard lock(fabric_.mutex_);
    fabric_.nodes_[number_]->woken = true;
    fabric_.nodes_[number_]->bell.notify_one();
}

}  // namespace osc::fake
