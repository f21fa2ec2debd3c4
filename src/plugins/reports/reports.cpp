// The reports as a plugin: the function that libosc.so calls when it loads the plugin, and what the statistics' code,
// which unit tests link too, calls of libosc.so.
#include "plugins/reports/reports.h"

#include "plugins/libosc.h"

namespace osc {

void stats::visit(base::FunctionRef<void(const Record&)> visit) {
    plugin::g_libosc.visit_records(visit);
}

// One thread, before the first call of the program.
extern "C" __attribute__((visibility("default"))) const Reports* osc_reports_open(const plugin::Table* libosc) {
    static constexpr Reports kReports{&report_statistics, &finish_timeline};
    return plugin::take(libosc) ? &kReports : nullptr;
}

}  // namespace osc
