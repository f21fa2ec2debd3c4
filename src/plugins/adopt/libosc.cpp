// The names under which the code of adoption calls libosc.so, beside those of all plugins.
#include "plugins/libosc.h"

namespace osc {

using plugin::g_libosc;

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
