// The text of a code address: function, source file and line.
#pragma once

#include <cstdint>
#include <string>

namespace osc::check {

/// A file that the process has loaded, and what the loader added to its addresses.
struct LoadedFile {
    std::string path;
    std::uintptr_t base = 0;
};

/// The text of the call before `offset`, an address of the file as its symbols count. See text_of() in site.h.
std::string describe(const LoadedFile& file, std::uint64_t offset);

}  // namespace osc::check
