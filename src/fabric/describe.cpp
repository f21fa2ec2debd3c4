// libosc_ofi.so: a provider's attributes as text.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstring>
#include <string>

#include "fabric/choose.h"

namespace osc::fabric {
namespace {

/// A requirement on the endpoint, and hints without it.
struct Requirement {
    const char* name;
    void (*drop)(fi_info& hints);
};
constexpr Requirement kRequirements[] = {
    {"FI_RMA", [](fi_info& hints) { hints.caps &= ~FI_RMA; }},
    {"FI_ORDER_SAS", [](fi_info& hints) { hints.tx_attr->msg_order = hints.rx_attr->msg_order = 0; }},
    {"FI_THREAD_SAFE", [](fi_info& hints) { hints.domain_attr->threading = FI_THREAD_UNSPEC; }},
    {"FI_RM_ENABLED", [](fi_info& hints) { hints.domain_attr->resource_mgmt = FI_RM_UNSPEC; }},
    {"FI_EP_RDM", [](fi_info& hints) { hints.ep_attr->type = FI_EP_UNSPEC; }},
    {"all of these",
     [](fi_info& hints) {
         hints.caps = 0;
         hints.tx_attr->msg_order = hints.rx_attr->msg_order = 0;
         hints.domain_attr->threading = FI_THREAD_UNSPEC;
         hints.domain_attr->resource_mgmt = FI_RM_UNSPEC;
         hints.ep_attr->type = FI_EP_UNSPEC;
     }},
};

std::string missing(const char* provider) {
    for (const Requirement& requirement : kRequirements) {
        const Info hints = make_hints(provider, false);
        if (hints == nullptr) break;
        requirement.drop(*hints);
        if (find_offers(*hints) != nullptr) return requirement.name;
    }
    return "the provider";
}

template <class Value>
std::string words(const Value& value, fi_type type) {
    const char* const text = fi_tostr(&value, type);
    return text != nullptr && *text != '\0' ? text : "none";
}

std::string size_text(std::size_t size) {
    return size > (std::size_t{1} << 60) ? "all" : std::to_string(size);
}

std::string attributes_of(const char* provider) {
    const std::uint32_t version = fi_version();
    std::string text = "version=" + std::to_string(FI_MAJOR(version)) + '.' + std::to_string(FI_MINOR(version)) + '\n';
    const Info hints = make_hints(provider, false);
    const Info info = hints != nullptr ? find_offers(*hints) : nullptr;
    if (info == nullptr) return text + "missing=" + missing(provider) + '\n';
    const int modes = info->domain_attr->mr_mode;
    text += "provider=" + std::string(info->fabric_attr->prov_name) + '\n';
    text += "registration=" + words(modes, FI_TYPE_MR_MODE) + '\n';
    text += "order=" + words(info->tx_attr->msg_order, FI_TYPE_MSG_ORDER) + '\n';
    text += "ordered_writes=" + size_text(info->ep_attr->max_order_waw_size) + '\n';
    text += "copied=" + std::to_string(info->tx_attr->inject_size) + '\n';
    text += "pieces=" + std::to_string(info->tx_attr->iov_limit) + '\n';
    text += "progress=" + words(info->domain_attr->data_progress, FI_TYPE_PROGRESS) + '\n';
    return text;
}

}  // namespace
}  // namespace osc::fabric

extern "C" __attribute__((visibility("default"))) void osc_ofi_describe(const char* provider, char* text,
                                                                        std::size_t room) {
    std::strncpy(text, osc::fabric::attributes_of(provider).c_str(), room - 1);
    text[room - 1] = '\0';
}
