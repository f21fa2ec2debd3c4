// Puts and gets of every size, one or eight under one flush: what net_crossover runs with each protocol forced.
#include <cstring>

#include "measures.h"
#include "net.h"
#include "windows.h"

namespace bench {
namespace {

constexpr std::size_t kMost = std::size_t{64} << 10;
constexpr std::size_t kManyPerFlush = 8;

void run_size(const Context& c, const std::string& name, bool get, std::size_t bytes, std::size_t per_flush) {
    WindowSet set(Flavour::allocate, 1, kMost * kManyPerFlush, c.comm);
    const MPI_Win win = set.window(0);
    std::vector<std::byte> mine(bytes * per_flush);
    const auto mark = [&](std::uint64_t lap, std::size_t i) { return static_cast<std::byte>(lap * 7 + i + 1); };
    if (c.target() && get) {
        set.own_begin();
        for (std::size_t i = 0; i < per_flush; ++i)
            std::memset(set.memory(0) + i * bytes, static_cast<int>(mark(0, i)), bytes);
        set.own_end();
    }
    MPI_Barrier(c.comm);
    std::uint64_t laps = 0;
    Timing timing;
    bool right = true;
    const int count = static_cast<int>(bytes);
    if (c.origin()) {
        set.lock_all();
        timing = timed(c.budget, 1, [&](std::uint64_t n) {
            for (; n > 0; --n, ++laps) {
                for (std::size_t i = 0; i < per_flush; ++i) {
                    std::byte* at = &mine[i * bytes];
                    const auto disp = static_cast<MPI_Aint>(i * bytes);
                    if (get) {
                        MPI_Get(at, count, MPI_BYTE, kTarget, disp, count, MPI_BYTE, win);
                    } else {
                        at[0] = at[bytes - 1] = mark(laps, i);
                        MPI_Put(at, count, MPI_BYTE, kTarget, disp, count, MPI_BYTE, win);
                    }
                }
                MPI_Win_flush(kTarget, win);
            }
        });
        set.unlock_all();
        for (std::size_t i = 0; get && i < per_flush; ++i)
            right = right && mine[i * bytes] == mark(0, i) && mine[(i + 1) * bytes - 1] == mark(0, i);
    }
    MPI_Barrier(c.comm);
    laps = c.agree(laps);
    if (c.target() && !get) {
        set.own_begin();
        for (std::size_t i = 0; i < per_flush; ++i) {
            const std::byte* at = set.memory(0) + i * bytes;
            right = right && at[0] == mark(laps - 1, i) && at[bytes - 1] == mark(laps - 1, i);
        }
        set.own_end();
    }
    c.report(name, per_one(timing, per_flush), right);
}

}  // namespace

void add_net_size_measures(Measures& list) {
    for (const bool get : {false, true})
        for (const std::size_t per_flush : {std::size_t{1}, kManyPerFlush})
            for (std::size_t bytes = 1024; bytes <= kMost; bytes *= 2)
                list.push_back(
                    {std::string(get ? "get" : "put") + std::to_string(per_flush) + "x" + std::to_string(bytes),
                     [=](const Context& c, const std::string& name) { run_size(c, name, get, bytes, per_flush); }});
}

}  // namespace bench
