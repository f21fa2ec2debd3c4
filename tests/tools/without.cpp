// Runs a command to which the kernel refuses some calls with EPERM, as a container's seccomp filter does.
// usage: tools_without process_vm|memfd|clone COMMAND...
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "../fault/refuse_calls.h"

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string_view calls = argv[1];
    const bool refused = calls == "memfd"   ? refuse_calls(SYS_memfd_create, SYS_memfd_create)
                         : calls == "clone" ? refuse_calls(SYS_clone, SYS_clone3)
                                            : refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev);
    if (!refused) {
        std::perror("tools_without: the system has no seccomp filters");
        return 77;
    }
    ::execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    return 127;
}
