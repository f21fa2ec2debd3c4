// Arenas passed between processes; a forked child is the peer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "shm/fd_exchange.h"

namespace osc::test {
namespace {

using shm::Arena;
using shm::Fetched;
using shm::PeerArena;

constexpr int kMark = 0x5ea;

// The data that the child sends to its parent before it serves.
struct ChildInfo {
    shm::ArenaAddress address;
    std::uint64_t meeting = 0;
    std::uint64_t small = 0;  // offsets of pieces that begin with kMark
    std::uint64_t large = 0;
};

// A process with an arena of its own that answers until it is killed. Its own, because this process has none.
class Owner {
  public:
    Owner() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        pid_ = ::fork();
        if (pid_ == 0) serve(ends[1]);
        ::close(ends[1]);
        EXPECT_EQ(::read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
        ::close(ends[0]);
    }
    ~Owner() { kill(); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    pid_t pid() const { return pid_; }

    /// The address of a peer in another PID namespace: its PID belongs to another process here.
    shm::ArenaAddress hidden() const {
        shm::ArenaAddress address = told.address;
        address.pid = ::getppid();
        return address;
    }

    ChildInfo told;

  private:
    [[noreturn]] static void serve(int to) {
        Arena& arena = Arena::mine();
        ChildInfo telling;
        for (auto [bytes, offset] :
             {std::pair{std::size_t{4096}, &telling.small}, {std::size_t{5} << 20, &telling.large}}) {
            const shm::ArenaBlock piece = arena.allocate(bytes, 64, true);
            std::memcpy(piece.address, &kMark, sizeof kMark);
            *offset = piece.offset;
        }
        telling.address = arena.address();
        telling.meeting = base::random64();
        shm::FdExchange passing(telling.meeting);
        if (!passing.listening() || ::write(to, &telling, sizeof telling) < 0) ::_exit(1);
        for (;;) {
            passing.serve();
            ::usleep(100);
        }
    }
    pid_t pid_ = 0;
};

Fetched fetch(std::uint64_t meeting, PeerArena& peer, double seconds = 10) {
    shm::FdExchange passing(base::random64());
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    Fetched got = Fetched::NotYet;
    while (got == Fetched::NotYet && std::chrono::steady_clock::now() < end) {
        got = passing.fetch(meeting, peer);
        std::this_thread::yield();
    }
    return got;
}

class Passing : public testing::Test {
  protected:
    Owner owner;
};

TEST_F(Passing, MapsArenasThatProcHides) {
    PeerArena peer(owner.hidden());
    ASSERT_FALSE(peer.reachable());
    ASSERT_EQ(peer.map(owner.told.small, 4096), nullptr);
    ASSERT_EQ(fetch(owner.told.meeting, peer), Fetched::Yes);
    EXPECT_TRUE(peer.reachable());
    EXPECT_TRUE(peer.adopted());
    EXPECT_EQ(peer.address().pid, owner.pid());  // its number as seen from here
    for (const std::uint64_t offset : {owner.told.small, owner.told.large}) {
        std::byte* seen = peer.map(offset, 4096);
        ASSERT_NE(seen, nullptr);
        int mark = 0;
        std::memcpy(&mark, seen, sizeof mark);
        EXPECT_EQ(mark, kMark);
        peer.unmap(offset, seen, 4096);
    }
}

TEST_F(Passing, TellsTheOwnersDeath) {
    PeerArena peer(owner.hidden());
    ASSERT_EQ(fetch(owner.told.meeting, peer), Fetched::Yes);
    EXPECT_TRUE(peer.owner_lives());
    // Neither other descriptors of the file nor children of this process count as the owner.
    const int copy =
        ::open(("/proc/" + std::to_string(owner.pid()) + "/fd/" + std::to_string(owner.told.address.fd)).c_str(),
               O_RDWR | O_CLOEXEC);
    ASSERT_GE(copy, 0);
    ::close(copy);
    EXPECT_TRUE(peer.owner_lives());
    ::kill(owner.pid(), SIGSTOP);
    EXPECT_TRUE(peer.owner_lives());
    owner.kill();
    EXPECT_FALSE(peer.owner_lives());
}

// In another PID namespace a peer may have this process's own number, and its file the same descriptor here.
TEST_F(Passing, LookingForAnotherDoesNotEndTheOwnSignOfLife) {
    const auto looks_and_lives = [] {
        Arena& own = Arena::mine();
        if (!own.open() || !own.show_life()) return false;
        shm::ArenaAddress other = own.address();
        other.token += 1;
        if (PeerArena(other).reachable()) return false;
        const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(other.fd);
        const pid_t looker = ::fork();
        if (looker == 0) {
            const int seen = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
            ::_exit(seen >= 0 && shm::arena_owner_lives(seen) ? 0 : 1);
        }
        int status = -1;
        return ::waitpid(looker, &status, 0) == looker && status == 0;
    };
    const pid_t child = ::fork();  // the other tests' processes begin without an arena
    if (child == 0) ::_exit(looks_and_lives() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(Passing, RefusesAClientWithoutTheToken) {
    shm::ArenaAddress address = owner.hidden();
    address.token ^= 1;
    PeerArena peer(address);
    EXPECT_NE(fetch(owner.told.meeting, peer, 0.5), Fetched::Yes);
    EXPECT_FALSE(peer.reachable());
    PeerArena right(owner.hidden());  // and goes on answering others
    EXPECT_EQ(fetch(owner.told.meeting, right), Fetched::Yes);
}

TEST_F(Passing, FailsAtOnceWithoutAListener) {
    PeerArena peer(owner.hidden());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fetch(owner.told.meeting + 1, peer), Fetched::Never);
    owner.kill();
    EXPECT_EQ(fetch(owner.told.meeting, peer), Fetched::Never);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(Passing, AnOwnerThatDoesNotAnswerIsNotWaitedForHere) {
    ::kill(owner.pid(), SIGSTOP);
    PeerArena peer(owner.hidden());
    EXPECT_EQ(fetch(owner.told.meeting, peer, 0.3), Fetched::NotYet);
    ::kill(owner.pid(), SIGCONT);
    EXPECT_EQ(fetch(owner.told.meeting, peer), Fetched::Yes);
}

// A socket that listens at the name of a meeting, or is connected to it.
int socket_at(int (*call)(int, const sockaddr*, socklen_t), std::uint64_t meeting) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "osc-%016llx",
                                     static_cast<unsigned long long>(meeting));
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<unsigned>(length));
    return call(socket, reinterpret_cast<sockaddr*>(&name), bytes) == 0 ? socket : -1;
}

// Every user sees the name of a meeting, and can bind it when the owner has ended.
TEST_F(Passing, SendsNoTokenToAnotherUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root has a child of another user";
    const std::uint64_t meeting = base::random64();
    int ready[2];
    ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    const pid_t stranger = ::fork();
    if (stranger == 0) {
        constexpr uid_t kNobody = 65534;
        const int socket = ::setresuid(kNobody, kNobody, kNobody) == 0 ? socket_at(&::bind, meeting) : -1;
        char got[64];
        if (socket < 0 || ::listen(socket, 1) != 0 || ::write(ready[1], "", 1) != 1) ::_exit(1);
        ::_exit(::recv(::accept(socket, nullptr, nullptr), got, sizeof got, 0) == 0 ? 0 : 2);
    }
    char byte = 1;
    ::close(ready[1]);
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    PeerArena peer(owner.hidden());
    EXPECT_EQ(fetch(meeting, peer, 2), Fetched::Never);
    int status = -1;
    ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
    EXPECT_EQ(status, 0);
}

// Many ask at once, and one of them says nothing.
TEST_F(Passing, AnswersAllAndDoesNotWaitForASilentClient) {
    const int silent = socket_at(&::connect, owner.told.meeting);
    ASSERT_GE(silent, 0);
    std::vector<std::thread> callers;
    for (int i = 0; i < 8; ++i)
        callers.emplace_back([&] {
            PeerArena peer(owner.hidden());
            EXPECT_EQ(fetch(owner.told.meeting, peer), Fetched::Yes);
        });
    for (std::thread& caller : callers)
        caller.join();
    ::close(silent);
}

TEST_F(Passing, AdoptsNothingButTheArena) {
    PeerArena peer(owner.hidden());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);  // reading this would wait for ever
    EXPECT_FALSE(peer.adopt(ends[0], 1));
    ::close(ends[1]);
    const int other = ::memfd_create("other", MFD_CLOEXEC);
    EXPECT_FALSE(peer.adopt(other, 1));
    EXPECT_FALSE(peer.adopted());
    EXPECT_EQ(peer.address().pid, ::getppid());
}

}  // namespace
}  // namespace osc::test
