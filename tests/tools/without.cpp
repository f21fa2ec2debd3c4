// Runs a command to which the kernel refuses some calls with EPERM, as a container's seccomp filter does.
// usage: tools_without process_vm|memfd COMMAND...
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "../fault/refuse_calls.h"

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const bool memfd = std::string_view(argv[1]) == "memfd";
    const unsigned first = memfd ? SYS_memfd_create : SYS_process_vm_readv;
    const unsigned second = memfd ? SYS_memfd_create : SYS_process_vm_writev;
    if (!refuse_calls(first, second)) {
        std::perror("tools_without: the system has no seccomp filters");
        return 77;
    }
    ::execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    return 127;
}
