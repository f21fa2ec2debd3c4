// Lifelines of child processes that run, are stopped, killed, forked or replaced, as observers in this process see
// them. The tests have a network of their own where the system allows it, which some of them need.
// Level: gate
#include "progress/lifeline.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <vector>

#include "base/clock.h"

namespace osc::test {
namespace {

using progress::Lifeline;
using progress::SocketAddress;
using progress::Watch;
using Sign = Watch::Sign;
using Seconds = std::chrono::duration<double>;

constexpr std::uint64_t kMine = 0x1111222233334444;
constexpr std::uint64_t kIts = 0x5555666677778888;
constexpr std::int64_t kTimeout = 2000000000;  // ns
constexpr unsigned kChildLasts = 60;           // seconds
constexpr int kQueue = 4;                      // connections that a port of the own network queues, less one

bool set_loopback(bool up) {
    const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    request.ifr_name[0] = 'l';
    request.ifr_name[1] = 'o';
    request.ifr_flags = static_cast<short>(up ? IFF_UP : 0);
    const bool done = ::ioctl(any, SIOCSIFFLAGS, &request) == 0;
    ::close(any);
    return done;
}

// Whether this process has a network of its own, in which queues are short.
bool own_network() {
    static const bool made = [] {
        if (::unshare(CLONE_NEWNET) != 0 || !set_loopback(true)) return false;
        std::ofstream limit("/proc/sys/net/core/somaxconn");
        limit << kQueue << std::flush;
        return limit.good();
    }();
    return made;
}

// A child process with a lifeline, which it serves.
class Owner {
  public:
    explicit Owner(
        Lifeline::Answer answer = [](std::uint64_t) { return kIts; }, bool forks = false) {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        child_ = ::fork();
        if (child_ == 0) serve(ends[1], answer, forks);
        ::close(ends[1]);
        EXPECT_EQ(::read(ends[0], &place, sizeof place), static_cast<ssize_t>(sizeof place));
        open_ = ends[0];
    }
    ~Owner() {
        kill(SIGKILL);
        ::close(open_);
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

    void kill(int number) {
        if (child_ <= 0) return;
        ::kill(child_, number);
        if (number == SIGSTOP) ::waitpid(child_, nullptr, WUNTRACED);
        if (number != SIGKILL) return;
        ::waitpid(child_, nullptr, 0);
        child_ = -1;
    }

    SocketAddress place;

  private:
    [[noreturn]] static void serve(int pipe, const Lifeline::Answer& answer, bool forks) {
        Lifeline lifeline;
        const SocketAddress mine = lifeline.open(htonl(INADDR_LOOPBACK), kTimeout);
        for (int i = 0; i < 20; ++i)
            lifeline.serve(answer);
        if (forks && ::fork() == 0) {
            ::alarm(kChildLasts);
            for (int number = 0; number < 3; ++number)
                ::close(number);
            ::close(pipe);
            ::pause();
        }
        if (::write(pipe, &mine, sizeof mine) != sizeof mine) ::_exit(1);
        for (const pid_t parent = ::getppid(); ::getppid() == parent; ::usleep(1000))
            lifeline.serve(answer);
        ::_exit(0);
    }

    pid_t child_ = -1;
    int open_ = -1;
};

struct Observer {
    Watch watch;
    std::int64_t timeout = kTimeout;
    Sign look(const Owner& owner) { return watch.look(owner.place, kMine, kIts, timeout); }
    /// Looks until it sees `wanted`, or another final sign; `seconds` at most.
    Sign await(const Owner& owner, Sign wanted, double seconds) {
        Sign seen = look(owner);
        const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
        while (seen != wanted && seen != Sign::Gone && now_ns() < end) {
            ::usleep(1000);
            seen = look(owner);
        }
        return seen;
    }
};

constexpr double kPatience = 20;  // seconds, on a loaded machine
constexpr std::int64_t kLong = kTimeout + kTimeout / 2;

TEST(Lifeline, AProcessThatRunsAnswers) {
    Owner owner;
    Observer observer;
    EXPECT_EQ(observer.await(owner, Sign::Lives, kPatience), Sign::Lives);
    observer.watch.end();
    EXPECT_EQ(observer.await(owner, Sign::Lives, kPatience), Sign::Lives);
}

TEST(Lifeline, AProcessWithoutAddressHasNone) {
    EXPECT_EQ(Watch().look({}, kMine, kIts, kTimeout), Sign::None);
}

TEST(Lifeline, AKilledProcessIsGoneAtOnce) {
    Owner before;
    Owner stopped;
    Owner answering;
    Observer refused;
    Observer silent;
    Observer answered;
    for (Observer* observer : {&refused, &silent, &answered})
        observer->timeout = 1000 * kTimeout;
    stopped.kill(SIGSTOP);
    EXPECT_EQ(silent.await(stopped, Sign::Lives, 0.1), Sign::Unknown);
    EXPECT_EQ(answered.await(answering, Sign::Lives, kPatience), Sign::Lives);
    for (Owner* owner : {&before, &stopped, &answering})
        owner->kill(SIGKILL);
    EXPECT_EQ(refused.await(before, Sign::Gone, kPatience), Sign::Gone);
    EXPECT_EQ(silent.await(stopped, Sign::Gone, kPatience), Sign::Gone);
    EXPECT_EQ(answered.await(answering, Sign::Gone, kPatience), Sign::Gone);
}

// Beyond the timeout the signs of a process that runs and of one that is stopped stay as they are. More processes
// observe the stopped one than its port's queue admits; all see its death.
TEST(Lifeline, ALivingProcessIsNotGoneAfterTheTimeout) {
    const int many = own_network() ? 40 : 400;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < static_cast<rlim_t>(many) + 100) GTEST_SKIP() << "too few descriptors";
    Owner running;
    Owner stopped;
    Observer of_running;
    Observer early;
    EXPECT_EQ(of_running.await(running, Sign::Lives, kPatience), Sign::Lives);
    EXPECT_EQ(early.await(stopped, Sign::Lives, kPatience), Sign::Lives);
    stopped.kill(SIGSTOP);
    std::vector<Observer> late(static_cast<std::size_t>(many));
    for (const std::int64_t end = now_ns() + kLong; now_ns() < end; ::usleep(5000)) {
        ASSERT_EQ(of_running.look(running), Sign::Lives);
        ASSERT_EQ(early.look(stopped), Sign::Lives);
        for (Observer& observer : late)
            ASSERT_EQ(observer.look(stopped), Sign::Unknown);
    }
    stopped.kill(SIGCONT);
    for (Observer& observer : late) {
        ASSERT_EQ(observer.await(stopped, Sign::Lives, kPatience), Sign::Lives);
        observer.watch.end();
    }
    stopped.kill(SIGKILL);
    for (Observer& observer : late)
        EXPECT_EQ(observer.await(stopped, Sign::Gone, kPatience), Sign::Gone);
}

TEST(Lifeline, AnotherProgramAtThePortIsNotTheProcess) {
    Owner other([](std::uint64_t) { return kIts + 1; });
    Observer observer;
    EXPECT_EQ(observer.await(other, Sign::Gone, kPatience), Sign::Gone);
    Owner closing([](std::uint64_t) -> std::uint64_t { ::_exit(0); });
    Observer second;
    EXPECT_EQ(second.await(closing, Sign::Gone, kPatience), Sign::Gone);
    // It says nothing, as a stopped process.
    Owner quiet([](std::uint64_t) { return std::uint64_t{0}; });
    Observer third;
    EXPECT_EQ(third.await(quiet, Sign::Gone, 0.5), Sign::Unknown);
}

// A kernel whose queue was full resets a connection that the process never got; the process may live.
TEST(Lifeline, AResetBeforeTheAnswerIsNoDeath) {
    const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::listen(listening, 4), 0);
    ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length), 0);
    const SocketAddress place{address.sin_addr.s_addr, address.sin_port, 0};
    Watch watch;
    ASSERT_EQ(watch.look(place, kMine, kIts, kTimeout), Sign::Unknown);
    const int first = ::accept(listening, nullptr, nullptr);
    const linger reset{1, 0};
    ASSERT_EQ(::setsockopt(first, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    ::close(first);
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(watch.look(place, kMine, kIts, kTimeout), Sign::Unknown);
    const int second = ::accept(listening, nullptr, nullptr);
    ASSERT_EQ(::send(second, &kIts, sizeof kIts, 0), static_cast<ssize_t>(sizeof kIts));
    EXPECT_EQ(watch.look(place, kMine, kIts, kTimeout), Sign::Lives);
    ASSERT_EQ(::setsockopt(second, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    ::close(second);
    EXPECT_EQ(watch.look(place, kMine, kIts, kTimeout), Sign::Gone);
    ::close(listening);
}

// The system refuses every attempt at once, as without a route.
TEST(Lifeline, AHostWithoutRouteIsGoneAfterTheTimeout) {
    constexpr std::int64_t kShort = 300000000;  // ns
    const SocketAddress nowhere{htonl(INADDR_ALLHOSTS_GROUP), htons(7), 0};
    Watch watch;
    const std::int64_t begin = now_ns();
    EXPECT_EQ(watch.look(nowhere, kMine, kIts, kShort), Sign::Unknown);
    Sign seen = Sign::Unknown;
    for (; seen == Sign::Unknown && now_ns() - begin < 20 * kTimeout; ::usleep(1000))
        seen = watch.look(nowhere, kMine, kIts, kShort);
    EXPECT_EQ(seen, Sign::Gone);
    EXPECT_GE(now_ns() - begin, kShort);
}

// The process gives up the connection to the observer after its first answer.
TEST(Lifeline, AProcessSaysThatAConnectionIsLost) {
    Owner owner([left = 50](std::uint64_t observer) mutable {
        EXPECT_EQ(observer, kMine);
        return --left > 0 ? kIts : ~kIts;
    });
    Observer observer;
    EXPECT_EQ(observer.await(owner, Sign::Lost, kPatience), Sign::Lost);
    owner.kill(SIGKILL);
    EXPECT_EQ(observer.await(owner, Sign::Gone, kPatience), Sign::Gone);
}

TEST(Lifeline, AForkedChildDoesNotKeepItAlive) {
    Owner owner([](std::uint64_t) { return kIts; }, true);
    Observer observer;
    EXPECT_EQ(observer.await(owner, Sign::Lives, kPatience), Sign::Lives);
    owner.kill(SIGKILL);
    EXPECT_EQ(observer.await(owner, Sign::Gone, kPatience), Sign::Gone);
    Observer late;
    EXPECT_EQ(late.await(owner, Sign::Gone, kPatience), Sign::Gone);
}

// Accepted connections are closed in a child too.
TEST(Lifeline, AChildClosesWhatItInherits) {
    Lifeline lifeline;
    const SocketAddress place = lifeline.open(htonl(INADDR_LOOPBACK), kTimeout);
    Watch watch;
    Sign seen = Sign::Unknown;
    for (const std::int64_t end = now_ns() + 10 * kTimeout; seen != Sign::Lives && now_ns() < end; ::usleep(1000)) {
        seen = watch.look(place, kMine, kIts, kTimeout);
        lifeline.serve([](std::uint64_t) { return kIts; });
    }
    ASSERT_EQ(seen, Sign::Lives);
    const pid_t child = ::fork();
    if (child == 0) {
        int sockets = 0;
        for (int number = 3; number < 1024; ++number) {
            sockaddr_in address{};
            socklen_t length = sizeof address;
            if (::getsockname(number, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
                address.sin_family == AF_INET)
                ++sockets;
        }
        ::_exit(sockets);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(watch.look(place, kMine, kIts, kTimeout), Sign::Lives);
}

TEST(Lifeline, ACutNetworkIsFoundWithinTheTimeout) {
    if (!own_network()) GTEST_SKIP() << "no network of its own";
    Owner running;
    Owner stopped;
    stopped.kill(SIGSTOP);
    Observer answered;
    Observer connected;
    Observer late;
    EXPECT_EQ(answered.await(running, Sign::Lives, kPatience), Sign::Lives);
    EXPECT_EQ(connected.await(stopped, Sign::Lives, 0.1), Sign::Unknown);
    ASSERT_TRUE(set_loopback(false));
    const std::int64_t began = now_ns();
    std::int64_t took[3] = {};
    for (int gone = 0; gone < 3 && now_ns() - began < 4 * kTimeout; ::usleep(1000)) {
        const Sign signs[] = {answered.look(running), connected.look(stopped), late.look(running)};
        for (int i = 0; i < 3; ++i)
            if (signs[i] == Sign::Gone && took[i] == 0) {
                took[i] = now_ns() - began;
                ++gone;
            }
    }
    set_loopback(true);
    for (const std::int64_t one : took) {
        EXPECT_GT(one, kTimeout / 2);
        EXPECT_LT(one, 2 * kTimeout);
    }
}

}  // namespace
}  // namespace osc::test
