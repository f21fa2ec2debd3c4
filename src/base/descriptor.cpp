#include "base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace osc::base {
namespace {

// CUDA on Linux, on embedded boards and under Windows; HIP; Level Zero and graphics; XPMEM; Slingshot; InfiniBand;
// queues of the kernel with registered buffers; page faults that the program handles.
constexpr std::array<std::string_view, 10> kDevices = {"/dev/nvidia",
                                                       "/dev/nvmap",
                                                       "/dev/dxg",
                                                       "/dev/kfd",
                                                       "/dev/dri/",
                                                       "/dev/xpmem",
                                                       "/dev/cxi",
                                                       "/dev/infiniband/",
                                                       "anon_inode:[io_uring]",
                                                       "anon_inode:[userfaultfd]"};

bool is_device(std::string_view file) {
    return std::any_of(kDevices.begin(), kDevices.end(),
                       [file](std::string_view device) { return file.starts_with(device); });
}

}  // namespace

int above_stdio(int descriptor) {
    if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
    const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(descriptor);
    errno = error;
    return moved;
}

// The kernel gives out the lowest closed number.
void occupy_stdio() {
    int number = 0;
    do
        number = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    while (number >= 0 && number <= STDERR_FILENO);
    if (number >= 0) ::close(number);
}

bool write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = EIO;
        if (written <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

bool has_open_device(const char* folder) {
    std::error_code error;
    std::filesystem::directory_iterator links(folder, error);
    for (const std::filesystem::directory_iterator end; !error && links != end; links.increment(error)) {
        std::error_code closed;  // meanwhile, by another thread
        if (is_device(std::filesystem::read_symlink(links->path(), closed).native())) return true;
    }
    return static_cast<bool>(error);
}

}  // namespace osc::base
