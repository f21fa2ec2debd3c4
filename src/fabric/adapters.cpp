// Adapters by their devices in sysfs: the PCI device that libfabric names, or the InfiniBand device.
#include "fabric/adapters.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "fabric/choose.h"

namespace osc::fabric {
namespace {

namespace fs = std::filesystem;

int number_in(const fs::path& file) {
    std::ifstream in(file);
    int number = -1;
    return in >> number ? number : -1;
}

// The adapter's folder in sysfs; libfabric calls a second kind of endpoint of mlx5_0, mlx5_0-dgram.
fs::path device_of(const std::string& name, const std::string& system) {
    return fs::path(system) / "class/infiniband" / name.substr(0, name.find('-'));
}

fs::path pci_of(const fi_info& offer, const std::string& system) {
    if (offer.nic == nullptr || offer.nic->bus_attr == nullptr || offer.nic->bus_attr->bus_type != FI_BUS_PCI)
        return {};
    const fi_pci_attr& at = offer.nic->bus_attr->attr.pci;
    return fs::path(system) / "bus/pci/devices" /
           base::format("%04x:%02x:%02x.%x", at.domain_id, at.bus_id, at.device_id, at.function_id);
}

// Whether a network interface belongs to the adapter, or a software adapter is made over it.
bool carries(const std::string& adapter, const std::string& interface, const std::string& system) {
    const fs::path device = device_of(adapter, system);
    std::error_code error;
    if (fs::exists(device / "device/net" / interface, error)) return true;
    std::ifstream in(device / "parent");
    std::string parent;
    return static_cast<bool>(in >> parent) && parent == interface;
}

}  // namespace

Adapter adapter_of(const fi_info& offer, const std::string& system) {
    Adapter adapter;
    if (offer.domain_attr != nullptr && offer.domain_attr->name != nullptr) adapter.name = offer.domain_attr->name;
    if (const fs::path pci = pci_of(offer, system); !pci.empty()) adapter.node = number_in(pci / "numa_node");
    if (adapter.node < 0) adapter.node = number_in(device_of(adapter.name, system) / "device/numa_node");
    if (offer.nic != nullptr && offer.nic->link_attr != nullptr)
        adapter.linked = offer.nic->link_attr->state != FI_LINK_DOWN;
    return adapter;
}

Limits limits_of(const fi_info& offer) {
    const Info hints(fi_allocinfo());
    if (hints == nullptr) return {};
    const std::string layers = offer.fabric_attr->prov_name;
    hints->fabric_attr->prov_name = ::strdup(layers.substr(0, layers.find(';')).c_str());
    hints->domain_attr->name = ::strdup(offer.domain_attr->name);
    hints->domain_attr->mr_mode = offer.domain_attr->mr_mode | FI_MR_LOCAL;
    hints->ep_attr->type = FI_EP_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    const Info found = find_offers(*hints);
    if (found == nullptr) return {};
    return {found->domain_attr->ep_cnt, found->tx_attr->inject_size};
}

std::string too_few_queue_pairs(const std::string& adapter, std::size_t pairs, std::uint32_t peers) {
    constexpr std::size_t kOwn = 2;
    if (pairs == 0 || peers + kOwn <= pairs) return "";
    return adapter + " has " + std::to_string(pairs) + " queue pair" + (pairs == 1 ? "" : "s") +
           " (max_qp), and connections to " + std::to_string(peers) + " process" + (peers == 1 ? "" : "es") +
           " of other nodes and to itself take " + std::to_string(peers + kOwn);
}

int own_node(const std::string& system) {
    cpu_set_t cpus;
    if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return -1;
    int found = -1;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(system) / "devices/system/node", error)) {
        int node = -1;
        if (std::sscanf(entry.path().filename().c_str(), "node%d", &node) != 1) continue;
        bool uses = false;
        for (int cpu = 0; cpu < CPU_SETSIZE && !uses; ++cpu)
            uses = CPU_ISSET(cpu, &cpus) && fs::exists(entry.path() / ("cpu" + std::to_string(cpu)), error);
        if (uses && found >= 0) return -1;
        if (uses) found = node;
    }
    return found;
}

const fi_info* nearest(const fi_info* offers, const char* provider, const std::string& wanted, int node,
                       const std::string& system) {
    const fi_info* best = nullptr;
    int best_rating = -1;
    for (const fi_info* at = offers; at != nullptr; at = at->next) {
        if (std::strcmp(at->fabric_attr->prov_name, provider) != 0) continue;
        const Adapter adapter = adapter_of(*at, system);
        if (!wanted.empty() && adapter.name != wanted && !carries(adapter.name, wanted, system)) continue;
        const int rating = (adapter.linked ? 2 : 0) + (node >= 0 && adapter.node == node ? 1 : 0);
        if (rating > best_rating) best = at, best_rating = rating;
    }
    return best;
}

}  // namespace osc::fabric
