// The names under which the checker's code calls libosc.so. Owns the table, and the plugin's copy of the host's
// functions.
#include "plugins/verify/imports.h"

#include <sched.h>

#include <cstdarg>
#include <cstdio>

#include "base/fault.h"
#include "base/log.h"
#include "base/warn.h"
#include "epoch/epoch.h"
#include "host/errhandler.h"
#include "host/host.h"
#include "interpose/collect.h"
#include "transport/shm/machine.h"

namespace osc {

namespace check {
Imports g_libosc;
}
using check::g_libosc;

namespace base {
const Values& values() {
    return g_libosc.values();
}
const char* fault_text() {
    return g_libosc.fault_text();
}
void say(const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g_libosc.say_text(text);
}
void say_text(const std::string& text) {
    g_libosc.say_text(text);
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
Peer& Core::know(Peer&, std::uint32_t rank) {
    return g_libosc.peer(*this, rank);
}
int Team::largest(MPI_Comm comm, std::span<int> values) {
    return (this->*g_libosc.largest)(comm, values);
}
Window* find_window(MPI_Win handle) {
    return g_libosc.find_window(handle);
}
std::vector<Window*> live_windows() {
    return g_libosc.live_windows();
}
bool await_all(MPI_Request& request, const std::vector<Window*>& windows) {
    return g_libosc.await_all(request, windows);
}

namespace epoch {
Fault may_free(Core& core) {
    return g_libosc.may_free(core);
}
Fault must_not_flush(Core& core, std::uint32_t target) {
    return g_libosc.must_not_flush(core, target);
}
Fault must_not_request(Core& core) {
    return g_libosc.must_not_request(core);
}
}  // namespace epoch

namespace host {
namespace detail {
Real g_real;
}
bool threads() {
    return g_libosc.threads();
}
std::optional<std::string> find_mismatch(const char* which, const TypedCount& origin, const TypedCount& target) {
    return g_libosc.find_mismatch(which, origin, target);
}
void free_handler(MPI_Errhandler& handler) {
    g_libosc.free_handler(handler);
}
}  // namespace host

}  // namespace osc
