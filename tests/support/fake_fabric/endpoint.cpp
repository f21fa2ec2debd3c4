// The interface of endpoint.h over the fabric.
#include "fake_fabric/endpoint.h"

#include <chrono>
#include <cstring>

#include "op/kernels.h"

namespace osc::fake {
namespace {

/// An address is valid in its fabric only.
struct Name {
    const Fabric* fabric;
    std::uint32_t number;
};

}  // namespace

std::unique_ptr<fabric::Endpoint> Fabric::open() {
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

bool FakeEndpoint::insert(const fabric::Address& address, fabric::PeerId& peer) {
    Name name{};
    std::memcpy(&name, address.bytes, sizeof name);
    if (address.size != sizeof name || name.fabric != &fabric_) return false;
    peer = name.number;
    return true;
}

fabric::Posted FakeEndpoint::post(ParcelKind kind, fabric::PeerId peer, const void* memory, std::size_t bytes,
                                  fabric::Operation* operation, std::uint64_t address, std::uint64_t key,
                                  fabric::AtomicRow* row) {
    Fabric::Parcel parcel;
    parcel.kind = kind;
    parcel.from = number_;
    parcel.to = static_cast<std::uint32_t>(peer);
    parcel.operation = operation;
    parcel.memory = static_cast<std::byte*>(const_cast<void*>(memory));
    parcel.bytes = bytes;
    parcel.address = address;
    parcel.key = key;
    parcel.row = row;
    fabric::Posted posted = fabric::Posted::Failed;
    {
        const std::lock_guard lock(fabric_.mutex_);
        posted = fabric_.post(std::move(parcel));
    }
    return posted;
}

fabric::Posted FakeEndpoint::send(fabric::PeerId peer, const void* message, std::size_t bytes,
                                  fabric::Operation& operation) {
    if (bytes > largest_message()) return fabric::Posted::Failed;
    if (bytes > behaviour().largest_message) return fabric::Posted::NoMemory;
    return post(ParcelKind::Message, peer, message, bytes, &operation);
}

fabric::Posted FakeEndpoint::send_copied(fabric::PeerId peer, const void* message, std::size_t bytes) {
    if (bytes > largest_copied()) return fabric::Posted::Failed;
    return post(ParcelKind::Message, peer, message, bytes, nullptr);
}

fabric::Posted FakeEndpoint::write(fabric::PeerId peer, const void* from, std::size_t bytes, std::uint64_t address,
                                   std::uint64_t key, fabric::Operation& operation) {
    if (bytes > largest_transfer()) return fabric::Posted::Failed;
    return post(ParcelKind::Write, peer, from, bytes, &operation, address, key);
}

fabric::Posted FakeEndpoint::read(fabric::PeerId peer, void* to, std::size_t bytes, std::uint64_t address,
                                  std::uint64_t key, fabric::Operation& operation) {
    if (bytes > largest_transfer()) return fabric::Posted::Failed;
    return post(ParcelKind::Read, peer, to, bytes, &operation, address, key);
}

// All types of at most eight bytes, with every operation that MPI admits on them.
std::size_t FakeEndpoint::longest_row(fabric::RowForm form, Basic type, Op op) const {
    const bool lacks = op == behaviour().lacking && op != Op::None;
    if (!behaviour().atomics || !behaviour().registers || lacks) return 0;
    if (op::element_size(type) > 8 || op::data_runs(type).count != 1) return 0;
    const bool has = form == fabric::RowForm::Swap ? op::admits_compare(type) : op::kernel(op, type) != nullptr;
    return has ? behaviour().longest_row : 0;
}

fabric::Posted FakeEndpoint::update(fabric::PeerId peer, fabric::AtomicRow& row, std::uint64_t address,
                                    std::uint64_t key, fabric::Operation& operation) {
    if (row.count > longest_row(row.form, row.type, row.op) || address % (row.bytes / row.count) != 0)
        return fabric::Posted::Failed;
    return post(ParcelKind::Atomic, peer, nullptr, row.bytes, &operation, address, key, &row);
}

bool FakeEndpoint::expose(void* base, std::size_t bytes, fabric::Exposed& exposed) {
    const std::lock_guard lock(fabric_.mutex_);
    Fabric::Node& node = *fabric_.nodes_[number_];
    if (!behaviour().registers || node.regions.size() >= behaviour().registrations) return false;
    exposed.key = behaviour().provider_keys ? ++node.last_key : fabric_.random_() | 1;
    exposed.base = behaviour().virtual_addresses ? reinterpret_cast<std::uint64_t>(base) : 0;
    exposed.registration = base;
    node.regions[exposed.key] = {static_cast<std::byte*>(base), bytes, exposed.base};
    return true;
}

void FakeEndpoint::revoke(fabric::Exposed& exposed) {
    const std::lock_guard lock(fabric_.mutex_);
    if (exposed.registration != nullptr && fabric_.nodes_[number_]->regions.erase(exposed.key) != 1)
        fabric_.violation("memory was revoked that is not exposed");
    exposed = {};
}

int FakeEndpoint::poll(fabric::Receiver& receiver) {
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
            // Each receiver gets a copy that it may change: a repeated message arrives as it was sent.
            std::vector<std::byte> buffer = event.message->data;
            receiver.received(buffer.data(), buffer.size());
        } else {
            event.operation->ended(*event.operation, event.error);
        }
    }
    polling_.fetch_sub(1, std::memory_order_release);
    return static_cast<int>(events_.size());
}

int FakeEndpoint::sleep(int milliseconds, fabric::Receiver& receiver) {
    int moved = 0;
    {
        std::unique_lock lock(fabric_.mutex_);
        Fabric::Node& node = *fabric_.nodes_[number_];
        const auto ready = [&] { return node.woken || node.moved || (!node.dead && fabric_.pending(node)); };
        if (milliseconds < 0)
            node.bell.wait(lock, ready);
        else
            node.bell.wait_for(lock, std::chrono::milliseconds(milliseconds), ready);
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
