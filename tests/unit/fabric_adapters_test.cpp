// The choice between adapters, over a made-up sysfs.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "fabric/adapters.h"
#include "fake_system.h"

namespace osc::test {
namespace {

class Adapters : public ::testing::Test {
  protected:
    void TearDown() override {
        if (offers_ != nullptr) fi_freeinfo(offers_);
    }

    void write(const std::string& file, const std::string& text) const { system_.write(file, text + '\n'); }
    // An adapter that the provider offers, behind those before.
    void offer(const char* name, int node, fi_link_state link = FI_LINK_UP, const char* provider = "verbs;ofi_rxm") {
        fi_info* const made = fi_allocinfo();
        made->domain_attr->name = ::strdup(name);
        made->fabric_attr->prov_name = ::strdup(provider);
        made->nic = static_cast<fid_nic*>(std::calloc(1, sizeof(fid_nic)));
        made->nic->link_attr = static_cast<fi_link_attr*>(std::calloc(1, sizeof(fi_link_attr)));
        made->nic->link_attr->state = link;
        made->nic->fid.ops = &operations_;
        write(std::string("/class/infiniband/") + name + "/device/numa_node", std::to_string(node));
        fi_info** end = &offers_;
        while (*end != nullptr)
            end = &(*end)->next;
        *end = made;
    }
    std::string taken(const std::string& wanted, int node) const {
        const fi_info* const found = fabric::nearest(offers_, "verbs;ofi_rxm", wanted, node, system_.root());
        return found != nullptr ? found->domain_attr->name : "none";
    }

    FakeSystem system_;
    fi_info* offers_ = nullptr;

  private:
    static int close(fid* object) {
        auto* const nic = reinterpret_cast<fid_nic*>(object);
        std::free(nic->link_attr);
        std::free(nic);
        return 0;
    }
    fi_ops operations_{sizeof(fi_ops), &Adapters::close, nullptr, nullptr, nullptr, nullptr, nullptr};
};

TEST_F(Adapters, TheNearestWithALinkIsTaken) {
    offer("mlx5_0", 0);
    offer("mlx5_1", 1, FI_LINK_DOWN);
    offer("mlx5_2", 1);
    offer("mlx5_3", 1);
    EXPECT_EQ(taken("", 0), "mlx5_0");
    EXPECT_EQ(taken("", 1), "mlx5_2");
    EXPECT_EQ(taken("", -1), "mlx5_0");
    EXPECT_EQ(taken("", 7), "mlx5_0");
}

TEST_F(Adapters, AnAdapterWithoutALinkIsTakenLast) {
    offer("mlx5_0", 1, FI_LINK_DOWN);
    offer("mlx5_1", 0);
    EXPECT_EQ(taken("", 1), "mlx5_1");
}

TEST_F(Adapters, TheUserNamesAnAdapterOrItsInterface) {
    offer("mlx5_0", 0);
    offer("mlx5_1", 1);
    offer("rxe0", -1);
    write("/class/infiniband/mlx5_1/device/net/ib1/mtu", "2044");
    write("/class/infiniband/rxe0/parent", "eth0");
    EXPECT_EQ(taken("mlx5_1", 0), "mlx5_1");
    EXPECT_EQ(taken("ib1", 0), "mlx5_1");
    EXPECT_EQ(taken("eth0", 0), "rxe0");
    EXPECT_EQ(taken("mlx5_9", 0), "none");
}

TEST_F(Adapters, OtherProvidersAreNotTaken) {
    offer("mlx5_0", 0, FI_LINK_UP, "verbs");
    EXPECT_EQ(taken("", 0), "none");
}

TEST(QueuePairs, EachPeerTakesOneAndTheProcessItselfTwo) {
    EXPECT_EQ(fabric::too_few_queue_pairs("mlx5_0", 3, 1), "");
    EXPECT_EQ(fabric::too_few_queue_pairs("mlx5_0", 2, 1),
              "mlx5_0 has 2 queue pairs (max_qp), and connections to 1 process of other nodes and to itself take 3");
    EXPECT_EQ(fabric::too_few_queue_pairs("rxe0", 1, 64),
              "rxe0 has 1 queue pair (max_qp), and connections to 64 processes of other nodes and to itself take 66");
    EXPECT_EQ(fabric::too_few_queue_pairs("mlx5_0", 262144, 262142), "");
    EXPECT_NE(fabric::too_few_queue_pairs("mlx5_0", 262144, 262143), "");
    EXPECT_NE(fabric::too_few_queue_pairs("mlx5_0", 262144, 0xffffffff), "");
}

TEST(QueuePairs, AnAdapterThatDoesNotSayHasEnough) {
    EXPECT_EQ(fabric::too_few_queue_pairs("mlx5_0", 0, 100000), "");
}

// The layer below ofi_rxm answers, not ofi_rxm, which has a number of its own.
TEST(QueuePairs, TheLowerLayerIsAsked) {
    fi_info* const hints = fi_allocinfo();
    hints->fabric_attr->prov_name = ::strdup("tcp;ofi_rxm");
    hints->ep_attr->type = FI_EP_RDM;
    fi_info* layered = nullptr;
    const bool exists = fi_getinfo(FI_VERSION(1, 14), nullptr, nullptr, 0, hints, &layered) == 0;
    fi_freeinfo(hints);
    if (!exists) GTEST_SKIP() << "this machine has no tcp;ofi_rxm";
    const std::size_t pairs = fabric::limits_of(*layered).queue_pairs;
    EXPECT_GT(pairs, 0u);
    EXPECT_NE(pairs, layered->domain_attr->ep_cnt);
    fi_freeinfo(layered);
}

TEST_F(Adapters, TheProcessIsOnANodeIfItsProcessorsAre) {
    cpu_set_t cpus;
    ASSERT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &cpus)) write("/devices/system/node/node3/cpu" + std::to_string(cpu) + "/online", "1");
    write("/devices/system/node/node4/cpu1000/online", "1");
    EXPECT_EQ(fabric::own_node(system_.root()), 3);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &cpus)) write("/devices/system/node/node4/cpu" + std::to_string(cpu) + "/online", "1");
    EXPECT_EQ(fabric::own_node(system_.root()), -1);
}

}  // namespace
}  // namespace osc::test
