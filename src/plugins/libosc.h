// The table of what a plugin may call of libosc.so. A plugin's code calls g_libosc.find_window(). libosc.cpp, and a
// file of that name in each plugin, define functions' own names on top of it: of members, and of what headers call or
// code that unit tests and osc_info link too.
#pragma once

#include "api/plugin_table.h"

namespace osc::plugin {

/// Constant from take() on.
extern Table g_libosc;

/// Takes the table over; false if it is that of another version or build.
bool take(const Table* libosc);

}  // namespace osc::plugin
