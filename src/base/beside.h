// Libraries that belong to libosc and lie in its folder: the network transport and the plugins. They are loaded when
// they are needed, and stay.
#pragma once

#include <string>

namespace osc::base {

/// The function `name` of library `file` in `folder`; null `folder`: the folder of this code. Null with the reason in
/// `why`. Thread-safe.
void* function_beside(const char* file, const char* name, const char* folder, std::string& why);

}  // namespace osc::base
