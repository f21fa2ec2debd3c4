// The loops over sizes (see measures.h).
#include "measures.h"

#include "transfers.h"

namespace osu {

int latency(const Program& program, const Operation& operation, int argc, char** argv) {
    return run(program, argc, argv, [&](const Run& run) {
        // Where the target takes part, the roles alternate, so that each epoch waits for the one before.
        const Direction direction = is_active(run.options.sync) ? Direction::alternating : Direction::one_way;
        Transfers transfers(run, operation, direction, 1);
        Report report = run.report({"Size", "size", 0}, {{"Latency (us)", "latency_us", 3}});
        for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
            const Measured m = transfers.measure(bytes, run.options.repeats(bytes));
            report.row(bytes, {scaled(m.ns, 1e-3)}, m.valid);
        }
        return report.finish();
    });
}

int bandwidth(const Program& program, const Operation& operation, bool both_ways, int argc, char** argv) {
    return run(program, argc, argv, [&](const Run& run) {
        Transfers transfers(run, operation, both_ways ? Direction::both_ways : Direction::one_way, run.options.window);
        Report report = run.report({"Size", "size", 0}, {{"Bandwidth (MB/s)", "bandwidth_mb_s", 2}});
        for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
            const Measured m = transfers.measure(bytes, run.options.repeats(bytes));
            const double moved = static_cast<double>(bytes) * static_cast<double>(transfers.in_flight(bytes));
            // Bytes per ns are GB/s.
            report.row(bytes, {inverted(m.ns, (both_ways ? 2 : 1) * moved * 1e3)}, m.valid);
        }
        return report.finish();
    });
}

}  // namespace osu
