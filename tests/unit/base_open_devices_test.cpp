// Which open files count as devices that may access a process's memory.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/open_devices.h"

namespace osc::base {
namespace {

class OpenDevices : public ::testing::Test {
  protected:
    OpenDevices() {
        std::string name = ::testing::TempDir() + "osc_open_devices_" + std::string(6, 'X');  // for mkdtemp
        folder_ = ::mkdtemp(name.data());
        link("/dev/null");
        link("socket:[4711]");
        link("/home/user/dev/nvidia0");
    }
    ~OpenDevices() override { std::filesystem::remove_all(folder_); }
    void link(const char* file) { std::filesystem::create_symlink(file, folder_ / std::to_string(next_++)); }
    bool found() const { return has_open_device(folder_.c_str()); }

    std::filesystem::path folder_;
    int next_ = 0;
};

TEST_F(OpenDevices, OtherFilesAreNone) {
    EXPECT_FALSE(found());
}

TEST_F(OpenDevices, ThoseOfEachInterfaceAreFound) {
    for (const char* const file : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvmap", "/dev/dxg",
                                   "/dev/kfd", "/dev/dri/renderD128", "/dev/xpmem", "/dev/cxi0",
                                   "/dev/infiniband/uverbs0", "anon_inode:[io_uring]", "anon_inode:[userfaultfd]"}) {
        link(file);
        EXPECT_TRUE(found()) << file;
        std::filesystem::remove(folder_ / std::to_string(next_ - 1));
        EXPECT_FALSE(found()) << file;
    }
}

TEST_F(OpenDevices, AnUnreadableFolderMayHideSome) {
    EXPECT_TRUE(has_open_device((folder_ / "missing").c_str()));
}

TEST(OpenDevicesOfThisProcess, AreNone) {
    EXPECT_FALSE(has_open_device());
}

}  // namespace
}  // namespace osc::base
