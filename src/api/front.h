// One library to preload or link for hosts of all ABIs: a library of libosc whose ABI is not the host's loads the one
// beside it whose ABI is, and routes every call there. That library is in nobody's search order; what its place there
// would decide, it learns from the library in front.
#pragma once

#include <string>

namespace osc {

/// What the library in front gives to the one that serves.
struct Front {
    const char* version;
    void* (*next_symbol)(const char* symbol);  // behind the library in front
    void (*redirect_plugins)();                // to the library in front (dlsym.cpp)
};

/// That of the library in front of this one, or null.
extern const Front* g_front;

/// Loads the library for the host's ABI and sets all routes to its functions. False with the reason in `why` if this
/// build of libosc has none, or if it cannot be loaded. One thread at a time.
bool hand_over(std::string& why);

/// Whether another library of libosc comes before this one in the search order, and decides.
bool is_behind_another();

}  // namespace osc
