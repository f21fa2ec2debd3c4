// libosc_ofi.so: posts messages, writes, reads and atomics.
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstddef>

#include "fabric/libfabric.h"

namespace osc::fabric {
namespace {

Posted posted(ssize_t result) {
    if (result == 0) return Posted::Yes;
    return result == -FI_EAGAIN ? Posted::Again : Posted::Failed;
}

}  // namespace

// The result of a post, and the end of an operation that did not begin.
Posted Libfabric::began(Operation& operation, ssize_t result) {
    if (result != 0)
        release(operation, static_cast<int>(-result));
    else if (most_ > 0)
        in_flight_.fetch_add(1, std::memory_order_relaxed);
    return posted(result);
}

Posted Libfabric::send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) {
    Local used{};
    if (const Posted ready = local(const_cast<void*>(message), bytes, {}, operation, used); ready != Posted::Yes)
        return ready;
    return began(operation, fi_send(endpoint_, used.memory, bytes, used.description, peer, &operation));
}

Posted Libfabric::send_copied(PeerId peer, const void* message, std::size_t bytes) {
    return posted(fi_inject(endpoint_, message, bytes, peer));
}

Posted Libfabric::write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        Operation& operation) {
    Local used{};
    if (const Posted ready = local(const_cast<void*>(from), bytes, {}, operation, used); ready != Posted::Yes)
        return ready;
    iovec here{used.memory, bytes};
    fi_rma_iov there{address, bytes, key};
    fi_msg_rma message{};
    message.msg_iov = &here;
    message.desc = &used.description;
    message.iov_count = 1;
    message.addr = peer;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.context = &operation;
    return began(operation, fi_writemsg(endpoint_, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

Posted Libfabric::read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                       Operation& operation) {
    Local used{};
    if (const Posted ready = local(to, bytes, {.sent = false, .bytes = bytes}, operation, used); ready != Posted::Yes)
        return ready;
    return began(operation, fi_read(endpoint_, used.memory, bytes, used.description, peer, address, key, &operation));
}

Posted Libfabric::atomic(PeerId peer, Atomic& what, std::uint64_t address, std::uint64_t key, Operation& operation) {
    Local used{};
    const Results results{.offset = offsetof(Atomic, before), .bytes = sizeof what.before};
    if (const Posted ready = local(&what, sizeof what, results, operation, used); ready != Posted::Yes) return ready;
    auto& it = *reinterpret_cast<Atomic*>(used.memory);
    if (what.kind == AtomicKind::Add)
        return began(operation, fi_fetch_atomic(endpoint_, &it.operand, 1, used.description, &it.before,
                                                used.description, peer, address, key, FI_UINT64, FI_SUM, &operation));
    return began(operation,
                 fi_compare_atomic(endpoint_, &it.operand, 1, used.description, &it.expected, used.description,
                                   &it.before, used.description, peer, address, key, FI_UINT64, FI_CSWAP, &operation));
}

}  // namespace osc::fabric
