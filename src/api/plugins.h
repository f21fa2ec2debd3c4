// Loads the plugins that options ask for.
#pragma once

namespace osc {

/// Loads the usage checker, which puts its entry points in front of all others in the routes. Without it one line says
/// why, and the program runs unchecked. Once, before the first call of the program.
void load_checker();

/// Loads the reports if OSC_STATS or OSC_TRACE asks for them. Without them one line says why, and both are off. Once,
/// before announce_settings().
void load_reports();

}  // namespace osc
