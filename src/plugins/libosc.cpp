// The names under which the code of all plugins calls libosc.so.
#include "plugins/libosc.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/log.h"

namespace osc {

namespace plugin {
Table g_libosc;

bool take(const Table* libosc) {
    if (std::strcmp(libosc->version, OSC_VERSION_TEXT) != 0 || libosc->bytes != kBytes) return false;
    g_libosc = *libosc;
    host::detail::g_real = *libosc->host;
    return true;
}
}  // namespace plugin
using plugin::g_libosc;

namespace base {
const Values& values() {
    return g_libosc.values();
}
void say(const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g_libosc.say("%s", text);
}
void say_text(const std::string& text) {
    g_libosc.say_text(text);
}
}  // namespace base

namespace host::detail {
Real g_real;
}

std::vector<Window*> live_windows() {
    return g_libosc.live_windows();
}
}  // namespace osc
