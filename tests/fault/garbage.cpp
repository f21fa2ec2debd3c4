// Strangers at the ports of processes that serve windows to other nodes: each rank finds the TCP ports that its own
// process listens at, and every rank throws random bytes at all of its own while it and the others go on with checked
// operations.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "../mpi/harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Fetch_and_op", "MPI_Win_allocate")

namespace {

std::vector<sockaddr_in> own_ports() {
    std::vector<sockaddr_in> found;
    for (int fd = 0; fd < 1024; ++fd) {
        int listens = 0;
        socklen_t length = sizeof listens;
        sockaddr_in address{};
        socklen_t size = sizeof address;
        if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
        if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET)
            continue;
        if (address.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) found.push_back(address);
    }
    return found;
}

// Connects, writes as much as is taken, and goes: in a row of pieces, so that some cut what a parser expects.
void throw_at(const sockaddr_in& port, std::mt19937& random) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&port), sizeof port) == 0) {
        for (int piece = 0; piece < 4; ++piece) {
            std::vector<unsigned char> bytes(random() % 700);
            for (unsigned char& byte : bytes)
                byte = static_cast<unsigned char>(random());
            if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
        }
    }
    ::close(fd);
}

}  // namespace

CASE(random_bytes_at_the_ports_change_nothing) {
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(3 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    base[0] = base[1] = base[2] = 0;
    const int target = right();
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    // The provider's port and libosc's own.
    const std::vector<sockaddr_in> ports = own_ports();
    CHECK(ports.size() >= 2);
    std::mt19937 random(static_cast<unsigned>(rank()) + 1);
    MPI_Win_lock_all(0, win);
    for (long round = 1; round <= 200; ++round) {
        throw_at(ports[static_cast<std::size_t>(round) % ports.size()], random);
        const long one = 1;
        long before = -1, back = -1;
        CHECK_OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 0, MPI_SUM, win));
        CHECK_OK(MPI_Put(&round, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_flush(target, win));
        CHECK_OK(MPI_Get(&back, 1, MPI_LONG, target, 1, 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_flush(target, win));
        CHECK_EQ(before, round - 1);
        CHECK_EQ(back, round);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(base[2], 0L);
    MPI_Win_free(&win);
}
