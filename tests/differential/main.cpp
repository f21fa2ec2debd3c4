// The differential test: random valid RMA programs, one per seed, against a sequential model.
//
//   test_differential [--seed S] [--programs K] [--seconds T] [--host-safe] [--threads] [--watchdog T] [--keep LIST]
//                     [--list]
//
// Program S makes one window (the flavour follows from S) and runs rounds on it. Without --seed, programs 1, 2, ... run
// until the time is over, at least K of them, and every pair of flavour, operation, datatype class and synchronisation
// must have occurred. With it, K programs from S on. --host-safe leaves out what MPICH 4.0.2 itself gets wrong.
// --threads asks for MPI_THREAD_MULTIPLE, for cases of several threads. --list prints the steps of the programs with
// their numbers instead of running them; --keep runs only the steps with these numbers (7,9,12), by which campaign.py
// shrinks a program.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "contention.h"
#include "ordering.h"
#include "osc/osc.h"
#include "report.h"
#include "runner.h"
#include "steps.h"

// Absent when the host runs alone.
#pragma weak osc_version
#pragma weak osc_forwarded

namespace {

struct Options {
    unsigned long long seed = 1;
    bool seed_given = false;
    unsigned long long programs = 0;
    double seconds = 0;
    unsigned watchdog = 60;
};

Options read_options(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "0";
        if (word == "--host-safe") {
            diff::context().host_safe = true;
            continue;
        }
        if (word == "--threads") continue;  // main has read it
        if (word == "--list") {
            diff::steps().list();
            continue;
        }
        ++i;
        if (word == "--seed") {
            options.seed = std::strtoull(value, nullptr, 10);
            options.seed_given = true;
        } else if (word == "--programs") {
            options.programs = std::strtoull(value, nullptr, 10);
        } else if (word == "--seconds") {
            options.seconds = std::strtod(value, nullptr);
        } else if (word == "--keep") {
            diff::steps().keep(value);
        } else if (word == "--watchdog") {
            options.watchdog = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
        } else {
            std::fprintf(stderr, "differential: unknown option %s\n", argv[i - 1]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    if (options.programs == 0) options.programs = options.seed_given ? 1 : 40;
    return options;
}

void run_program(unsigned long long seed, unsigned watchdog, diff::Coverage& coverage) {
    using namespace diff;
    int me = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    Random random(seed);
    Random jitter(seed * 1000 + static_cast<unsigned long long>(me));
    const auto flavor = static_cast<Flavor>(seed % static_cast<unsigned long long>(Flavor::Count));
    steps().restart();
    context().seed = seed;
    context().round = -1;
    context().what = name_of(flavor);
    context().sync = "creation";
    watch(watchdog);
    Place place(flavor, context().host_safe, random);
    Model model;
    for (int rank = 0; rank < place.ranks(); ++rank)
        model.emplace_back(place.size(rank));
    Runner runner(place, model, jitter);
    const int rounds = random.between(5, 9);
    for (int round = 0; round < rounds; ++round) {
        watch(watchdog);
        context().round = round;
        const auto sync = static_cast<Sync>(random.below(static_cast<std::size_t>(Sync::Count)));
        context().sync = name_of(sync);
        if (flavor == Flavor::Dynamic && random.once_in(3)) {
            const int rank = static_cast<int>(random.below(static_cast<std::size_t>(place.ranks())));
            const auto [from, to] = place.replace_region(rank, random);
            for (std::size_t byte = from; byte < to; ++byte) {
                model[static_cast<std::size_t>(rank)].value[byte] = 0;
                model[static_cast<std::size_t>(rank)].known[byte] = 1;
            }
        }
        const bool runs = steps().take([&] { return "round " + std::to_string(round) + ": " + name_of(sync); });
        const Model before = model;
        Round planned = plan_round(sync, place, model, context().host_safe, random);
        if (!runs && planned.empty()) {  // without its synchronisation and the owners' stores
            planned.release();
            model = before;
            continue;
        }
        for (const Phase& phase : planned.phases)
            for (const Operation& op : phase.operations)
                coverage.note(flavor, sync, op);
        runner.run(planned);
    }
    watch(watchdog);
    context().round = rounds;
    storm(place, model, coverage, random, jitter);
    exclusive_counting(place, model, coverage, random, jitter);
    swap_loop(place, model, coverage, random);
    if (seed % 4 == 0) ordered_locks(random, jitter);
    if (seed % 8 == 0) blocked_thread(random);
    context().sync = "free";
}

// Whether the host allocates a shared window over all processes. MPICH 5.0.2 of Debian forky counts each as a node.
bool host_shares_memory() {
    MPI_Comm node;
    int here = 0;
    int all = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    return here == all;
}

bool more(double end) {
    int go = MPI_Wtime() < end ? 1 : 0;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return go != 0;
}

}  // namespace

int main(int argc, char** argv) {
    const bool threads =
        std::any_of(argv, argv + argc, [](const char* word) { return std::string(word) == "--threads"; });
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    int me = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Options options = read_options(argc, argv);
    if (diff::context().host_safe && osc_version == nullptr && !host_shares_memory()) {
        if (me == 0) std::printf("differential: skipped, the host has no shared window over all processes\n");
        MPI_Finalize();
        return 77;
    }
    const double end = MPI_Wtime() + options.seconds;
    diff::Coverage coverage;
    unsigned long long done = 0;
    while (done < options.programs || more(end))
        run_program(options.seed + done++, options.watchdog, coverage);
    diff::watch(0);
    int failures = 0;
    if (me == 0 && !diff::steps().listing()) {
        std::printf("differential: programs %llu to %llu agree at %d ranks with %s\n", options.seed,
                    options.seed + done - 1, size, osc_version != nullptr ? "libosc" : "the host MPI alone");
        if (!options.seed_given) failures = coverage.report(true);
        if (failures > 0) std::printf("differential: %d combinations did not occur\n", failures);
    }
    if (osc_forwarded != nullptr && !diff::context().host_safe) {
        for (std::size_t call = 0; call < static_cast<std::size_t>(diff::Call::Count); ++call) {
            const std::string name = std::string("MPI_") + diff::name_of(static_cast<diff::Call>(call));
            if (osc_forwarded(name.c_str()) == 0) continue;
            std::printf("differential: libosc left %s to the host\n", name.c_str());
            ++failures;
        }
    }
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
