// osc_overlap: how much of a transfer goes on while its origin computes. The computation lies between the operation and
// its synchronisation and takes as long as the transfer takes alone; hidden is what the two together take less than
// their sum.
#include <algorithm>

#include "measures.h"
#include "transfers.h"

namespace {

double hidden_percent(double overall, double compute, double alone) {
    return std::clamp(100 * (1 - (overall - compute) / alone), 0.0, 100.0);
}

bool overlap(const osu::Run& run) {
    osu::Transfers transfers(run, osu::operation_of(run.options.kind), osu::Direction::one_way, run.options.window);
    osu::Report report = run.report({"Size", "size", 0}, {{"Overall (us)", "overall_us", 3},
                                                          {"Compute (us)", "compute_us", 3},
                                                          {"Pure Comm. (us)", "communication_us", 3},
                                                          {"Overlap (%)", "overlap_percent", 2}});
    for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
        const osu::Repeats repeats = run.options.repeats(bytes);
        const osu::Measured alone = transfers.measure(bytes, repeats);
        const double compute = alone.ns.median;
        const osu::Measured both = transfers.measure(bytes, repeats, {.origin = compute});
        const auto hidden = [&](double overall) { return hidden_percent(overall, compute, alone.ns.median); };
        report.row(bytes,
                   {scaled(both.ns, 1e-3), osu::single(compute * 1e-3), scaled(alone.ns, 1e-3),
                    osu::Summary{hidden(both.ns.high), hidden(both.ns.median), hidden(both.ns.low)}},
                   alone.valid && both.valid);
    }
    return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
    osu::Options defaults;
    defaults.window = 1;
    return osu::run({"osc_overlap", "overlap of communication and computation", "wsmWo", defaults}, argc, argv,
                    overlap);
}
