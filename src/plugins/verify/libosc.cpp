// The names under which the checker's code calls libosc.so, beside those of all plugins.
#include "plugins/libosc.h"

#include "base/warn.h"
#include "shm/machine.h"

namespace osc {

using plugin::g_libosc;

namespace base {
bool claim_for_job(std::uint64_t key) {
    return g_libosc.claim_for_job(key);
}
}  // namespace base

namespace op {
std::size_t element_size(Basic basic) noexcept {
    return g_libosc.element_size(basic);
}
std::size_t significant_size(Basic basic) noexcept {
    return g_libosc.significant_size(basic);
}
bool Layout::bounds(std::size_t count, Bounds& out) const noexcept {
    return (this->*g_libosc.bounds)(count, out);
}
}  // namespace op

namespace shm {
std::uint64_t machine_number() {
    return g_libosc.machine_number();
}
}  // namespace shm

}  // namespace osc
