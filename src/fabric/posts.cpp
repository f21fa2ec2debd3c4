// libosc_ofi.so: posts messages, writes and reads.
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

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

}  // namespace osc::fabric
