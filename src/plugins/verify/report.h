// The reports of the usage checker (OSC_CHECK): their form, each once per call site, and their number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/verify/site.h"

namespace osc::check {

/// What a report is about: a row of rules.def.
enum class Rule : std::uint8_t {
#define OSC_RULE(id, name, section) id,
#include "plugins/verify/rules.def"
    Count,
};

/// One fact of a report, and the call that it is about. A site of 0 is left out.
struct Line {
    std::string text;  // "MPI_Put of rank 1 to rank 0, bytes [8, 16): ..."
    Site site;
};

/// A violated rule. `lines` has at least one line.
struct Finding {
    Rule rule = Rule::Count;
    std::string window;  // "window 0xa0000000 "halo"", with its name; "" without a window
    std::vector<Line> lines;
};

/// Prints a finding on stderr, unless this process, or another one of the job on this node, has printed one of the same
/// rule with the same sites. The form, in one write:
///   libosc: rank 1: OSC_CHECK: access out of range (MPI 4.1, 12.3), window 0xa0000000 "halo"
///     MPI_Put to rank 0: the access covers bytes [4096, 4104) of 4096
///       called by main (halo.c:37)
/// Starts addr2line for sites: call it without locks of libosc. Thread-safe.
void report(const Finding& finding);

/// Prints how many findings this process has printed, and of how many rules, if it has printed any.
void summarise();

}  // namespace osc::check
