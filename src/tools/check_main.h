// The entries of what osc_info finds out about this machine.
#pragma once

#include <filesystem>

namespace osc::tools {

/// The folder of libosc's libraries: beside the program's folder in a build, else where the installation puts them.
std::filesystem::path library_folder();

/// Checks this machine, and the job if a launcher started this process, and prints a report (rank 0 only). The exit
/// status: 0 without problems, 1 with problems.
int check_main(bool as_json);

/// Prints whether libosc takes effect in a program that this environment starts, and if not, why. `program`: a path, or
/// a name that PATH finds. The exit status: 0 if it does, 1 with problems.
int check_program_main(const char* program, bool as_json);

/// Prints the tables of docs/NETWORK.md from what libfabric says of its providers here, and from libosc's probes of
/// them. The exit status: 1 if libfabric cannot be loaded.
int print_providers();

}  // namespace osc::tools
