// The names under which the checker's code calls libosc.so, beside those of all plugins.
#include "plugins/libosc.h"

#include <sched.h>

#include "base/fault.h"
#include "base/warn.h"
#include "shm/machine.h"

namespace osc {

using plugin::g_libosc;

namespace base {
const char* fault_text() {
    return g_libosc.fault_text();
}
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
const char* name(Basic basic) noexcept {
    return g_libosc.name_of_basic(basic);
}
const char* name(Op op) noexcept {
    return g_libosc.name_of_op(op);
}
bool Layout::bounds(std::size_t count, Bounds& out) const noexcept {
    return (this->*g_libosc.bounds)(count, out);
}
}  // namespace op

namespace shm {
Arena& Arena::mine() {
    return g_libosc.arena();
}
std::byte* Arena::map_view(std::uint64_t offset, std::size_t bytes) {
    return (this->*g_libosc.map_view)(offset, bytes);
}
void Arena::unmap_view(std::byte* view) {
    (this->*g_libosc.unmap_view)(view);
}
std::uint64_t machine_number() {
    return g_libosc.machine_number();
}
}  // namespace shm

void StateLock::contended() {
    ::sched_yield();
}
bool Core::is_consistent() const {
    return (this->*g_libosc.is_consistent)();
}
Target& Core::know(Target&, std::uint32_t rank) {
    return g_libosc.target(*this, rank);
}
int Team::largest(MPI_Comm comm, std::span<int> values) {
    return (this->*g_libosc.largest)(comm, values);
}

}  // namespace osc
