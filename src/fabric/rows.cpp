// libosc_ofi.so: atomics on rows of elements, by libfabric's types and operations.
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <utility>

#include "fabric/libfabric.h"

namespace osc::fabric {
namespace {

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
    fi_msg_atomic message{};
    message.msg_iov = &here;
    message.desc = &used.description;
    message.iov_count = 1;
    message.addr = peer;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.datatype = type;
    message.op = op;
    message.context = &operation;
    return began(operation, fi_atomicmsg(endpoint_, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

}  // namespace osc::fabric
