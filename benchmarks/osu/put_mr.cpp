// osc_put_mr: how many MPI_Puts a second several pairs of ranks complete together, many per synchronisation. The lower
// half of the ranks sends to the upper half.
#include "measures.h"
#include "transfers.h"

namespace {

bool message_rate(const osu::Run& run) {
    osu::Transfers transfers(run, osu::kPut, osu::Direction::one_way, run.options.window);
    osu::Report report = run.report({"Size", "size", 0}, {{"MB/s", "mb_s", 2}, {"Messages/s", "messages_s", 2}});
    for (std::size_t bytes = run.options.smallest; bytes <= run.options.largest; bytes *= 2) {
        const osu::Measured m = transfers.measure(bytes, run.options.repeats(bytes));
        const double pairs = run.ranks / 2;
        const osu::Summary rate = inverted(m.ns, pairs * static_cast<double>(transfers.in_flight(bytes)) * 1e9);
        report.row(bytes, {scaled(rate, static_cast<double>(bytes) * 1e-6), rate}, m.valid);
    }
    return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
    const osu::Program program{"osc_put_mr", "MPI_Put message rate", "wsmW", osu::streams(), osu::Ranks::even};
    return osu::run(program, argc, argv, message_rate);
}
