// A filter with which the kernel refuses system calls with EPERM, as a container's seccomp profile does.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>

/// Refuses two system calls (twice the same one is allowed) to this process and its descendants, for good. False if the
/// system has no such filters.
inline bool refuse_calls(unsigned first, unsigned second) {
    const unsigned refuse = SECCOMP_RET_ERRNO | EPERM;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, refuse),
    };
    const sock_fprog program{sizeof filter / sizeof filter[0], filter};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
