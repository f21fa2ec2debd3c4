// libosc_ofi.so: atomics on rows of elements, by libfabric's types and operations.
#include <rdma/fi_atomic.h>

#include "fabric/libfabric.h"

namespace osc::fabric {
namespace {

constexpr int kUnknown = -1;

// libfabric's type for the elements of a basic type, or kUnknown. Complex numbers are none of it: libfabric does not
// say whether both parts change at once, nor what their product is.
int type_of(Basic type) {
    switch (type) {
        case Basic::I8:
            return FI_INT8;
        case Basic::I16:
            return FI_INT16;
        case Basic::I32:
            return FI_INT32;
        case Basic::I64:
            return FI_INT64;
        case Basic::U8:
        case Basic::Byte:
        case Basic::Bool:
        case Basic::Logical1:
            return FI_UINT8;
        case Basic::U16:
        case Basic::Logical2:
            return FI_UINT16;
        case Basic::U32:
        case Basic::Char4:
        case Basic::Logical4:
            return FI_UINT32;
        case Basic::U64:
        case Basic::Logical8:
            return FI_UINT64;
        case Basic::F32:
            return FI_FLOAT;
        case Basic::F64:
            return FI_DOUBLE;
        default:
            return kUnknown;
    }
}

int op_of(RowForm form, Op op) {
    if (form == RowForm::Swap) return FI_CSWAP;
    switch (op) {
        case Op::Max:
            return FI_MAX;
        case Op::Min:
            return FI_MIN;
        case Op::Sum:
            return FI_SUM;
        case Op::Prod:
            return FI_PROD;
        case Op::Land:
            return FI_LAND;
        case Op::Band:
            return FI_BAND;
        case Op::Lor:
            return FI_LOR;
        case Op::Bor:
            return FI_BOR;
        case Op::Lxor:
            return FI_LXOR;
        case Op::Bxor:
            return FI_BXOR;
        case Op::Replace:
            return FI_ATOMIC_WRITE;
        case Op::NoOp:
            return form == RowForm::Fetch ? FI_ATOMIC_READ : kUnknown;
        default:
            return kUnknown;
    }
}

}  // namespace

std::size_t Libfabric::longest_row(RowForm form, Basic type, Op op) const {
    const int number = type_of(type);
    const int code = op_of(form, op);
    if (number == kUnknown || code == kUnknown || !rows_flaw_.empty()) return 0;
    const auto datatype = static_cast<fi_datatype>(number);
    const auto operation = static_cast<fi_op>(code);
    std::size_t most = 0;
    const int refused = form == RowForm::Update  ? fi_atomicvalid(endpoint_, datatype, operation, &most)
                        : form == RowForm::Fetch ? fi_fetch_atomicvalid(endpoint_, datatype, operation, &most)
                                                 : fi_compare_atomicvalid(endpoint_, datatype, operation, &most);
    return refused == 0 ? most : 0;
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
    const auto type = static_cast<fi_datatype>(type_of(row.type));
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
