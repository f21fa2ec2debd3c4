// Asks the system for pages, in one call for a span or for each piece, and remembers the answers for pieces.
#include "net/target/guard.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/pages.h"
#include "op/cursor.h"

namespace osc::net {
namespace {

// Entries of the table of pages: a prime, so that the pages of a regular shape have entries of their own.
constexpr std::size_t kPages = 16381;
// Of an entry: what the page has admitted.
constexpr std::uintptr_t kRead = 1;
constexpr std::uintptr_t kWrite = 2;

// Populates the pages of [first, end), as an access would; false if one of them does not admit it.
bool populate(std::uintptr_t first, std::uintptr_t end, bool write) {
    first = base::page_down(first);
    return ::madvise(reinterpret_cast<void*>(first), end - first, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ==
           0;
}

// Whether all pages of [first, end) are mapped.
bool mapped(std::uintptr_t first, std::uintptr_t end) {
    std::array<unsigned char, 4096> resident;
    const std::uintptr_t step = resident.size() * base::page_bytes();
    for (first = base::page_down(first); first < end; first += step)
        if (::mincore(reinterpret_cast<void*>(first), std::min(step, end - first), resident.data()) != 0) return false;
    return true;
}

}  // namespace

bool Guard::works() {
    static const bool kWorks = [] {
        int here = 0;
        const auto at = reinterpret_cast<std::uintptr_t>(&here);
        return populate(at, at + sizeof here, true);
    }();
    return kWorks;
}

// Of a dense shape, the span is asked for first, which one call answers, and the pieces only if some page of it does
// not admit the access: it may lie in a gap. The gaps of a sparse shape are not populated. Its pages are asked for
// once: later, one call tells whether they are still mapped. A program that protects a page afterwards gets the signal
// that any of its own threads would.
bool Guard::admits(std::uintptr_t at, std::uint64_t bytes, const op::Shape& shape, bool write) {
    if (shape.size() == 0) return populate(at, at + bytes, write);
    constexpr std::size_t kSparse = 64;
    constexpr std::size_t kGap = 32;  // pages of a gap that cost mapped() less than the pieces cost populate()
    const std::uintptr_t first = at + static_cast<std::uintptr_t>(shape.true_lb());
    const std::uintptr_t end = first + shape.true_extent();
    const bool dense = shape.true_extent() / kSparse <= shape.size() + base::page_bytes();
    if (dense && populate(first, end, write)) return true;
    const auto all = [&](auto&& admits_piece) {
        for (op::Cursor piece(shape, 1); !piece.done(); piece.advance(piece.bytes()))
            if (!admits_piece(at + static_cast<std::uintptr_t>(piece.offset()), piece.bytes())) return false;
        return true;
    };
    const auto ask = [&](std::uintptr_t piece, std::size_t size) { return populate(piece, piece + size, write); };
    const std::uintptr_t page_bytes = base::page_bytes();
    if (dense || shape.true_extent() / page_bytes > kGap * shape.blocks()) return all(ask);
    if (pages_ == nullptr) pages_.reset(new (std::nothrow) std::uintptr_t[kPages]{});
    if (pages_ == nullptr) return all(ask);
    bool remembered = false;
    const auto recall = [&](std::uintptr_t piece, std::size_t size) {
        const std::uintptr_t page = base::page_down(piece);
        std::uintptr_t& entry = pages_[page / page_bytes % kPages];
        const bool alone = page == base::page_down(piece + size - 1);
        if (alone && (entry == page + kWrite || (!write && entry == page + kRead))) {
            remembered = true;
            return true;
        }
        if (!ask(piece, size)) return false;
        if (alone) entry = page + (write ? kWrite : kRead);
        return true;
    };
    return all(recall) && (!remembered || mapped(first, end) || all(ask));
}

}  // namespace osc::net
