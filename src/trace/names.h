// What the timeline calls the calls, waits and paths of its records.
#pragma once

#include <cstdint>
#include <string>

#include "trace/record.h"

namespace osc::trace {

/// The classes of entry points, as in entries.def.
enum class CallClass : std::uint8_t { Data, Sync, Window, Query, Comm };

struct CallName {
    const char* name;
    CallClass kind;
};

/// The entry point of a record whose kind is one of Call.
const CallName& name_of_call(std::uint8_t kind);
/// The category of its slices.
const char* category_of(CallClass kind);
/// How an operation's bytes travelled, by the detail of its record; null if that is unknown.
const char* name_of_path(std::uint8_t detail);
/// What a record of Kind::Wait waited for.
std::string name_of_wait(const Event& wait);

}  // namespace osc::trace
