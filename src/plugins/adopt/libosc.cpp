// The names under which the code of adoption calls libosc.so, beside those of all plugins.
#include "plugins/libosc.h"

#include "base/imports.h"
#include "window/registry.h"

namespace osc {

using plugin::g_libosc;

void visit_windows(base::FunctionRef<void(Window&)> visit) {
    g_libosc.visit_windows(visit);
}

namespace base {
void* called_function(const char* name) {
    return g_libosc.called_function(name);
}
void replace_all_imports(const char* name, void* function, void* by) {
    g_libosc.replace_all_imports(name, function, by);
}
}  // namespace base

namespace shm {
Arena& Arena::mine() {
    return g_libosc.arena();
}
int Arena::adoption_file(std::size_t bytes) {
    return (this->*g_libosc.adoption_file)(bytes);
}
bool Arena::has_for_each(std::uint64_t processes, std::uint64_t bytes) {
    return (this->*g_libosc.has_for_each)(processes, bytes);
}
}  // namespace shm

}  // namespace osc
