// osc_passive: how long an operation takes while its target computes and calls no MPI, beside a target that waits in
// MPI.
#include "measures.h"
#include "transfers.h"

namespace {

bool passive(const osu::Run& run) {
    osu::Transfers transfers(run, osu::operation_of(run.options.kind), osu::Direction::one_way, 1);
    osu::Report report =
        run.report({"Size", "size", 0}, {{"Waiting (us)", "waiting_us", 3}, {"Computing (us)", "computing_us", 3}});
    for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
        const osu::Repeats repeats = run.options.repeats(bytes);
        const osu::Measured waiting = transfers.measure(bytes, repeats);
        // A validated iteration waits for the end of the computation: one per batch is enough.
        const osu::Repeats busy = run.options.validate ? osu::Repeats{osu::kBatches, 0} : repeats;
        const osu::Measured computing = transfers.measure(bytes, busy, {.target = run.options.compute_ms * 1e6});
        report.row(bytes, {scaled(waiting.ns, 1e-3), scaled(computing.ns, 1e-3)}, waiting.valid && computing.valid);
    }
    return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
    osu::Program program{"osc_passive", "latency while the target computes", "wsmot", {}};
    program.passive_only = true;
    return osu::run(program, argc, argv, passive);
}
