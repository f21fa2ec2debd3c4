// Checking and doing operations.
#include "net/target/executor.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "local/direct.h"
#include "net/shape.h"
#include "op/copy.h"
#include "sync/stripe.h"

namespace osc::net {
namespace {

// Reads the description in front of the operation's data, if it has one; false if it is malformed.
bool find_pieces(CheckedRecord& operation, ShapeCache& shapes) {
    const std::size_t bytes = shape_bytes(operation.record);
    if (bytes == 0) return operation.record.flags == 0;
    operation.pieces = shapes.read(operation.record, operation.data);
    operation.data += bytes;
    return operation.pieces != nullptr;
}

// Whether the standard defines the operation, on whole elements (exactly one for compare-and-swap).
Status check(CheckedRecord& operation) {
    const auto& [opcode, basic, op, flags, bytes, disp] = operation.record;
    if (!is_operation(opcode) || bytes == 0) return Status::Malformed;
    if (opcode == Opcode::Put || opcode == Opcode::Get) return Status::Done;
    if (basic == Basic::None || basic >= Basic::Count) return Status::NotAdmitted;
    Update& how = operation.how;
    how = {basic, op, nullptr, nullptr, op::element_size(basic)};
    if (opcode != Opcode::Update) how.copy = op::kernel(Op::Replace, basic);
    if (opcode == Opcode::CompareAndSwap) {
        if (!op::admits_compare(basic)) return Status::NotAdmitted;
        how.op = Op::None;
        how.compare = operation.data + bytes;
        return bytes == how.width ? Status::Done : Status::Malformed;
    }
    if (op == Op::None || op >= Op::Count) return Status::NotAdmitted;
    how.apply = op::kernel(op, basic);
    if (how.apply == nullptr) return Status::NotAdmitted;
    const auto whole = [&](std::size_t part) { return part % how.width == 0; };
    const bool pieces = std::ranges::all_of(operation.shape().runs(), whole, &op::Run::bytes);
    return pieces && whole(bytes) ? Status::Done : Status::Malformed;
}

// Whether all bytes lie in attached regions, each element in one.
bool attached(const std::vector<shm::Region>& regions, std::uint64_t first, std::uint64_t bytes, std::size_t width) {
    for (std::uint64_t done = 0; done < bytes;) {
        const std::uint64_t address = first + done;
        const shm::Region* region = shm::find_region(regions, address);
        if (region == nullptr) return false;
        const std::uint64_t part = std::min(bytes - done, region->size - (address - region->base));
        if (part % width != 0) return false;
        done += part;
    }
    return true;
}

// Whether all bytes lie in the window; in a dynamic one in attached regions.
bool inside(const ExposedWindow& window, const std::vector<shm::Region>* regions, const CheckedRecord& operation) {
    const Record& record = operation.record;
    const op::Shape& shape = operation.shape();
    const std::size_t width = std::max<std::size_t>(operation.how.width, 1);
    const std::int64_t lowest = shape.size() != 0 ? shape.true_lb() : 0;
    std::int64_t first = 0;
    if (__builtin_add_overflow(record.disp, lowest, &first)) return false;
    const std::uint64_t bytes = shape.size() != 0 ? shape.true_extent() : record.bytes;
    const auto disp = static_cast<std::uint64_t>(first);
    if (regions == nullptr) return first >= 0 && disp <= window.size && bytes <= window.size - disp;
    const shm::Region* const region = shm::find_region(*regions, disp);
    if (region != nullptr && bytes <= region->size - (disp - region->base)) return true;
    if (shape.size() == 0) return attached(*regions, disp, bytes, width);
    for (op::Cursor piece(shape, 1); !piece.done(); piece.advance(piece.bytes()))
        if (!attached(*regions, static_cast<std::uint64_t>(record.disp + piece.offset()), piece.bytes(), width))
            return false;
    return true;
}

std::byte* address_of(const ExposedWindow& window, std::int64_t disp) {
    return window.regions != nullptr ? reinterpret_cast<std::byte*>(disp) : window.base + disp;
}

bool accessible(const ExposedWindow& window, const CheckedRecord& operation) {
    const auto at = reinterpret_cast<std::uintptr_t>(address_of(window, operation.record.disp));
    return window.guard->admits(at, operation.record.bytes, operation.shape(), changes(operation.record));
}

Status perform(const ExposedWindow& window, const CheckedRecord& operation, std::byte* out) {
    const auto& [record, data, how, described] = operation;
    // Regions are addresses of this process, so an operation that spans several needs no cut.
    const bool dynamic = window.regions != nullptr;
    shm::Direct memory(address_of(window, dynamic ? record.disp : 0),
                       {window.controls->block(window.rank), window.rank, *window.liveness}, dynamic ? record.disp : 0);
    const std::byte* const from = how.op != Op::NoOp ? data : nullptr;
    std::byte* const back = record.opcode != Opcode::Update ? out : nullptr;
    op::Cursor pieces(operation.shape(), 1);
    std::byte* const here = address_of(window, record.disp);
    switch (record.opcode) {
        case Opcode::Put:
            if (!pieces.done())
                op::unpack(pieces, here, data, record.bytes);
            else
                memory.put(record.disp, data, record.bytes);
            break;
        case Opcode::Get:
            if (!pieces.done())
                op::pack(pieces, here, out, record.bytes);
            else
                memory.get(record.disp, out, record.bytes);
            break;
        default:
            if (!pieces.done())
                memory.update_all(how, record.disp, pieces, from, back, record.bytes);
            else
                memory.update(how, record.disp, from, back, record.bytes / how.width);
    }
    return memory.finish() == Fault::None ? Status::Done : Status::HolderDied;
}

}  // namespace

Status execute(const ExposedWindow& window, std::span<CheckedRecord> operations, std::byte* out, ShapeCache& shapes) {
    for (CheckedRecord& operation : operations) {
        if (!find_pieces(operation, shapes)) return Status::Malformed;
        if (const Status status = check(operation); status != Status::Done) return status;
    }
    const auto run = [&](const std::vector<shm::Region>* regions) {
        for (const CheckedRecord& operation : operations)
            if (!inside(window, regions, operation)) return Status::OutOfRange;
        if (window.guard != nullptr)
            for (const CheckedRecord& operation : operations)
                if (!accessible(window, operation)) return Status::Inaccessible;
        for (const CheckedRecord& operation : operations) {
            if (const Status status = perform(window, operation, out); status != Status::Done) return status;
            out += padded(returned(operation.record));
        }
        return Status::Done;
    };
    if (window.regions == nullptr) return run(nullptr);
    return window.regions->while_attached([&](const std::vector<shm::Region>& regions) { return run(&regions); });
}

namespace {

constexpr std::size_t kAhead = 8;           // records between the prefetch of an element and its turn
constexpr std::uint32_t kMostUpdates = 16;  // under one lock

// The lock of the stripe of a row's last element, kept for the next one if that lies in the same stripe.
class RowLock {
  public:
    explicit RowLock(const ExposedWindow& window)
        : block_(window.controls->block(window.rank)), me_(window.rank), liveness_(*window.liveness) {}
    ~RowLock() { release(); }
    RowLock(const RowLock&) = delete;
    RowLock& operator=(const RowLock&) = delete;

    /// False if the stripe's holder died.
    bool take(std::uint64_t offset) {
        std::atomic<std::uint32_t>& stripe = block_.stripe_of(offset);
        if (&stripe == held_ && ++updates_ < kMostUpdates) return true;
        release();
        std::uint32_t dead = 0;
        if (!sync::stripe_lock(stripe, me_, liveness_, dead)) return false;
        held_ = &stripe;
        updates_ = 0;
        return true;
    }

  private:
    void release() {
        if (held_ != nullptr) sync::stripe_unlock(*held_);
        held_ = nullptr;
    }

    shm::ControlBlock& block_;
    const std::uint32_t me_;
    sync::Liveness& liveness_;
    std::atomic<std::uint32_t>* held_ = nullptr;
    std::uint32_t updates_ = 0;
};

}  // namespace

bool is_small(const ExposedWindow& window, const Record& record) {
    if (window.regions != nullptr || record.bytes == 0 || record.bytes > window.size || record.flags != 0) return false;
    return record.opcode == Opcode::Put || record.opcode == Opcode::Get ||
           (is_operation(record.opcode) && record.basic != Basic::None && record.basic < Basic::Count &&
            record.bytes == op::element_size(record.basic));
}

Status execute_alike(const ExposedWindow& window, Records& records, Record record, const std::byte* data,
                     std::vector<std::byte>& out, std::size_t most) {
    const Opcode opcode = record.opcode;
    const std::size_t bytes = record.bytes;
    const std::size_t back = padded(returned(record));
    CheckedRecord first{record, data, {}, {}};
    if (const Status status = check(first); status != Status::Done) {
        out.resize(out.size() + back);
        return status;
    }
    std::optional<RowLock> lock;  // a put or get takes none
    if (opcode != Opcode::Put && opcode != Opcode::Get) lock.emplace(window);
    const std::uint64_t last = window.size - bytes;  // displacement
    Status status = Status::Done;
    do {
        const auto offset = static_cast<std::uint64_t>(record.disp);
        if (const auto later = static_cast<std::uint64_t>(records.guess(record, kAhead)); later <= last)
            __builtin_prefetch(window.base + later, 1);
        const std::size_t before = out.size();
        if (back != 0) out.resize(before + back);
        if (offset > last) {
            if (status == Status::Done) status = Status::OutOfRange;
        } else if (opcode == Opcode::Put) {
            shm::move_bytes(window.base + offset, data, bytes);
        } else if (opcode == Opcode::Get) {
            shm::move_bytes(out.data() + before, window.base + offset, bytes);
        } else if (!lock->take(offset)) {
            if (status == Status::Done) status = Status::HolderDied;
        } else {
            if (opcode == Opcode::CompareAndSwap) first.how.compare = data + bytes;
            change(first.how, window.base + offset, data, opcode != Opcode::Update ? out.data() + before : nullptr, 1);
        }
    } while (out.size() + back <= most && records.next_alike(record, data));
    return status;
}

}  // namespace osc::net
