// Whether any function is slower than the same thing built from other functions: each pair in turns within one run. An
// ordinary MPI program, run by the script consistency:
//   consistency_bench [--short] [--list] [PAIR...]
// A pair prints two lines of JSON, PAIR.function and PAIR.built. Rank 0 is the origin, the last rank the target.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "finalize.h"
#include "measures.h"
#include "net.h"

namespace bench {
namespace {

constexpr int kLongs = 8192;  // 64 KiB

// What the calls need: a window, operands that last, groups of the other side, a vector type.
struct Scene {
    const Context& c;
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    std::vector<long> in = std::vector<long>(kLongs, 1);
    std::vector<long> out = std::vector<long>(kLongs, 0);
    MPI_Group other = MPI_GROUP_NULL;
    MPI_Datatype comb = MPI_DATATYPE_NULL;  // 64 longs, every second one
    int target;

    explicit Scene(const Context& context) : c(context), target(context.ranks - 1) {
        MPI_Win_allocate(2 * kLongs * static_cast<MPI_Aint>(sizeof(long)), sizeof(long), MPI_INFO_NULL, c.comm,
                         static_cast<void*>(&base), &win);
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Comm_group(c.comm, &all);
        const int peer = c.origin() ? target : kOrigin;
        MPI_Group_incl(all, 1, &peer, &other);
        MPI_Group_free(&all);
        MPI_Type_vector(64, 1, 2, MPI_LONG, &comb);
        MPI_Type_commit(&comb);
    }
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;
    ~Scene() {
        MPI_Type_free(&comb);
        MPI_Group_free(&other);
        MPI_Win_free(&win);
    }
    bool is_target() const { return c.rank == target; }

    void put(int count, MPI_Aint at = 0) { MPI_Put(in.data(), count, MPI_LONG, target, at, count, MPI_LONG, win); }
    void get(int count, MPI_Aint at = 0) { MPI_Get(out.data(), count, MPI_LONG, target, at, count, MPI_LONG, win); }
    void flush() { MPI_Win_flush(target, win); }
    void fetch(MPI_Op op) {
        MPI_Get_accumulate(in.data(), 1, MPI_LONG, out.data(), 1, MPI_LONG, target, 0, 1, MPI_LONG, op, win);
    }
    void accumulate(int count, MPI_Op op) {
        MPI_Accumulate(in.data(), count, MPI_LONG, target, 0, count, MPI_LONG, op, win);
    }
};

using Action = std::function<void(Scene&)>;

// Passive: rank 0 alone, inside a lock_all. Locking: rank 0 alone, outside. Together: all ranks.
enum class Part { Passive, Locking, Together };

struct Pair {
    const char* name;
    Part part;
    Action function;
    Action built;
};

void lock_put(Scene& s, bool flushes) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, s.target, 0, s.win);
    s.put(1);
    if (flushes) s.flush();
    MPI_Win_unlock(s.target, s.win);
}

void pscw(Scene& s) {
    if (s.c.origin()) {
        MPI_Win_start(s.other, 0, s.win);
        s.put(1);
        MPI_Win_complete(s.win);
    } else if (s.is_target()) {
        MPI_Win_post(s.other, 0, s.win);
        MPI_Win_wait(s.win);
    }
}

// The same by messages and a lock.
void handshake(Scene& s) {
    if (s.c.origin()) {
        MPI_Recv(nullptr, 0, MPI_BYTE, s.target, 0, s.c.comm, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, s.target, 0, s.win);
        s.put(1);
        MPI_Win_unlock(s.target, s.win);
        MPI_Send(nullptr, 0, MPI_BYTE, s.target, 0, s.c.comm);
    } else if (s.is_target()) {
        MPI_Send(nullptr, 0, MPI_BYTE, kOrigin, 0, s.c.comm);
        MPI_Recv(nullptr, 0, MPI_BYTE, kOrigin, 0, s.c.comm, MPI_STATUS_IGNORE);
    }
}

void fences(Scene& s) {
    MPI_Win_fence(0, s.win);
    if (s.c.origin()) s.put(1);
    MPI_Win_fence(0, s.win);
}

void barriers(Scene& s) {
    MPI_Barrier(s.c.comm);
    if (s.c.origin()) {
        MPI_Win_lock_all(0, s.win);
        s.put(1);
        MPI_Win_unlock_all(s.win);
    }
    MPI_Barrier(s.c.comm);
}

void waited(Scene& s, bool puts) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (puts)
        MPI_Rput(s.in.data(), 1, MPI_LONG, s.target, 0, 1, MPI_LONG, s.win, &request);
    else
        MPI_Rget(s.out.data(), 1, MPI_LONG, s.target, 0, 1, MPI_LONG, s.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    s.flush();
}

template <class Body>
Action flushed(Body body) {
    return [body](Scene& s) {
        body(s);
        s.flush();
    };
}

std::vector<Pair> pairs() {
    return {
        {"put_is_rput_wait", Part::Passive, flushed([](Scene& s) { s.put(1); }), [](Scene& s) { waited(s, true); }},
        {"get_is_rget_wait", Part::Passive, flushed([](Scene& s) { s.get(1); }), [](Scene& s) { waited(s, false); }},
        {"put_is_accumulate_replace", Part::Passive, flushed([](Scene& s) { s.put(1); }),
         flushed([](Scene& s) { s.accumulate(1, MPI_REPLACE); })},
        {"get_is_get_accumulate_no_op", Part::Passive, flushed([](Scene& s) { s.get(1); }),
         flushed([](Scene& s) { s.fetch(MPI_NO_OP); })},
        {"accumulate_is_get_accumulate", Part::Passive, flushed([](Scene& s) { s.accumulate(1, MPI_SUM); }),
         flushed([](Scene& s) { s.fetch(MPI_SUM); })},
        {"fetch_and_op_is_get_accumulate", Part::Passive,
         flushed([](Scene& s) { MPI_Fetch_and_op(s.in.data(), s.out.data(), MPI_LONG, s.target, 0, MPI_SUM, s.win); }),
         flushed([](Scene& s) { s.fetch(MPI_SUM); })},
        {"put64k_is_16_puts", Part::Passive, flushed([](Scene& s) { s.put(kLongs); }), flushed([](Scene& s) {
             for (int i = 0; i < 16; ++i)
                 s.put(kLongs / 16, i * (kLongs / 16));
         })},
        {"get64k_is_16_gets", Part::Passive, flushed([](Scene& s) { s.get(kLongs); }), flushed([](Scene& s) {
             for (int i = 0; i < 16; ++i)
                 s.get(kLongs / 16, i * (kLongs / 16));
         })},
        {"accumulate512_is_512_accumulates", Part::Passive, flushed([](Scene& s) { s.accumulate(512, MPI_SUM); }),
         flushed([](Scene& s) {
             for (int i = 0; i < 512; ++i)
                 s.accumulate(1, MPI_SUM);
         })},
        {"put_vector_is_its_elements", Part::Passive,
         flushed([](Scene& s) { MPI_Put(s.in.data(), 1, s.comb, s.target, 0, 1, s.comb, s.win); }),
         flushed([](Scene& s) {
             for (int i = 0; i < 64; ++i)
                 s.put(1, 2 * i);
         })},
        {"flush_is_flush_all", Part::Passive, flushed([](Scene& s) { s.put(1); }),
         [](Scene& s) {
             s.put(1);
             MPI_Win_flush_all(s.win);
         }},
        {"flush_local_is_flush", Part::Passive,
         [](Scene& s) {
             s.put(1);
             MPI_Win_flush_local(s.target, s.win);
         },
         flushed([](Scene& s) { s.put(1); })},
        {"unlock_is_flush_unlock", Part::Locking, [](Scene& s) { lock_put(s, false); },
         [](Scene& s) { lock_put(s, true); }},
        {"lock_all_is_a_lock_each", Part::Locking,
         [](Scene& s) {
             MPI_Win_lock_all(0, s.win);
             s.put(1);
             MPI_Win_unlock_all(s.win);
         },
         [](Scene& s) {
             for (int i = 0; i < s.c.ranks; ++i)
                 MPI_Win_lock(MPI_LOCK_SHARED, i, 0, s.win);
             s.put(1);
             for (int i = 0; i < s.c.ranks; ++i)
                 MPI_Win_unlock(i, s.win);
         }},
        {"fences_are_barriers_and_locks", Part::Together, fences, barriers},
        {"pscw_is_messages_and_a_lock", Part::Together, pscw, handshake},
    };
}

void run(const Context& c, const Pair& pair) {
    Scene scene(c);
    std::array<std::vector<double>, 2> each;
    std::uint64_t per_batch = 1;
    const auto batch = [&](const Action& action) {
        MPI_Barrier(c.comm);
        const bool alone = pair.part != Part::Together;
        if (alone && !c.origin()) {
            MPI_Barrier(c.comm);
            return 0.0;
        }
        if (pair.part == Part::Passive) MPI_Win_lock_all(0, scene.win);
        action(scene);
        const double begin = now_ns();
        for (std::uint64_t i = 0; i < per_batch; ++i)
            action(scene);
        const double took = now_ns() - begin;
        if (pair.part == Part::Passive) MPI_Win_unlock_all(scene.win);
        MPI_Barrier(c.comm);
        return took;
    };
    const double batch_ns = c.brief ? 2e5 : 3e6;
    while (c.agree(batch(pair.function) < batch_ns ? 1 : 0) != 0)
        per_batch *= 2;
    const int rounds = c.brief ? 3 : 15;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < each.size(); ++i) {
            const std::size_t which = (i + static_cast<std::size_t>(round)) % each.size();
            const double took = batch(which == 0 ? pair.function : pair.built);
            each[which].push_back(took / static_cast<double>(per_batch));
        }
    c.report(std::string(pair.name) + ".function", summarise(each[0], per_batch), true);
    c.report(std::string(pair.name) + ".built", summarise(each[1], per_batch), true);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Measures list;
    for (bench::Pair& pair : bench::pairs()) {
        const std::string name = pair.name;
        list.push_back(
            {name, [pair = std::move(pair)](const bench::Context& c, const std::string&) { bench::run(c, pair); }});
    }
    return bench::run_program({"consistency_bench", bench::net_budget, bench::limit_finalize}, list, argc, argv);
}
