// The probes of direct accesses and of atomics.
#include "fabric/probe.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/pages.h"

namespace osc::fabric {
namespace {

constexpr std::size_t kBytes = 16384;

struct Ignored final : Receiver {
    void received(std::byte*, std::size_t) override {}
};

struct Access {
    Operation operation;  // first
    bool ended = false;
    int error = 0;
};

struct Probe {
    Access access;
    std::byte here[kBytes];
    std::byte there[kBytes];
};

struct AtomicProbe {
    Access access;
    std::unique_ptr<AtomicRow> row;
    std::uint64_t words[2] = {};
};

constexpr const char* kUnregistered = "no memory can be registered";

// Returns the flaw. The provider may still use the probe's memory after a failure, so it is never freed then.
template <class P>
std::string keep(std::unique_ptr<P> probe, const char* flaw) {
    static auto* kept = new std::vector<std::unique_ptr<P>>;
    kept->push_back(std::move(probe));
    return flaw;
}

// The end of a wait for an operation: after five seconds, and as many polls as a thread makes in that time if it has
// the processor. On a loaded machine the thread may not run for seconds. A poll that finds nothing leaves the processor
// to others: an emulated device moves data by a thread of the kernel.
class Patience {
  public:
    bool ends() {
        if (++polls_ % 64 != 0) return false;
        ::usleep(50);
        return polls_ > kPolls && now_ns() - began_ > kNanoseconds;
    }

  private:
    static constexpr int kPolls = 50000;
    static constexpr std::int64_t kNanoseconds = 5000000000;
    int polls_ = 0;
    std::int64_t began_ = now_ns();
};

// Calls post() and polls until the operation has ended; 0 or an error.
template <class Post>
int end(Endpoint& endpoint, Access& access, Post&& post) {
    access = {};
    access.operation.ended = [](Operation& operation, int error) {
        auto& ended = reinterpret_cast<Access&>(operation);
        ended.error = error;
        ended.ended = true;
    };
    Ignored ignored;
    Posted posted = Posted::Again;
    for (Patience patience; !access.ended;) {
        if (posted == Posted::Again) posted = post();
        if (posted == Posted::Failed || posted == Posted::NoMemory) return EIO;
        endpoint.poll(ignored);
        if (patience.ends()) return ETIMEDOUT;
    }
    return access.error;
}

/// A row between two words that no atomic may change.
struct RowProbe {
    static constexpr std::size_t kCount = 3;
    explicit RowProbe(RowForm form) : row(form, Basic::I64, Op::Sum, kCount, sizeof(std::int64_t)) {}

    Access access;
    AtomicRow row;
    std::int64_t words[kCount + 2] = {};
};

void fill(std::byte* bytes, unsigned seed) {
    for (std::size_t i = 0; i < kBytes; ++i)
        bytes[i] = static_cast<std::byte>((i * 31 + seed) >> (i % 5));
}

}  // namespace

std::string probe_direct(Endpoint& endpoint) {
    auto probe = std::make_unique<Probe>();
    PeerId self = 0;
    Exposed exposed;
    if (!endpoint.insert(endpoint.address(), self) || !endpoint.expose(probe->there, kBytes, exposed))
        return kUnregistered;
    fill(probe->here, 1);
    std::memset(probe->there, 0, kBytes);
    const int wrote = end(endpoint, probe->access, [&] {
        return endpoint.write(self, probe->here, kBytes, exposed.base, exposed.key, probe->access.operation);
    });
    if (wrote != 0) return keep(std::move(probe), "a write does not end well");
    if (std::memcmp(probe->here, probe->there, kBytes) != 0)
        return keep(std::move(probe), "a write ends before its data is there");
    fill(probe->there, 2);
    const int read = end(endpoint, probe->access, [&] {
        return endpoint.read(self, probe->here, kBytes, exposed.base, exposed.key, probe->access.operation);
    });
    if (read != 0) return keep(std::move(probe), "a read does not end well");
    if (std::memcmp(probe->here, probe->there, kBytes) != 0) return keep(std::move(probe), "a read brings other bytes");
    endpoint.revoke(exposed);
    return {};
}

namespace {

// Bytes of private memory, at `where` if that is free; null if there are none.
std::byte* map(std::size_t bytes, void* where = nullptr) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED_NOREPLACE : 0);
    void* const got = ::mmap(where, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

// Whether the system has taken back the page of this address.
bool is_gone(std::uintptr_t address) {
    unsigned char resident = 0;
    return ::mincore(reinterpret_cast<void*>(base::page_down(address)), base::page_bytes(), &resident) != 0 ||
           (resident & 1) == 0;
}

// A block of memory from the heap's end, or from its middle if the heap does not grow.
struct HeapEnd {
    static constexpr std::size_t kBlock = std::size_t{120} << 10;  // below what malloc() maps by itself
    static constexpr std::size_t kTail = std::size_t{256} << 10;   // what malloc() takes from the system in advance

    HeapEnd() {
        for (void*& block : blocks) {
            last = block = std::malloc(kBlock);
            const auto* const end = static_cast<const std::byte*>(::sbrk(0));
            const std::byte* const at = middle();
            if (block == nullptr || (at < end && end - at < static_cast<std::ptrdiff_t>(kTail))) return;
        }
    }
    std::byte* middle() const { return static_cast<std::byte*>(last) + kBlock / 2; }
    void free() {
        for (void*& block : blocks)
            if (block != last) std::free(block);
        std::free(last);
    }

    void* blocks[64]{};
    void* last = nullptr;
};

}  // namespace

std::string renew_heap(base::FunctionRef<bool(void* memory, std::size_t bytes, int time)> use) {
    constexpr std::size_t kPart = HeapEnd::kBlock / 3;
    std::string why = "no memory";
    for (int attempt = 0; attempt < 4; ++attempt) {
        HeapEnd heap;
        if (heap.last == nullptr) return why;
        const auto place = reinterpret_cast<std::uintptr_t>(heap.middle());
        const bool used = use(heap.middle(), kPart, 0);
        heap.free();
        ::malloc_trim(0);
        const bool gone = is_gone(place);
        HeapEnd again;
        const bool same = reinterpret_cast<std::uintptr_t>(again.middle()) == place;
        const bool right = used && same && use(again.middle(), kPart, 1);
        again.free();
        if (!used || (gone && same && !right)) return kStale;
        if (gone && same) return {};
        why = gone ? "malloc returns another address" : "the heap does not shrink";
    }
    return why;
}

std::string probe_cache(Endpoint& endpoint) {
    auto probe = std::make_unique<Probe>();
    PeerId self = 0;
    Exposed exposed;
    if (!endpoint.insert(endpoint.address(), self) || !endpoint.expose(probe->there, kBytes, exposed))
        return kUnregistered;
    unsigned seed = 3;
    bool failed = false;
    const auto arrives = [&](void* memory) {
        fill(static_cast<std::byte*>(memory), ++seed);
        const int error = end(endpoint, probe->access, [&] {
            return endpoint.write(self, memory, kBytes, exposed.base, exposed.key, probe->access.operation);
        });
        failed = failed || error != 0;
        return error == 0 && std::memcmp(memory, probe->there, kBytes) == 0;
    };
    std::string why = "the system maps no memory twice at one address";
    if (std::byte* const first = map(kBytes); first != nullptr) {
        bool right = arrives(first);
        ::munmap(first, kBytes);
        if (map(kBytes, first) == first) {
            right = arrives(first) && right;
            ::madvise(first, kBytes, MADV_DONTNEED);
            right = arrives(first) && right;
            // The mapping moves, because the place behind it is taken.
            std::byte* const behind = map(kBytes, first + kBytes);
            void* const moved = ::mremap(first, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
            if (moved != MAP_FAILED && moved != first && map(kBytes, first) == first)
                right = arrives(first) && arrives(moved) && right;
            if (moved != MAP_FAILED) ::munmap(moved, 2 * kBytes);
            if (behind != nullptr) ::munmap(behind, kBytes);
            // Another mapping moves to its place. UCX's mremap refuses that.
            std::byte* const other = map(kBytes);
            if (other != nullptr) fill(other, 0);
            if (other == nullptr || ::mremap(other, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, first) != first) {
                if (other != nullptr) ::munmap(other, kBytes);
            } else {
                right = arrives(first) && right;
            }
            why = right ? "" : kStale;
        }
        ::munmap(first, kBytes);
    }
    if (why.empty()) why = renew_heap([&](void* memory, std::size_t, int) { return arrives(memory); });
    if (failed) return keep(std::move(probe), "a write does not end well");
    endpoint.revoke(exposed);
    return why;
}

std::string probe_atomics(Endpoint& endpoint) {
    auto probe = std::make_unique<AtomicProbe>();
    PeerId self = 0;
    Exposed exposed;
    if (!endpoint.insert(endpoint.address(), self) || !endpoint.expose(probe->words, sizeof probe->words, exposed))
        return kUnregistered;
    constexpr std::uint64_t kHigh = std::uint64_t{1} << 63;
    // All steps use the second word; each step's result is the next one's start value.
    const struct {
        RowForm form;
        std::uint64_t operand, expected, before, after;
    } steps[] = {
        {RowForm::Fetch, kHigh + 5, 0, 0, kHigh + 5},
        {RowForm::Swap, 7, 5, kHigh + 5, kHigh + 5},
        {RowForm::Swap, 7, kHigh + 5, kHigh + 5, 7},
        {RowForm::Fetch, ~std::uint64_t{0}, 0, 7, 6},
    };
    for (const auto& step : steps) {
        probe->row = std::make_unique<AtomicRow>(step.form, Basic::U64, Op::Sum, 1, sizeof step.operand);
        AtomicRow& row = *probe->row;
        std::uint64_t before = ~step.before;
        std::memcpy(row.operands(), &step.operand, row.bytes);
        std::memcpy(row.before(), &before, row.bytes);
        if (step.form == RowForm::Swap) std::memcpy(row.expected(), &step.expected, row.bytes);
        const int error = end(endpoint, probe->access, [&] {
            return endpoint.update(self, row, exposed.base + sizeof probe->words[0], exposed.key,
                                   probe->access.operation);
        });
        if (error != 0) return keep(std::move(probe), "an atomic does not end well");
        std::memcpy(&before, row.before(), row.bytes);
        if (before != step.before || probe->words[0] != 0 || probe->words[1] != step.after)
            return keep(std::move(probe), "an atomic does not do what it should");
    }
    endpoint.revoke(exposed);
    return {};
}

std::string probe_rows(Endpoint& endpoint) {
    for (const RowForm form : {RowForm::Update, RowForm::Fetch, RowForm::Swap}) {
        auto probe = std::make_unique<RowProbe>(form);
        AtomicRow& row = probe->row;
        PeerId self = 0;
        Exposed exposed;
        if (endpoint.longest_row(form, row.type, row.op) < row.count) return "has no atomics on rows of words";
        if (!endpoint.insert(endpoint.address(), self) || !endpoint.expose(probe->words, sizeof probe->words, exposed))
            return kUnregistered;
        std::int64_t after[RowProbe::kCount + 2];
        for (std::size_t i = 0; i < std::size(after); ++i) {
            const auto number = static_cast<std::int64_t>(i);
            probe->words[i] = after[i] = 1000 - 300 * number;
            if (i == 0 || i > RowProbe::kCount) continue;
            const std::int64_t operand = -7 * number;
            // The middle element is not as expected, and Swap leaves it.
            const bool differs = form == RowForm::Swap && i == 2;
            const std::int64_t expected = after[i] + (differs ? 1 : 0);
            const std::size_t at = (i - 1) * sizeof operand;
            std::memcpy(row.operands() + at, &operand, sizeof operand);
            if (form == RowForm::Swap) std::memcpy(row.expected() + at, &expected, sizeof expected);
            after[i] = form != RowForm::Swap ? after[i] + operand : differs ? after[i] : operand;
        }
        std::int64_t before[RowProbe::kCount];
        std::memcpy(before, probe->words + 1, sizeof before);
        const int error = end(endpoint, probe->access, [&] {
            return endpoint.update(self, row, exposed.base + sizeof probe->words[0], exposed.key,
                                   probe->access.operation);
        });
        if (error != 0) return keep(std::move(probe), "an atomic on a row does not end well");
        if (std::memcmp(probe->words, after, sizeof after) != 0 ||
            (form != RowForm::Update && std::memcmp(row.before(), before, sizeof before) != 0))
            return keep(std::move(probe), "an atomic on a row does not do what it should");
        endpoint.revoke(exposed);
    }
    return {};
}

}  // namespace osc::fabric
