// Chooses a provider: the first of the table that this machine has.
#include "fabric/choose.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/host_address.h"
#include "fabric/adapters.h"

namespace osc::fabric {
namespace {

constexpr Provider kProviders[] = {
#define OSC_PROVIDER(name, quirks, direct) {name, quirks, direct},
#include "fabric/providers.def"
};

// The address to bind a software provider to; empty leaves the choice to the provider.
std::string bind_to(const Provider& provider, const Wishes& wishes) {
    const char* const own = std::strcmp(provider.name, "net") == 0 ? "FI_NET_IFACE" : "FI_TCP_IFACE";
    if (wishes.interface[0] == '\0' && std::getenv(own) != nullptr) return {};
    const in_addr address{base::host_ipv4(wishes.interface, wishes.loopback)};
    char text[INET_ADDRSTRLEN] = "";
    if (address.s_addr != 0) ::inet_ntop(AF_INET, &address, text, sizeof text);
    return text;
}

// What libfabric offers under a name. A name of one layer stands for providers with it below another one too: of
// libfabric 1.17, tcp gives tcp;ofi_rxm.
Info offers(const char* name, bool atomics, const std::string& address, std::string& why) {
    const Info hints = make_hints(name, atomics);
    if (hints == nullptr) return nullptr;
    fi_info* found = nullptr;
    const int error = fi_getinfo(kVersion, address.empty() ? nullptr : address.c_str(), nullptr,
                                 address.empty() ? 0 : FI_SOURCE, hints.get(), &found);
    if (error == 0) return Info(found);
    why = std::string(name) + ": " + fi_strerror(-error);
    return nullptr;
}

// The offer that has the provider's very name, because the row's properties hold for that one only, on the nearest
// adapter or the one that the user names.
Info ask(const Provider& provider, bool atomics, const Wishes& wishes, std::string& why) {
    const bool software = (provider.quirks & kSoftware) != 0;
    const std::string source = software ? bind_to(provider, wishes) : std::string();
    if (software && source.empty() && wishes.interface[0] != '\0') {
        why = std::string("no interface ") + wishes.interface + " with an IPv4 address is up";
        return nullptr;
    }
    const Info all = offers(provider.name, atomics, source, why);
    if (all == nullptr) return nullptr;
    const std::string adapter = software ? "" : wishes.interface;
    const fi_info* const taken = nearest(all.get(), provider.name, adapter, software ? -1 : own_node());
    Info found(taken != nullptr ? fi_dupinfo(taken) : nullptr);
    if (found == nullptr)
        why = std::string(provider.name) + (adapter.empty() ? ": only as a layer of others" : ": not on " + adapter);
    return found;
}

// Whether the user asks for this provider or for none in particular. libfabric 2 calls the provider net tcp.
bool is_wanted(const std::string& wanted, const std::string& name) {
    return wanted.empty() || wanted == name || (wanted == "net" && name == "tcp");
}

}  // namespace

Info make_hints(const char* provider, bool atomics) {
    Info hints(fi_allocinfo());
    if (hints == nullptr) return nullptr;
    hints->caps = FI_MSG | FI_RMA | (atomics ? FI_ATOMIC : 0);
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_UNSPEC;
    hints->fabric_attr->prov_name = ::strdup(provider);
    return hints;
}

Info choose(const Wishes& wishes, Provider& chosen, int& preference, std::string& why) {
    why = "libfabric has no provider that libosc knows";
    const std::string wanted = wishes.provider;
    const auto take = [&](const Provider& provider) {
        const bool atomics = wishes.atomics || wishes.prefers_atomics || (provider.quirks & kHardwareAtomics) != 0;
        chosen = provider;
        Info found = atomics ? ask(provider, true, wishes, why) : nullptr;
        return found != nullptr ? std::move(found) : ask(provider, false, wishes, why);
    };
    // A software provider without atomics gives way to one with them, if the user wants that; hardware never does.
    constexpr int kRows = std::size(kProviders);
    Info plain;
    Provider its_row{};
    int its_preference = 0;
    for (int row = 0; row < kRows; ++row) {
        const Provider& provider = kProviders[row];
        if (!is_wanted(wanted, provider.name)) continue;
        const bool may_suit = row >= wishes.from;
        const bool may_do = plain == nullptr && kRows + row >= wishes.from;
        Info found = may_suit || may_do ? take(provider) : nullptr;
        if (found == nullptr) continue;
        const bool has_atomics = (found->caps & FI_ATOMIC) != 0 && (provider.quirks & kNoAtomics) == 0;
        const bool suits = !wishes.prefers_atomics || (provider.quirks & kSoftware) == 0 || has_atomics;
        if (suits && may_suit) {
            preference = row;
            return found;
        }
        if (!suits && may_do) {
            plain = std::move(found);
            its_row = provider;
            its_preference = kRows + row;
        }
    }
    if (plain != nullptr) {
        chosen = its_row;
        preference = its_preference;
        return plain;
    }
    if (wanted.empty() || wishes.from > 0) return nullptr;
    // The user names a provider that the table does not have, or a layer of one that it has.
    preference = 0;
    Info found = offers(wishes.provider, wishes.atomics, {}, why);
    chosen = {wishes.provider, kNone, 4096};
    if (found == nullptr) return nullptr;
    for (const Provider& provider : kProviders)
        if (std::strcmp(found->fabric_attr->prov_name, provider.name) == 0) return take(provider);
    return found;
}

}  // namespace osc::fabric
