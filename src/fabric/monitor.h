// libosc_ofi.so: the source from which libfabric's cache of registrations learns what the process has unmapped.
#pragma once

namespace osc::fabric {

/// Before a domain is opened: makes UCX's memory events, if UCX is in this process, libfabric's memory monitor. The
/// result, for people, names the monitor that libfabric uses. Later calls return the same. Thread-safe.
const char* choose_monitor();

/// Before a registration: passes the ranges that were unmapped on to libfabric's cache. Thread-safe.
void pass_on_unmapped();

/// Whether UCX was loaded since choose_monitor(), or since the last call that returned true: its hooks have replaced
/// those of libfabric. Thread-safe.
bool ucx_came_later();

}  // namespace osc::fabric
