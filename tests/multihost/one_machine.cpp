// libone_machine, preloaded with libosc, shows all processes the same network namespace, so that different hosts of
// hosts.sh look like one machine. Only the arenas' tokens then show that they are not.
#include <dlfcn.h>
#include <sys/stat.h>

#include <cstring>

extern "C" __attribute__((visibility("default"))) int stat(const char* path, struct stat* result) noexcept {
    static const auto next = reinterpret_cast<decltype(&stat)>(dlsym(RTLD_NEXT, "stat"));
    const int error = next(path, result);
    if (error == 0 && std::strcmp(path, "/proc/thread-self/ns/net") == 0) result->st_ino = 1;
    return error;
}
