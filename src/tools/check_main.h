// The entry of the health check.
#pragma once

namespace osc::tools {

/// Checks this machine, and the job if a launcher started this process, and prints a report (rank 0 only). The exit
/// status: 0 without problems, 1 with problems.
int check_main(bool as_json);

}  // namespace osc::tools
