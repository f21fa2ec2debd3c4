// The reports as a plugin: the function that libosc.so calls when it loads the plugin.
#include "api/reports.h"

#include "plugins/libosc.h"
#include "plugins/reports/reports.h"

namespace osc {

// One thread, before the first call of the program.
extern "C" __attribute__((visibility("default"))) const Reports* osc_reports_open(const plugin::Table* libosc) {
    static constexpr Reports kReports{&report_statistics, &finish_timeline};
    return plugin::take(libosc) ? &kReports : nullptr;
}

}  // namespace osc
