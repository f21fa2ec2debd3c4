// What the network gives without any MPI: the loops of net_bench by bare libfabric between two processes, of which
// rank 0 is the origin and rank 1 the target.
//   net_raw PROVIDER [--server HOST] [--port N] [--rank 0|1] [--short] [MEASURE...]
// HOST is where rank 0 runs; without --rank it is what an MPI launcher says. Names are those of net_bench without the
// window's flavour; and, only where they are asked for, those of the micro-benchmarks' curves (put_latency.BYTES ...),
// message.BYTES, the time of a message one way, exchange.BYTES, that of a message to the other process and of the wait
// for its own, and waitable.NAME, one of these with endpoints on which a thread could sleep. The target polls, except
// in the measures "computing", "cold" and "idle_cpu", where a thread of it sleeps until something comes, and the rest
// of the process computes or sleeps.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "net.h"
#include "raw_measures.h"

namespace bench {
namespace {

constexpr int kWarmUps = 20;

// The origin runs time(turn), the target attend() until the origin announces the end.
template <class Time, class Attend>
void run_one(Process& p, const Raw& what, const std::string& name, Time&& time, Attend&& attend) {
    if (what.atomic && !p.endpoint().atomics()) return;
    p.clear();
    if (!p.origin()) what.prepare(p);
    p.control().meet();
    if (p.origin()) {
        std::uint64_t laps = 0;
        const Timing timing = time([&] { what.turn(p, laps++); });
        const bool there = p.control().swap(laps) != 0;
        what.finish(p, laps);
        print_result(name, 2, per_one(timing, what.parts), there && what.origin_right(p, laps));
    } else {
        attend();
        std::uint64_t laps = 0;
        p.control().receive(&laps, sizeof laps);
        what.finish(p, laps);
        const std::uint64_t right = what.target_right(p, laps) ? 1 : 0;
        p.control().send(&right, sizeof right);
    }
}

void run_polling(Process& p, const Raw& what) {
    const auto time = [&](const auto& turn) {
        return timed(net_budget(p.brief()), 1, [&](std::uint64_t n) {
            for (; n > 0; --n)
                turn();
        });
    };
    run_one(p, what, what.name, time, [&] { p.poll_until_told(what.answer); });
}

void run_computing(Process& p, const Raw& what, bool cold) {
    const auto time = [&](const auto& turn) {
        for (int i = 0; i < kWarmUps; ++i)
            turn();
        return cold ? sampled_apart(p.brief(), turn) : sampled(p.brief(), turn);
    };
    run_one(p, what, (cold ? "cold." : "computing.") + what.name, time, [&] {
        while (!p.control().stopped())
            spin_for_ns(kComputingNs);
    });
}

// The processor time of the target while all of it sleeps.
void run_idle(Process& p, const Raw& put) {
    p.clear();
    p.control().meet();
    if (p.origin()) put.turn(p, 0);
    p.control().meet();
    const double before = cpu_ns();
    sleep_ns(idle_ns(p.brief()));
    const auto took = static_cast<std::uint64_t>(cpu_ns() - before);
    const std::uint64_t of_target = p.control().swap(took);
    const bool right = p.origin() || put.target_right(p, 1);
    const bool there = p.control().swap(right ? 1 : 0) != 0;
    if (p.origin()) print_result("idle_cpu", 2, summarise({static_cast<double>(of_target)}, 1), there);
}

bool wants(const Options& options, const std::string& name) {
    if (options.wanted.empty()) return true;
    return std::find(options.wanted.begin(), options.wanted.end(), name) != options.wanted.end();
}

void run_all(const Options& options) {
    const Control control(options.rank, options.server, options.port);
    std::vector<Raw> polling;
    std::vector<Raw> waitable;
    std::vector<Raw> computing;
    std::vector<Raw> cold;
    for (const Raw& one : polling_measures()) {
        if (wants(options, one.name)) polling.push_back(one);
    }
    for (Raw one : curve_measures()) {
        if (options.wanted.empty()) break;
        if (wants(options, one.name)) polling.push_back(one);
        one.name.insert(0, "waitable.");
        if (wants(options, one.name)) waitable.push_back(one);
    }
    for (const Raw& one : small_measures()) {
        if (wants(options, "computing." + one.name)) computing.push_back(one);
        if (wants(options, "cold." + one.name)) cold.push_back(one);
    }
    const auto run = [&](const std::vector<Raw>& list, Progress progress) {
        if (list.empty()) return;
        Process p(options, control, progress);
        for (const Raw& one : list)
            run_polling(p, one);
        control.meet();
    };
    run(polling, Progress::polling);
    run(waitable, Progress::waitable);
    const bool idle = wants(options, "idle_cpu");
    if (!computing.empty() || !cold.empty() || idle) {
        Process p(options, control, Progress::thread);
        if (!p.origin()) p.endpoint().start_thread();
        for (const Raw& one : computing)
            run_computing(p, one, false);
        for (const Raw& one : cold)
            run_computing(p, one, true);
        if (idle) run_idle(p, small_measures().front());
        if (!p.origin()) p.endpoint().stop_thread();
        control.meet();
    }
}

bool parse(int argc, char** argv, Options& options) {
    const char* launched = std::getenv("PMI_RANK");
    if (launched != nullptr) options.rank = std::atoi(launched);
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool more = i + 1 < argc;
        if (word == "--short") {
            options.brief = true;
        } else if (word == "--server" && more) {
            options.server = argv[++i];
        } else if (word == "--port" && more) {
            options.port = std::atoi(argv[++i]);
        } else if (word == "--rank" && more) {
            options.rank = std::atoi(argv[++i]);
        } else if (word.starts_with("--")) {
            return false;
        } else if (options.provider.empty()) {
            options.provider = word;
        } else {
            options.wanted.push_back(word);
        }
    }
    return !options.provider.empty();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Options options;
    if (!bench::parse(argc, argv, options)) {
        std::fprintf(stderr,
                     "usage: net_raw PROVIDER [--server HOST] [--port N] [--rank 0|1] [--short] [MEASURE...]\n");
        return 1;
    }
    try {
        bench::run_all(options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "net_raw: %s\n", e.what());
        return 1;
    }
    return 0;
}
