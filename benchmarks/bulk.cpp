// Large transfers on allocated windows and on the program's own memory: put and get of 64 KiB and 4 MiB (the driver
// compares them with memcpy) and accumulate of 64 KiB and 1 MiB of double.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

enum class Kind { put, get, accumulate };

struct Bulk {
    Kind kind;
    std::size_t bytes;
};

// The word at index i of a block: known everywhere, different for neighbours; small enough to be summed as doubles.
std::uint64_t pattern(std::size_t i) {
    return i % 509 + 1;
}

// The first and last word of a put carry its stamp, which distinguishes the last of many equal blocks.
std::uint64_t expected_put(std::size_t i, std::size_t words, std::size_t k, std::uint64_t runs) {
    return i == 0 || i == words - 1 ? stamp(k, runs - 1) : pattern(i);
}

struct FreeMemory {
    void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::uint64_t[], FreeMemory>;

Buffer buffer(std::size_t bytes) {
    Buffer b(static_cast<std::uint64_t*>(std::aligned_alloc(4096, bytes)));
    return b;
}

void fill(Kind kind, std::uint64_t* block, std::size_t words) {
    for (std::size_t i = 0; i < words; ++i) {
        if (kind == Kind::accumulate) {
            const auto value = static_cast<double>(pattern(i));
            std::memcpy(&block[i], &value, sizeof value);
        } else {
            block[i] = pattern(i);
        }
    }
}

bool target_right(const Bulk& what, const std::byte* at, std::size_t k, std::uint64_t runs) {
    const std::size_t words = what.bytes / 8;
    if (runs == 0) return true;
    for (std::size_t i = 0; i < words; ++i) {
        if (what.kind == Kind::accumulate) {
            double value = 0;
            std::memcpy(&value, at + 8 * i, sizeof value);
            if (value != static_cast<double>(runs * pattern(i))) return false;
        } else {
            std::uint64_t value = 0;
            std::memcpy(&value, at + 8 * i, sizeof value);
            const std::uint64_t expected = what.kind == Kind::get ? pattern(i) : expected_put(i, words, k, runs);
            if (value != expected) return false;
        }
    }
    return true;
}

void issue(const Bulk& what, std::uint64_t* block, MPI_Win win, MPI_Aint at, std::size_t k, std::uint64_t lap) {
    const auto bytes = static_cast<int>(what.bytes);
    switch (what.kind) {
        case Kind::put:
            block[0] = block[what.bytes / 8 - 1] = stamp(k, lap);
            MPI_Put(block, bytes, MPI_BYTE, kTarget, at, bytes, MPI_BYTE, win);
            break;
        case Kind::get:
            MPI_Get(block, bytes, MPI_BYTE, kTarget, at, bytes, MPI_BYTE, win);
            break;
        case Kind::accumulate:
            MPI_Accumulate(block, bytes / 8, MPI_DOUBLE, kTarget, at, bytes / 8, MPI_DOUBLE, MPI_SUM, win);
            break;
    }
    MPI_Win_flush(kTarget, win);
}

void run_bulk(const Context& c, const std::string& name, const Bulk& what, Flavour flavour, bool rotate) {
    const std::size_t room = what.bytes + 65536;
    const Plan plan = rotate ? rotating_plan(room, what.bytes, 1, kSeed) : hot_plan(room);
    WindowSet set(flavour, plan.windows, plan.window_bytes, c.comm);
    const Buffer block = buffer(what.bytes);
    const std::size_t words = what.bytes / 8;
    if (what.kind == Kind::get) {
        std::memset(block.get(), 0, what.bytes);
    } else {
        fill(what.kind, block.get(), words);
    }
    auto place = [&](const Step& s) { return set.memory(static_cast<int>(s.window)) + s.offset; };
    if (c.target() && what.kind == Kind::get) {
        const Buffer source = buffer(what.bytes);
        fill(what.kind, source.get(), words);
        set.own_begin();
        for (const Step& s : plan.steps)
            std::memcpy(place(s), source.get(), what.bytes);
        set.own_end();
    }
    MPI_Barrier(c.comm);
    Timing timing;
    Cursor cursor;
    bool right = true;
    if (c.origin()) {
        set.lock_all();
        timing = timed(c.budget, plan.steps.size(), [&](std::uint64_t n) {
            for (; n > 0; --n) {
                const Step s = plan.steps[cursor.step];
                issue(what, block.get(), set.window(static_cast<int>(s.window)), s.offset, cursor.step, cursor.lap);
                cursor.advance(plan.steps.size());
            }
        });
        if (what.kind == Kind::get) {
            for (std::size_t i = 0; i < words; ++i)
                right = right && block[i] == pattern(i);
        }
        set.unlock_all();
    }
    MPI_Barrier(c.comm);
    const std::uint64_t total = c.agree(cursor.total);
    if (c.target()) {
        set.own_begin();
        for (std::size_t k = 0; k < plan.steps.size(); ++k) {
            right = right && target_right(what, place(plan.steps[k]), k, plan.runs_of(k, total));
        }
        set.own_end();
    }
    c.report(name, timing, right);
}

void add(Measures& list, const std::string& name, const Bulk& what) {
    for (const Flavour flavour : {Flavour::allocate, Flavour::malloc})
        for (const bool rotate : {false, true})
            list.push_back({name + "." + name_of(flavour) + (rotate ? ".rot" : ""),
                            [what, flavour, rotate](const Context& c, const std::string& n) {
                                run_bulk(c, n, what, flavour, rotate);
                            }});
}

}  // namespace

void add_bulk_measures(Measures& list) {
    constexpr std::size_t kMedium = std::size_t{64} << 10;
    constexpr std::size_t kLarge = std::size_t{4} << 20;
    add(list, "acc64k", {Kind::accumulate, kMedium});
    add(list, "acc1m", {Kind::accumulate, std::size_t{1} << 20});
    add(list, "put64k", {Kind::put, kMedium});
    add(list, "get64k", {Kind::get, kMedium});
    add(list, "put4m", {Kind::put, kLarge});
    add(list, "get4m", {Kind::get, kLarge});
}

}  // namespace bench
