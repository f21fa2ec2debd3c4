// The reports as a plugin: how libosc.so loads it.
#include "plugins/reports/reports.h"

#include "interpose/reports.h"
#include "plugins/libosc.h"

namespace osc {
namespace {

class AtFinalize final : public Reports {
  public:
    void statistics() override { report_statistics(); }
    void timeline() override { finish_timeline(); }
};

AtFinalize g_reports_at_finalize;

}  // namespace

// One thread, before the first call of the program.
extern "C" __attribute__((visibility("default"))) Reports* osc_reports_open(const plugin::Table* libosc) {
    return plugin::take(libosc) ? &g_reports_at_finalize : nullptr;
}

}  // namespace osc
