// The table of what a plugin may call of libosc.so. libosc.cpp, and a file of that name in each plugin, define the
// functions' own names on top of it, so that a plugin's code calls base::say() as all code does.
#pragma once

#include "api/plugin_table.h"

namespace osc::plugin {

/// Constant from take() on.
extern Table g_libosc;

/// Takes the table over; false if it is that of another version or build.
bool take(const Table* libosc);

}  // namespace osc::plugin
