// What the hosts of hosts.sh owe to a program: other names, messages that arrive whole, and the network's faults as
// they were asked for. Two-sided only: it is the hosts that are tested here, and the MPI library below.
//   MULTIHOST_HOSTS         how many host names there must be
//   MULTIHOST_ROUND_TRIP_US what a round trip between the first ranks of h0 and h1 must take at least
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "../mpi/harness.h"
#include "network.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE)

namespace {

using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;

long setting(const char* name) {
    const char* value = std::getenv(name);
    CHECK(value != nullptr);
    return value ? std::atol(value) : 0;
}

std::vector<std::string> host_of_each_rank() {
    Name mine = {};
    CHECK_EQ(gethostname(mine.data(), mine.size() - 1), 0);
    std::vector<Name> all(static_cast<std::size_t>(size()));
    const int bytes = static_cast<int>(sizeof(Name));
    MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
    std::vector<std::string> names;
    for (const Name& name : all)
        names.emplace_back(name.data());
    return names;
}

/// The first rank on a host; -1 if there is none.
int first_on(const std::string& host) {
    const auto hosts = host_of_each_rank();
    for (int i = 0; i < size(); ++i)
        if (hosts[static_cast<std::size_t>(i)] == host) return i;
    return -1;
}

unsigned char byte(int from, int to, std::size_t i) {
    return static_cast<unsigned char>(static_cast<std::size_t>(from * 31 + to * 7) + i * 13 + (i >> 8));
}

/// One message to a peer and back; seconds.
double round_trip(int peer) {
    int there = rank(), back = -1;
    const double begin = osct::now();
    MPI_Send(&there, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(&back, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(back, there);
    return osct::now() - begin;
}

void answer(int peer) {
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
}

}  // namespace

CASE(hosts_have_names) {
    const auto hosts = host_of_each_rank();
    const std::set<std::string> different(hosts.begin(), hosts.end());
    CHECK_EQ(static_cast<long>(different.size()), setting("MULTIHOST_HOSTS"));
    // The host library agrees that only ranks of one name share memory.
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int on_node = 0;
    MPI_Comm_size(node, &on_node);
    MPI_Comm_free(&node);
    CHECK_EQ(on_node, std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(rank())]));
}

CASE(messages_arrive_whole) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{1500}, std::size_t{70000}, std::size_t{1} << 20}) {
        for (int distance = 1; distance < size(); ++distance) {
            const int to = (rank() + distance) % size();
            const int from = (rank() + size() - distance) % size();
            std::vector<unsigned char> out(bytes), in(bytes);
            for (std::size_t i = 0; i < bytes; ++i)
                out[i] = byte(rank(), to, i);
            MPI_Sendrecv(out.data(), static_cast<int>(bytes), MPI_BYTE, to, 3, in.data(), static_cast<int>(bytes),
                         MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_ALL(in.data(), bytes, [&](std::size_t i) { return byte(from, rank(), i); });
        }
    }
}

// With DROP_PERCENT, after messages of a few megabytes.
CASE(frames_were_dropped) {
    if (rank() != 0) return;
    std::istringstream stats(multihost::ask_network("stats"));
    std::string word;
    long forwarded = -1, dropped = -1;
    stats >> word >> forwarded >> word >> dropped;
    std::printf("         %s\n", stats.str().c_str());
    CHECK(forwarded > 100);
    CHECK(dropped > 10);
}

CASE(a_round_trip_takes_its_time) {
    const int first = first_on("h0"), second = first_on("h1");
    constexpr int kTrips = 7;
    if (rank() == second)
        for (int i = 0; i < kTrips; ++i)
            answer(first);
    if (rank() != first) return;
    round_trip(second);
    double shortest = 1e9;
    for (int i = 1; i < kTrips; ++i)
        shortest = std::min(shortest, round_trip(second));
    std::printf("         shortest round trip: %.0f us\n", shortest * 1e6);
    CHECK(shortest * 1e6 >= static_cast<double>(setting("MULTIHOST_ROUND_TRIP_US")));
}

// No message passes a cut, the other hosts still communicate, and after the repair the earlier messages arrive.
CASE(a_cut_stops_all_until_it_is_healed) {
    const int first = first_on("h0"), second = first_on("h1"), third = first_on("h2");
    constexpr double kCutSeconds = 1.5, kPatience = 20;
    if (rank() == second) {
        answer(first);
        answer(first);
    }
    if (rank() == third) {
        answer(first);
        answer(first);
    }
    if (rank() != first) return;
    // Connections exist before.
    round_trip(second);
    if (third >= 0) round_trip(third);
    CHECK_EQ(multihost::ask_network("cut h0 h1"), "ok");
    int value = 5, back = -1, done = 0;
    MPI_Request requests[2];
    MPI_Isend(&value, 1, MPI_INT, second, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&back, 1, MPI_INT, second, 2, MPI_COMM_WORLD, &requests[1]);
    if (third >= 0) CHECK(round_trip(third) < kPatience);
    const double begin = osct::now();
    while (!done && osct::now() < begin + kCutSeconds)
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    CHECK_EQ(done, 0);
    CHECK_EQ(multihost::ask_network("heal h0 h1"), "ok");
    const double healed = osct::now();
    while (!done && osct::now() < healed + kPatience)
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    CHECK_EQ(done, 1);
    CHECK_EQ(back, value);
    std::printf("         answered %.2f s after the healing\n", osct::now() - healed);
}
