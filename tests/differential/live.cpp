// Buffers, calls and comparison of one operation.
#include "live.h"

#include <algorithm>
#include <cstring>

#include "large_forms.h"
#include "report.h"

namespace diff {
namespace {

constexpr std::size_t kMargin = 64;

unsigned char filler(std::size_t byte) {
    return static_cast<unsigned char>(0x5a ^ (byte * 37));
}

}  // namespace

Live::Live(Operation& op, Random& jitter, const Place& place, bool host_safe) : op_(op), place_(place) {
    const std::size_t skew = host_safe || jitter.once_in(2) ? 0 : jitter.below(16);
    here_ = make_buffer(op.here, skew);
    if (op.fetches()) back_ = make_buffer(op.back, skew);
    if (!op.data.empty()) {
        const std::size_t width = op.basic->width;
        for (std::size_t i = 0; i < op.elements(); ++i)
            std::memcpy(here_.base() + op.here.at[i], op.data.data() + i * width, width);
        here_.before = here_.bytes;
    }
    nothing_given_ = !host_safe && op.red == Red::NoOp && op.fetches() && op.call != Call::FetchAndOp &&
                     op.call != Call::CompareAndSwap && jitter.once_in(2);
}

Live::Buffer Live::make_buffer(const Layout& layout, std::size_t skew) const {
    Buffer buffer;
    const std::size_t front = layout.low < 0 ? static_cast<std::size_t>(-layout.low + 15) / 16 * 16 : 0;
    buffer.zero = kMargin + front + skew;
    buffer.bytes.resize(buffer.zero + static_cast<std::size_t>(std::max<std::ptrdiff_t>(layout.high, 0)) + kMargin);
    for (std::size_t i = 0; i < buffer.bytes.size(); ++i)
        buffer.bytes[i] = filler(i);
    buffer.before = buffer.bytes;
    return buffer;
}

void Live::issue() {
    const MPI_Win win = place_.window();
    const MPI_Aint disp = place_.displacement(op_.target, op_.start, op_.start + op_.there.low);
    const void* from = nothing_given_ ? nullptr : here_.base();
    const int n = nothing_given_ ? 0 : op_.here.count;
    const MPI_Datatype type = nothing_given_ ? MPI_DATATYPE_NULL : op_.here.type;
    const MPI_Datatype there = op_.there.type;
    const MPI_Datatype back = op_.back.type;
    const int m = op_.there.count;
    const int k = op_.back.count;
    const int to = op_.target;
    const MPI_Op red = op_.red == Red::Count ? MPI_OP_NULL : handle_of(op_.red);
    void* into = here_.base();
    void* result = op_.fetches() ? back_.base() : nullptr;
    int error = MPI_SUCCESS;
    switch (op_.call) {
        case Call::Put:
            error = MPI_Put(from, n, type, to, disp, m, there, win);
            break;
        case Call::PutC:
            error = MPI_Put_c(from, n, type, to, disp, m, there, win);
            break;
        case Call::Rput:
            error = MPI_Rput(from, n, type, to, disp, m, there, win, &request_);
            break;
        case Call::RputC:
            error = MPI_Rput_c(from, n, type, to, disp, m, there, win, &request_);
            break;
        case Call::Get:
            error = MPI_Get(into, n, type, to, disp, m, there, win);
            break;
        case Call::GetC:
            error = MPI_Get_c(into, n, type, to, disp, m, there, win);
            break;
        case Call::Rget:
            error = MPI_Rget(into, n, type, to, disp, m, there, win, &request_);
            break;
        case Call::RgetC:
            error = MPI_Rget_c(into, n, type, to, disp, m, there, win, &request_);
            break;
        case Call::Accumulate:
            error = MPI_Accumulate(from, n, type, to, disp, m, there, red, win);
            break;
        case Call::AccumulateC:
            error = MPI_Accumulate_c(from, n, type, to, disp, m, there, red, win);
            break;
        case Call::Raccumulate:
            error = MPI_Raccumulate(from, n, type, to, disp, m, there, red, win, &request_);
            break;
        case Call::RaccumulateC:
            error = MPI_Raccumulate_c(from, n, type, to, disp, m, there, red, win, &request_);
            break;
        case Call::GetAccumulate:
            error = MPI_Get_accumulate(from, n, type, result, k, back, to, disp, m, there, red, win);
            break;
        case Call::GetAccumulateC:
            error = MPI_Get_accumulate_c(from, n, type, result, k, back, to, disp, m, there, red, win);
            break;
        case Call::RgetAccumulate:
            error = MPI_Rget_accumulate(from, n, type, result, k, back, to, disp, m, there, red, win, &request_);
            break;
        case Call::RgetAccumulateC:
            error = MPI_Rget_accumulate_c(from, n, type, result, k, back, to, disp, m, there, red, win, &request_);
            break;
        case Call::FetchAndOp:
            error = MPI_Fetch_and_op(from, result, there, to, disp, red, win);
            break;
        default:
            error = MPI_Compare_and_swap(from, op_.compare.data(), result, there, to, disp, win);
    }
    if (error != MPI_SUCCESS) check_call(error, op_.describe().c_str());
    op_.here.release();
    op_.back.release();
    op_.there.release();
}

void Live::wait() {
    if (pending()) check_call(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait");
}

// Every byte of the buffer is compared, those between the elements too.
void Live::compare(const Buffer& buffer, const Layout& layout, const char* which, const Bytes* filled) const {
    std::vector<unsigned char> want = buffer.before;
    std::vector<unsigned char> known(want.size(), 1);
    const Basic& basic = *op_.basic;
    for (std::size_t i = 0; filled != nullptr && i < layout.at.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(buffer.zero) + layout.at[i]);
        if (context().host_safe && basic.piece_count > 1)
            std::fill_n(known.begin() + static_cast<std::ptrdiff_t>(at), basic.width, 0);
        for (int p = 0; p < basic.piece_count; ++p) {
            const auto [offset, bytes] = basic.pieces[p];
            std::memcpy(want.data() + at + offset, filled->value.data() + i * basic.width + offset, bytes);
            std::memcpy(known.data() + at + offset, filled->known.data() + i * basic.width + offset, bytes);
        }
    }
    for (std::size_t i = 0; i < want.size(); ++i)
        if (known[i] != 0 && buffer.bytes[i] != want[i])
            fail("byte %td of the %s buffer is 0x%02x, not 0x%02x, after %s",
                 static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(buffer.zero), which, buffer.bytes[i],
                 want[i], op_.describe().c_str());
}

void Live::check() {
    if (done_) return;
    done_ = true;
    wait();
    if (op_.fills_here()) return compare(here_, op_.here, "origin", &op_.result);
    compare(here_, op_.here, "origin", nullptr);
    if (!op_.fetches()) return;
    Bytes expected = op_.result;
    if (op_.check != Check::Exact) std::fill(expected.known.begin(), expected.known.end(), 0);
    compare(back_, op_.back, "result", &expected);
}

std::vector<unsigned char> Live::fetched() const {
    const std::size_t width = op_.basic->width;
    std::vector<unsigned char> flat(op_.elements() * width);
    for (std::size_t i = 0; i < op_.elements(); ++i)
        std::memcpy(flat.data() + i * width,
                    back_.bytes.data() + static_cast<std::ptrdiff_t>(back_.zero) + op_.back.at[i], width);
    return flat;
}

void Live::scramble() {
    if (op_.check != Check::Exact) return;  // still to be compared with those of others
    for (unsigned char& byte : here_.bytes)
        byte = static_cast<unsigned char>(byte ^ 0xff);
}

}  // namespace diff
