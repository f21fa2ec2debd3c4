// Asks the system for pages, and remembers the answers: a call of the system takes as long as dozens of accesses. So
// the table misses a page that the program unmaps or protects in the milliseconds between two operations on it, which
// is an error of the program; it then gets the signal that its own access would get.
#include "net/target/guard.h"

#include <sys/mman.h>

#include <bit>
#include <ctime>

#include "base/pages.h"
#include "op/cursor.h"

namespace osc::net {
namespace {

constexpr int kLogPages = 14;
constexpr std::size_t kPages = std::size_t{1} << kLogPages;  // entries of the table
constexpr std::size_t kMostPages = 4096;                     // of a run of bytes that is looked up
constexpr std::uintptr_t kStores = 1;                        // in the address of a page that admits stores

// Populates the pages of [first, end), as an access would; false if one of them does not admit it.
bool populate(std::uintptr_t first, std::uintptr_t end, bool write) {
    return ::madvise(reinterpret_cast<void*>(first), end - first, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ==
           0;
}

// Some milliseconds late, and several times cheaper than now_ns().
std::int64_t coarse_now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

bool Guard::works() {
    static const bool kWorks = [] {
        int here = 0;
        const std::uintptr_t page = base::page_down(reinterpret_cast<std::uintptr_t>(&here));
        return populate(page, page + 1, true);
    }();
    return kWorks;
}

// One operation's questions.
class Guard::Ask {
  public:
    Ask(Page* pages, bool write)
        : pages_(pages),
          write_(write),
          now_(coarse_now_ns()),
          size_(base::page_bytes()),
          shift_(std::countr_zero(size_)) {}

    // Whether the operation may access [at, at + bytes).
    bool operator()(std::uintptr_t at, std::uint64_t bytes) const {
        const std::uintptr_t first = at & -size_;
        const bool looks = pages_ != nullptr && bytes < kMostPages * size_;
        std::uintptr_t page = first;
        while (looks && page < at + bytes && is_known(page))
            page += size_;
        if (looks && page >= at + bytes) return true;
        if (!populate(first, at + bytes, write_)) return false;
        for (page = first; looks && page < at + bytes; page += size_)
            if (!is_known(page)) entry(page) = {page + (write_ ? kStores : 0), until()};
        return true;
    }

    // When an answer of now ends.
    std::int64_t until() const { return now_ + kMemory; }

  private:
    // Pages at a regular distance, also a power of two, have entries of their own.
    Page& entry(std::uintptr_t page) const {
        const std::uintptr_t number = page >> shift_;
        return pages_[(number ^ (number >> kLogPages)) % kPages];
    }
    bool is_known(std::uintptr_t page) const {
        const Page& known = entry(page);
        return (known.address == page + kStores || (!write_ && known.address == page)) && known.until > now_;
    }

    Page* const pages_;
    const bool write_;
    const std::int64_t now_;
    const std::uintptr_t size_;
    const int shift_;
};

// Of a dense shape, the span is asked for first, and the pieces only if some page of it does not admit the access: it
// may lie in a gap. The gaps of a sparse shape are not populated.
bool Guard::admits(std::uintptr_t at, std::uint64_t bytes, const op::Shape& shape, bool write) {
    if (pages_ == nullptr) pages_.reset(static_cast<Page*>(std::calloc(kPages, sizeof(Page))));
    const Ask may_access(pages_.get(), write);
    if (shape.size() == 0) return may_access(at, bytes);
    constexpr std::size_t kSparse = 64;
    const bool dense = shape.true_extent() / kSparse <= shape.size() + base::page_bytes();
    if (dense && may_access(at + static_cast<std::uintptr_t>(shape.true_lb()), shape.true_extent())) return true;
    Column* const column =
        shape.blocks() == shape.runs().front().count ? &columns_[(at >> 3) % columns_.size()] : nullptr;
    const Column same{at, shape.runs().front(), may_access.until(), write};
    if (column != nullptr && column->covers(same)) return true;
    for (op::Cursor piece(shape, 1); !piece.done(); piece.advance(piece.bytes()))
        if (!may_access(at + static_cast<std::uintptr_t>(piece.offset()), piece.bytes())) return false;
    if (column != nullptr) *column = same;
    return true;
}

}  // namespace osc::net
