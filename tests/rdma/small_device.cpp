// A device with few resources, made of a large one: preloaded, it stands between libfabric and libibverbs, reports
// small limits, and refuses what exceeds them as a kernel driver does. Counts belong to a process.
//
//   RDMA_MAX_CQE=n   entries of a completion queue
//   RDMA_MAX_MR=n    registrations
//   RDMA_MAX_QP=n    queue pairs
//   RDMA_RETRIES=n   of a packet without an answer. libfabric asks for 7, which devices count and soft-RoCE takes for
//                    endless.
#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "real_verbs.h"

#undef ibv_reg_mr

namespace {

int limit(const char* variable, int otherwise) {
    const char* const text = std::getenv(variable);
    return text != nullptr ? std::atoi(text) : otherwise;
}

std::atomic<int> g_registrations{0};
std::atomic<int> g_queue_pairs{0};

// Calls make() if the count stays within its limit. libibverbs makes some objects by a call of its own, which counts
// once.
template <class Make>
auto counted(std::atomic<int>& count, const char* variable, Make&& make) -> decltype(make()) {
    thread_local int depth = 0;
    static const int most = limit(variable, 1 << 30);
    if (depth == 0 && count.fetch_add(1) >= most) {
        count.fetch_sub(1);
        errno = ENOMEM;
        return nullptr;
    }
    ++depth;
    const auto made = make();
    --depth;
    if (depth == 0 && made == nullptr) count.fetch_sub(1);
    return made;
}

}  // namespace

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
    static auto* const function = real<decltype(ibv_query_device)>("ibv_query_device");
    const int error = function(context, attributes);
    if (error != 0) return error;
    attributes->max_cqe = std::min(attributes->max_cqe, limit("RDMA_MAX_CQE", attributes->max_cqe));
    attributes->max_mr = std::min(attributes->max_mr, limit("RDMA_MAX_MR", attributes->max_mr));
    attributes->max_qp = std::min(attributes->max_qp, limit("RDMA_MAX_QP", attributes->max_qp));
    return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* data, ibv_comp_channel* channel, int vector) {
    static auto* const function = real<decltype(ibv_create_cq)>("ibv_create_cq");
    if (entries > limit("RDMA_MAX_CQE", entries)) {
        errno = EINVAL;
        return nullptr;
    }
    return function(context, entries, data, channel, vector);
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t bytes, int access) {
    static auto* const function = real<ibv_mr*(ibv_pd*, void*, size_t, int)>("ibv_reg_mr");
    return counted(g_registrations, "RDMA_MAX_MR", [&] { return function(domain, address, bytes, access); });
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t bytes, uint64_t iova, unsigned int access) {
    static auto* const function = real<decltype(ibv_reg_mr_iova2)>("ibv_reg_mr_iova2");
    return counted(g_registrations, "RDMA_MAX_MR", [&] { return function(domain, address, bytes, iova, access); });
}

int ibv_dereg_mr(ibv_mr* registration) {
    static auto* const function = real<decltype(ibv_dereg_mr)>("ibv_dereg_mr");
    const int error = function(registration);
    if (error == 0) g_registrations.fetch_sub(1);
    return error;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
    static auto* const function = real<decltype(ibv_create_qp)>("ibv_create_qp");
    return counted(g_queue_pairs, "RDMA_MAX_QP", [&] { return function(domain, attributes); });
}

int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
    static auto* const function = real<decltype(ibv_modify_qp)>("ibv_modify_qp");
    attributes->retry_cnt = static_cast<std::uint8_t>(limit("RDMA_RETRIES", attributes->retry_cnt));
    return function(pair, attributes, mask);
}

int ibv_destroy_qp(ibv_qp* pair) {
    static auto* const function = real<decltype(ibv_destroy_qp)>("ibv_destroy_qp");
    const int error = function(pair);
    if (error == 0) g_queue_pairs.fetch_sub(1);
    return error;
}

}  // extern "C"
