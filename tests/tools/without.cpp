// Runs a command to which the kernel refuses some calls with EPERM, as a container's seccomp filter does.
// usage: tools_without process_vm|memfd COMMAND...
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const bool memfd = std::string_view(argv[1]) == "memfd";
    const unsigned first = memfd ? SYS_memfd_create : SYS_process_vm_readv;
    const unsigned second = memfd ? SYS_memfd_create : SYS_process_vm_writev;
    const unsigned refuse = SECCOMP_RET_ERRNO | EPERM;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, refuse),
    };
    const sock_fprog program{sizeof filter / sizeof filter[0], filter};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        std::perror("tools_without: the system has no seccomp filters");
        return 77;
    }
    ::execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    return 127;
}
