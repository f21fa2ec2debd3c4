// What every measuring MPI program does: reads its arguments, runs the wanted measures one after the other and reports.
#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "measures.h"

namespace bench {

void Context::report(const std::string& measure, const Timing& timing, bool mine_valid) const {
    int mine = mine_valid ? 1 : 0;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, comm);
    if (origin()) print_result(measure, ranks, timing, all != 0);
}

std::uint64_t Context::agree(std::uint64_t value) const {
    MPI_Bcast(&value, 1, MPI_UINT64_T, kOrigin, comm);
    return value;
}

Timing Context::timed_together(std::size_t steps, const std::function<void(std::uint64_t)>& body) const {
    const double start = now_ns();
    std::uint64_t n = 1;
    double took = 0;
    // The measured calls synchronise the ranks themselves: a few of them before the clock starts and after it stops, or
    // it counts how the other ranks get out of the MPI's own collective, and the first of them into the next, where
    // they may poll for whole time slices while rank 0 has yet to leave its last measured call.
    constexpr std::uint64_t kSettle = 4;
    const auto clocked = [&](std::uint64_t calls) {
        body(kSettle);
        const double begin = now_ns();
        body(calls);
        const double end = now_ns();
        body(kSettle);
        return end - begin;
    };
    for (;; n *= 2) {
        took = clocked(n);
        const double end = now_ns();
        if (agree(warm(budget, n, steps, took, end - start) ? 1 : 0) != 0) break;
    }
    // At least as many that one lost time slice does not make the batch.
    const std::uint64_t per_batch = agree(std::max<std::uint64_t>(16, fill_batch(budget, n, took)));
    std::vector<double> each;
    for (int i = 0; i < budget.batches; ++i) {
        MPI_Barrier(comm);
        each.push_back(clocked(per_batch) / static_cast<double>(per_batch));
    }
    return summarise(std::move(each), per_batch);
}

int run_program(const Program& program, const Measures& list, int argc, char** argv) {
    bool brief = false;
    bool only_list = false;
    std::vector<std::string> wanted;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--short") == 0) {
            brief = true;
        } else if (std::strcmp(argv[i], "--list") == 0) {
            only_list = true;
        } else {
            wanted.emplace_back(argv[i]);
        }
    }
    if (only_list) {
        for (const Measure& m : list)
            std::printf("%s\n", m.name.c_str());
        return 0;
    }
    MPI_Init(&argc, &argv);
    Context context{MPI_COMM_WORLD, 0, 0, program.budget(brief), brief};
    MPI_Comm_rank(context.comm, &context.rank);
    MPI_Comm_size(context.comm, &context.ranks);
    int status = 0;
    if (context.ranks < 2) {
        std::fprintf(stderr, "%s: needs at least 2 ranks\n", program.name);
        status = 1;
    } else {
        for (const Measure& m : list) {
            if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), m.name) == wanted.end()) continue;
            m.run(context, m.name);
            MPI_Barrier(context.comm);
        }
    }
    if (program.at_end != nullptr) program.at_end();
    MPI_Finalize();
    return status;
}

}  // namespace bench
