// libosc_ofi.so: posts messages, writes, reads and atomics.
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "transport/fabric/libfabric.h"

namespace osc::fabric {

Posted posted(ssize_t result) {
    if (result == 0) return Posted::Yes;
    return result == -FI_EAGAIN ? Posted::Again : Posted::Failed;
}

Posted Libfabric::send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) {
    void* description = nullptr;
    if (!local(message, bytes, operation, description)) return unregistered();
    const Posting now(posting_);
    const Posted result = posted(fi_send(endpoint_, message, bytes, description, peer, &operation));
    if (result != Posted::Yes) release(operation);
    return result;
}

Posted Libfabric::send_copied(PeerId peer, const void* message, std::size_t bytes) {
    const Posting now(posting_);
    return posted(fi_inject(endpoint_, message, bytes, peer));
}

Posted Libfabric::write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        Operation& operation) {
    return write_flagged(peer, from, bytes, address, key, operation, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

Posted Libfabric::deposit(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                          Operation* operation) {
    if (operation != nullptr) return write_flagged(peer, from, bytes, address, key, *operation, FI_COMPLETION);
    const Posting now(posting_);
    return posted(fi_inject_write(endpoint_, from, bytes, peer, address, key));
}

Posted Libfabric::write_flagged(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address,
                                std::uint64_t key, Operation& operation, std::uint64_t flags) {
    void* description = nullptr;
    if (!local(from, bytes, operation, description)) return unregistered();
    iovec here{const_cast<void*>(from), bytes};
    fi_rma_iov there{address, bytes, key};
    fi_msg_rma message{};
    message.msg_iov = &here;
    message.desc = &description;
    message.iov_count = 1;
    message.addr = peer;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.context = &operation;
    const Posting now(posting_);
    const Posted result = posted(fi_writemsg(endpoint_, &message, flags));
    if (result != Posted::Yes) release(operation);
    return result;
}

Posted Libfabric::read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                       Operation& operation) {
    void* description = nullptr;
    if (!local(to, bytes, operation, description)) return unregistered();
    const Posting now(posting_);
    const Posted result = posted(fi_read(endpoint_, to, bytes, description, peer, address, key, &operation));
    if (result != Posted::Yes) release(operation);
    return result;
}

Posted Libfabric::atomic(PeerId peer, Atomic& what, std::uint64_t address, std::uint64_t key, Operation& operation) {
    void* description = nullptr;
    if (!local(&what, sizeof what, operation, description)) return unregistered();
    const bool adds = what.kind == AtomicKind::Add;
    const Posting now(posting_);
    const Posted result = posted(adds ? fi_fetch_atomic(endpoint_, &what.operand, 1, description, &what.before,
                                                        description, peer, address, key, FI_UINT64, FI_SUM, &operation)
                                      : fi_compare_atomic(endpoint_, &what.operand, 1, description, &what.expected,
                                                          description, &what.before, description, peer, address, key,
                                                          FI_UINT64, FI_CSWAP, &operation));
    if (result != Posted::Yes) release(operation);
    return result;
}

}  // namespace osc::fabric
