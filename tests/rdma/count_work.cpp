// Counts what libfabric asks of libibverbs, for work_counts.cpp: preloaded, it stands between the two.
#include <infiniband/verbs.h>

#include <atomic>
#include <cstring>

#include "real_verbs.h"

#undef ibv_reg_mr

namespace {

std::atomic<long> g_registrations{0};
std::atomic<long> g_requests{0};
int (*g_post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;

int post_send(ibv_qp* pair, ibv_send_wr* requests, ibv_send_wr** bad) {
    for (const ibv_send_wr* at = requests; at != nullptr; at = at->next)
        g_requests.fetch_add(1);
    return g_post_send(pair, requests, bad);
}

// A pair posts by a table of its context. All pairs here are of one device.
ibv_qp* watch(ibv_qp* pair) {
    if (pair == nullptr || pair->context->ops.post_send == post_send) return pair;
    g_post_send = pair->context->ops.post_send;
    pair->context->ops.post_send = post_send;
    return pair;
}

}  // namespace

extern "C" {

long rdma_count(const char* what) {
    return std::strcmp(what, "registrations") == 0 ? g_registrations.load() : g_requests.load();
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t bytes, int access) {
    static auto* const function = real<ibv_mr*(ibv_pd*, void*, size_t, int)>("ibv_reg_mr");
    g_registrations.fetch_add(1);
    return function(domain, address, bytes, access);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t bytes, uint64_t iova, unsigned int access) {
    static auto* const function = real<decltype(ibv_reg_mr_iova2)>("ibv_reg_mr_iova2");
    g_registrations.fetch_add(1);
    return function(domain, address, bytes, iova, access);
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
    static auto* const function = real<decltype(ibv_create_qp)>("ibv_create_qp");
    return watch(function(domain, attributes));
}

}  // extern "C"
