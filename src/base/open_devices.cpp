#include "base/open_devices.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
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
