// libosc_ofi.so: posts messages, writes and reads, and atomics on rows of elements.
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <utility>

#include "fabric/libfabric.h"

namespace osc::fabric {
namespace {

Posted posted(ssize_t result) {
    if (result == 0) return Posted::Yes;
    return result == -FI_EAGAIN ? Posted::Again : Posted::Failed;
}

constexpr int kUnknown = -1;

// libfabric's types and operations. Complex numbers are none of it: libfabric does not say whether both parts change at
// once, nor what their product is.
constexpr std::pair<Basic, fi_datatype> kTypes[] = {
    {Basic::I8, FI_INT8},         {Basic::I16, FI_INT16},      {Basic::I32, FI_INT32},
    {Basic::I64, FI_INT64},       {Basic::U8, FI_UINT8},       {Basic::Byte, FI_UINT8},
    {Basic::Bool, FI_UINT8},      {Basic::Logical1, FI_UINT8}, {Basic::U16, FI_UINT16},
    {Basic::Logical2, FI_UINT16}, {Basic::U32, FI_UINT32},     {Basic::Char4, FI_UINT32},
    {Basic::Logical4, FI_UINT32}, {Basic::U64, FI_UINT64},     {Basic::Logical8, FI_UINT64},
    {Basic::F32, FI_FLOAT},       {Basic::F64, FI_DOUBLE},
};
constexpr std::pair<Op, fi_op> kOps[] = {
    {Op::Max, FI_MAX},
    {Op::Min, FI_MIN},
    {Op::Sum, FI_SUM},
    {Op::Prod, FI_PROD},
    {Op::Land, FI_LAND},
    {Op::Band, FI_BAND},
    {Op::Lor, FI_LOR},
    {Op::Bor, FI_BOR},
    {Op::Lxor, FI_LXOR},
    {Op::Bxor, FI_BXOR},
    {Op::Replace, FI_ATOMIC_WRITE},
};

// libfabric's number, or kUnknown.
template <class Pairs, class Key>
int find(const Pairs& pairs, Key key) {
    for (const auto& [known, number] : pairs)
        if (known == key) return number;
    return kUnknown;
}

int op_of(RowForm form, Op op) {
    if (form == RowForm::Swap) return FI_CSWAP;
    if (op == Op::NoOp) return form == RowForm::Fetch ? FI_ATOMIC_READ : kUnknown;
    return find(kOps, op);
}

// The words of an atomic of ofi_rxm that a send copies.
std::size_t inlined_words(const Limits& adapter, RowForm form) {
    constexpr std::size_t kHeaders = 192;  // ofi_rxm's take 160 bytes
    const std::size_t rows = form == RowForm::Swap ? 2 : 1;
    return adapter.inlined > kHeaders ? (adapter.inlined - kHeaders) / (rows * sizeof(std::uint64_t)) : 0;
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
    const fi_msg_rma message{.msg_iov = &here,
                             .desc = &used.description,
                             .iov_count = 1,
                             .addr = peer,
                             .rma_iov = &there,
                             .rma_iov_count = 1,
                             .context = &operation,
                             .data = 0};
    return began(operation, fi_writemsg(endpoint_, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

Posted Libfabric::read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                       Operation& operation) {
    Local used{};
    if (const Posted ready = local(to, bytes, {.sent = false, .bytes = bytes}, operation, used); ready != Posted::Yes)
        return ready;
    return began(operation, fi_read(endpoint_, used.memory, bytes, used.description, peer, address, key, &operation));
}

std::size_t Libfabric::longest_row(RowForm form, Basic type, Op op) const {
    const int number = find(kTypes, type);
    const int code = op_of(form, op);
    if (number == kUnknown || code == kUnknown || !rows_flaw_.empty()) return 0;
    const auto datatype = static_cast<fi_datatype>(number);
    const auto operation = static_cast<fi_op>(code);
    std::size_t most = 0;
    const int refused = form == RowForm::Update  ? fi_atomicvalid(endpoint_, datatype, operation, &most)
                        : form == RowForm::Fetch ? fi_fetch_atomicvalid(endpoint_, datatype, operation, &most)
                                                 : fi_compare_atomicvalid(endpoint_, datatype, operation, &most);
    if (refused != 0) return 0;
    return (chosen_.quirks & kInlineAtomics) != 0 ? std::min(most, inlined_words(limits_, form)) : most;
}

// Completion of an Update must mean that the target's memory has changed; other forms return what was there.
Posted Libfabric::update(PeerId peer, AtomicRow& row, std::uint64_t address, std::uint64_t key, Operation& operation) {
    Local used{};
    const Results results{.offset = row.bytes, .bytes = row.form == RowForm::Update ? 0 : row.bytes};
    if (const Posted ready = local(row.operands(), row.used(), results, operation, used); ready != Posted::Yes)
        return ready;
    std::byte* const operands = used.memory;
    std::byte* const before = operands + row.bytes;
    void* const description = used.description;
    const auto type = static_cast<fi_datatype>(find(kTypes, row.type));
    const auto op = static_cast<fi_op>(op_of(row.form, row.op));
    if (row.form == RowForm::Fetch)
        return began(operation, fi_fetch_atomic(endpoint_, operands, row.count, description, before, description, peer,
                                                address, key, type, op, &operation));
    if (row.form == RowForm::Swap)
        return began(operation,
                     fi_compare_atomic(endpoint_, operands, row.count, description, before + row.bytes, description,
                                       before, description, peer, address, key, type, op, &operation));
    fi_ioc here{operands, row.count};
    fi_rma_ioc there{address, row.count, key};
    const fi_msg_atomic message{.msg_iov = &here,
                                .desc = &used.description,
                                .iov_count = 1,
                                .addr = peer,
                                .rma_iov = &there,
                                .rma_iov_count = 1,
                                .datatype = type,
                                .op = op,
                                .context = &operation,
                                .data = 0};
    return began(operation, fi_atomicmsg(endpoint_, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

}  // namespace osc::fabric
