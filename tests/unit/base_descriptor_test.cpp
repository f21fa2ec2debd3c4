// Descriptors while the standard streams are closed, in a child, whose streams a case closes; and devices among them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "base/descriptor.h"

namespace osc::test {
namespace {

template <class Case>
int status_in_child(Case&& good) {
    const pid_t child = ::fork();
    if (child == 0) {
        for (int stream = 0; stream < 3; ++stream)
            ::close(stream);
        ::_exit(good() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

bool is_closed(int number) {
    return ::fcntl(number, F_GETFD) < 0 && errno == EBADF;
}

int open_null() {
    return ::open("/dev/null", O_RDWR);
}

TEST(Descriptor, LeavesTheStreams) {
    EXPECT_EQ(status_in_child([] {
                  const int first = base::above_stdio(open_null());
                  const int second = base::above_stdio(open_null());
                  return first > 2 && second > 2 && is_closed(0) && is_closed(1) && is_closed(2) &&
                         ::fcntl(first, F_GETFD) == FD_CLOEXEC;
              }),
              0);
}

TEST(Descriptor, LeavesOthersAsTheyAre) {
    const int higher = open_null();
    ASSERT_GT(higher, 2);
    EXPECT_EQ(base::above_stdio(higher), higher);
    EXPECT_EQ(::fcntl(higher, F_GETFD), 0);
    ::close(higher);
    errno = EMFILE;
    EXPECT_EQ(base::above_stdio(-1), -1);
    EXPECT_EQ(errno, EMFILE);
}

TEST(Descriptor, SaysWhenThereIsNone) {
    EXPECT_EQ(status_in_child([] {
                  const rlimit three{3, 3};
                  errno = 0;
                  return ::setrlimit(RLIMIT_NOFILE, &three) == 0 && base::above_stdio(open_null()) == -1 &&
                         (errno == EMFILE || errno == EINVAL) && is_closed(0);
              }),
              0);
}

TEST(Descriptor, OccupiesTheStreamsForOthers) {
    EXPECT_EQ(status_in_child([] {
                  const int first = open_null();  // becomes number 0, which stays what it is
                  base::occupy_stdio();
                  base::occupy_stdio();
                  return first == 0 && ::fcntl(0, F_GETFD) == 0 && ::fcntl(1, F_GETFD) == FD_CLOEXEC &&
                         ::fcntl(2, F_GETFD) == FD_CLOEXEC && open_null() > 2;
              }),
              0);
}

// The kernel returns from a long write early, with some bytes written, if a signal arrives.
TEST(Descriptor, WritesAllDespiteASignal) {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = [](int) {};
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::string text(std::size_t{1} << 20, ' ');
    for (std::size_t at = 0; at < text.size(); ++at)
        text[at] = static_cast<char>(at * 2654435761u >> 13);
    std::thread writer([&] {
        EXPECT_TRUE(base::write_all(ends[1], text));
        ::close(ends[1]);
    });
    const int room = ::fcntl(ends[1], F_GETPIPE_SZ);
    for (int waiting = 0; waiting < room; std::this_thread::yield())
        ASSERT_EQ(::ioctl(ends[0], FIONREAD, &waiting), 0);
    EXPECT_EQ(::pthread_kill(writer.native_handle(), SIGUSR1), 0);
    std::string got;
    char part[4096];
    for (ssize_t bytes = 0; (bytes = ::read(ends[0], part, sizeof part)) > 0;)
        got.append(part, static_cast<std::size_t>(bytes));
    writer.join();
    ::close(ends[0]);
    ::sigaction(SIGUSR1, &before, nullptr);
    EXPECT_TRUE(got == text);
    EXPECT_FALSE(base::write_all(-1, text));
    EXPECT_EQ(errno, EBADF);
}

// Which open files count as devices that may access a process's memory.
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
    bool found() const { return base::has_open_device(folder_.c_str()); }

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
    EXPECT_TRUE(base::has_open_device((folder_ / "missing").c_str()));
}

TEST(OpenDevicesOfThisProcess, AreNone) {
    EXPECT_FALSE(base::has_open_device());
}

}  // namespace
}  // namespace osc::test
