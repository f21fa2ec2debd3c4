// Names of sockets in no file system (abstract names): a name is free again when its socket is closed.
#pragma once

#include <sys/socket.h>

#include <string_view>

namespace osc::base {

/// Calls bind or connect for a socket with an abstract name; returns its result.
int at_name(int (*call)(int, const sockaddr*, socklen_t), int socket, std::string_view name);

/// Taken: by another process, or by this one. Failed: the system refuses the socket or the name.
enum class Claim { Mine, Taken, Failed };
/// Binds a new socket to a name until the process ends. Thread-safe.
Claim claim_name(std::string_view name);

}  // namespace osc::base
