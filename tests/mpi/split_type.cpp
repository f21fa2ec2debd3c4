// MPI_Comm_split_type: the members of the communicator, their order, and the properties that it inherits. It runs with
// the host unchanged; with a host that takes the ranks for several nodes (narrow_host.cpp), where libosc returns the
// larger communicator; and with OSC_DEBUG=split_type=host, where libosc returns the host's.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate_shared", "MPI_Win_allocate", "MPI_Put", "MPI_Win_fence",
             "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_sync", "MPI_Win_shared_query", "MPI_Win_free")

namespace {

std::string setting(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? text : "";
}

// Ranks of a node in the answer that this world gives.
int node_ranks() {
    const bool narrow = setting("LD_PRELOAD").find("narrow_host") != std::string::npos;
    const bool leaves = !osct::served_by_osc() || osct::debug_setting("split_type") == "host";
    const int ranks = std::atoi(setting("OSC_TEST_NODE_RANKS").c_str());
    if (!narrow) return ranks > 0 ? ranks : size();  // of a real host
    if (!leaves) return size();
    return ranks > 0 ? ranks : 1;
}

std::vector<int> ranks_in_world(MPI_Comm comm) {
    int members = 0;
    MPI_Comm_size(comm, &members);
    std::vector<int> ranks(static_cast<std::size_t>(members));
    const int mine = rank();
    MPI_Allgather(&mine, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm);
    return ranks;
}

MPI_Comm split(MPI_Comm comm, int type, int key, MPI_Info info = MPI_INFO_NULL) {
    MPI_Comm result = MPI_COMM_WORLD;
    CHECK_OK(MPI_Comm_split_type(comm, type, key, info, &result));
    return result;
}

// The ranks of this rank's node, in ascending order.
std::vector<int> expected() {
    std::vector<int> ranks;
    for (int other = 0; other < size(); ++other)
        if (other / node_ranks() == rank() / node_ranks()) ranks.push_back(other);
    return ranks;
}

}  // namespace

CASE(ranks_by_key_and_then_by_rank) {
    const std::vector<int> ascending = expected();
    MPI_Comm node = split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 7);
    CHECK(ranks_in_world(node) == ascending);
    MPI_Comm_free(&node);
    node = split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank());
    CHECK(ranks_in_world(node) == std::vector<int>(ascending.rbegin(), ascending.rend()));
    MPI_Comm_free(&node);
    // Odd ranks behind even ones.
    std::vector<int> order;
    for (int odd = 0; odd < 2; ++odd)
        for (const int other : ascending)
            if (other % 2 == odd) order.push_back(other);
    node = split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank() % 2);
    CHECK(ranks_in_world(node) == order);
    MPI_Comm_free(&node);
    CHECK(node == MPI_COMM_NULL);
}

CASE(undefined_takes_no_part) {
    SKIP_IF(size() < 2);
    const bool out = rank() == size() - 1;
    MPI_Comm node = split(MPI_COMM_WORLD, out ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0);
    if (out) {
        CHECK(node == MPI_COMM_NULL);
    } else {
        std::vector<int> ranks = expected();
        if (!ranks.empty() && ranks.back() == size() - 1) ranks.pop_back();
        CHECK(ranks_in_world(node) == ranks);
        MPI_Comm_free(&node);
    }
    node = split(MPI_COMM_WORLD, MPI_UNDEFINED, 0);
    CHECK(node == MPI_COMM_NULL);
}

CASE(part_of_a_communicator) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, -rank(), &half);
    int members = 0;
    MPI_Comm_size(half, &members);
    MPI_Comm node = split(half, MPI_COMM_TYPE_SHARED, 0);
    const std::vector<int> ranks = ranks_in_world(node);
    if (node_ranks() == size()) CHECK(ranks == ranks_in_world(half));
    MPI_Comm again = split(node, MPI_COMM_TYPE_SHARED, 0);
    CHECK(ranks_in_world(again) == ranks);
    MPI_Comm_free(&again);
    MPI_Comm_free(&node);
    MPI_Comm_free(&half);
}

// Error handlers and info are inherited and given; attributes stay behind.
CASE(properties_of_the_new_communicator) {
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Comm_set_attr(parent, keyval, &keyval);
    const Info info{{"mpi_assert_no_any_tag", "true"}};
    MPI_Comm node = split(parent, MPI_COMM_TYPE_SHARED, 0, info);
    CHECK(ranks_in_world(node) == expected());
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(node, &handler);
    CHECK(handler == MPI_ERRORS_RETURN);
    void* value = nullptr;
    int found = 1;
    MPI_Comm_get_attr(node, keyval, static_cast<void*>(&value), &found);
    CHECK(!found);
    // Whatever the host makes of the key, it makes of it on a communicator that the host has split.
    char wanted[64] = "", got[64] = "";
    MPI_Info used = MPI_INFO_NULL;
    MPI_Comm plain = MPI_COMM_NULL;
    MPI_Comm_split(parent, 0, 0, &plain);
    MPI_Comm_set_info(plain, info);
    MPI_Comm_get_info(plain, &used);
    MPI_Info_get(used, "mpi_assert_no_any_tag", sizeof wanted - 1, wanted, &found);
    MPI_Info_free(&used);
    MPI_Comm_get_info(node, &used);
    MPI_Info_get(used, "mpi_assert_no_any_tag", sizeof got - 1, got, &found);
    MPI_Info_free(&used);
    if (!osct::over_openmpi()) CHECK_EQ(std::string(got), std::string(wanted));
    MPI_Comm_free(&plain);
    MPI_Comm_free(&node);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_free(&parent);
}

#ifdef MPI_COMM_TYPE_HW_GUIDED
CASE(the_name_of_shared_memory_as_a_resource) {
    const Info info{{"mpi_hw_resource_type", "mpi_shared_memory"}};
    MPI_Comm node = split(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info);
    CHECK(ranks_in_world(node) == expected());
    MPI_Comm_free(&node);
    // Another kind of split, with some that take no part: the host's.
    const bool out = rank() == size() - 1;
    node = split(MPI_COMM_WORLD, out ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_UNGUIDED, 0);
    if (out) CHECK(node == MPI_COMM_NULL);
    if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
}
#endif

CASE(wrong_arguments) {
    MPI_Comm parent = MPI_COMM_NULL, node = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_split_type(parent, -77, 0, MPI_INFO_NULL, &node), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, nullptr), MPI_ERR_ARG);
    MPI_Comm_free(&parent);
}

// The host has room for about 2,000 communicators.
CASE(many_splits_leave_nothing) {
    const bool many = osct::full() || setting("OSC_TEST_ROUNDS") == "many";
    SKIP_IF(!many || size() != 2);
    for (int round = 0; round < 2200; ++round) {
        MPI_Comm node = split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank());
        MPI_Comm_free(&node);
    }
}

CASE(memory_on_the_new_communicator) {
    MPI_Comm node = split(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank());
    const std::vector<int> ranks = ranks_in_world(node);
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, node, &base, &win));
    MPI_Win_lock_all(0, win);
    base[0] = 100 + rank();
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    for (std::size_t peer = 0; peer < ranks.size(); ++peer) {
        MPI_Aint bytes = 0;
        int unit = 0;
        long* there = nullptr;
        CHECK_OK(MPI_Win_shared_query(win, static_cast<int>(peer), &bytes, &unit, &there));
        CHECK_EQ(there[0], 100 + ranks[peer]);
    }
    MPI_Win_unlock_all(win);
    CHECK_OK(MPI_Win_free(&win));
    MPI_Comm_free(&node);
}

// Windows do not depend on the option: processes of one machine are one node, and nothing goes by the network.
CASE(a_machine_is_one_node) {
    HOST_CANNOT("what the host does between its nodes is its own affair");
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    MPI_Win_fence(0, win);
    const long value = 40 + rank();
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win));
    MPI_Win_fence(0, win);
    CHECK_EQ(base[0], 40 + left());
    CHECK_OK(MPI_Win_free(&win));
    CHECK_EQ(osct::counter("network.messages"), 0);
}

// tests/multihost: memory is of one host, and what is between them goes by the network.
CASE(hosts_share_nothing) {
    SKIP_IF(node_ranks() == size() || osct::debug_setting("split_type") == "host");
    const ReturningComm comm;
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_CLASS(MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_RMA_SHARED);
    CHECK_OK(MPI_Win_allocate(8, 8, MPI_INFO_NULL, comm, &base, &win));
    MPI_Win_fence(0, win);
    const long value = 40 + rank();
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, (rank() + node_ranks()) % size(), 0, 1, MPI_LONG, win));
    MPI_Win_fence(0, win);
    CHECK_EQ(base[0], 40 + (rank() + size() - node_ranks()) % size());
    CHECK_OK(MPI_Win_free(&win));
    CHECK(osct::counter("network.messages") > 0);
}
