// Libraries that belong to libosc and lie in its folder: the network transport and the plugins. They are loaded when
// they are needed, and stay.
#pragma once

#include <string>

namespace osc::base {

/// Notes where libosc lies. It may have been loaded by a relative name, so this is for the start of the program, before
/// that changes its folder. Without it function_beside() does so when it is first called.
void find_own_folder();

/// Loads library `file` from `folder`, RTLD_LOCAL; null `folder`: libosc's own. Null with the reason in `why`.
/// Thread-safe.
void* library_beside(const char* file, const char* folder, std::string& why);

/// The function `name` of library `file` in `folder`; null `folder`: libosc's own. Null with the reason in
/// `why`. Thread-safe.
void* function_beside(const char* file, const char* name, const char* folder, std::string& why);

}  // namespace osc::base
