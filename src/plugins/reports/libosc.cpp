// The names under which the reports' code calls libosc.so, beside those of all plugins.
#include "plugins/libosc.h"

#include "api/counter_values.h"
#include "window/settings.h"

namespace osc {

using plugin::g_libosc;

std::string difference_in_job() {
    return g_libosc.difference_in_job();
}
void Window::describe_statistics() {
    (this->*g_libosc.describe_statistics)();
}
std::span<const char* const> counter_names() {
    return g_libosc.counter_names();
}
std::vector<std::uint64_t> counter_values() {
    return g_libosc.counter_values();
}

namespace stats {
void visit(base::FunctionRef<void(const Record&)> visit) {
    g_libosc.visit_records(visit);
}
}  // namespace stats

namespace trace {
Facts facts() {
    return g_libosc.trace_facts();
}
std::span<const std::byte> contents() {
    return g_libosc.trace_contents();
}
void close() {
    g_libosc.trace_close();
}
void note_clock_message(Kind kind, std::uint64_t flow) {
    g_libosc.note_clock_message(kind, flow);
}
}  // namespace trace

}  // namespace osc
