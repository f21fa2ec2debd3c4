// The endpoint of net_raw (see raw_endpoint.h).
#include "raw_endpoint.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace bench {

namespace {

constexpr std::uint64_t kRequestedKey = 1;
constexpr std::uint64_t kWaited = FI_COMPLETION | FI_DELIVERY_COMPLETE;
constexpr int kSreadMs = 200;
constexpr std::size_t kQueue = 1024;

void must(long result, const char* what) {
    if (result < 0) throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-result)));
}

}  // namespace

Endpoint::Endpoint(const std::string& provider, Progress progress, std::byte* memory, std::size_t bytes,
                   const Control& control)
    : progress_(progress), memory_(memory), bytes_(bytes) {
    // The wait descriptor of "net" stays readable once something has come: only its own blocking read sleeps.
    wait_descriptor_settles_ = provider != "net";
    open(provider, control.own_address());
    exchange(control);
}

Endpoint::~Endpoint() {
    if (thread_.joinable()) stop_thread();
    close_all();
}

void Endpoint::open(const std::string& provider, const std::string& address) {
    fi_info* hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup(provider.c_str());
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    // Nothing but the calls of this program moves data: otherwise a provider's own thread would be measured.
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    const int found = fi_getinfo(FI_VERSION(1, 17), address.c_str(), nullptr, FI_SOURCE, hints, &info_);
    fi_freeinfo(hints);
    must(found, "fi_getinfo");

    must(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
    must(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
    fi_av_attr av{};
    av.type = FI_AV_TABLE;
    must(fi_av_open(domain_, &av, &addresses_, nullptr), "fi_av_open");
    fi_cq_attr cq{};
    cq.size = kQueue;
    cq.format = FI_CQ_FORMAT_CONTEXT;
    // A wait object costs time, so a process that only polls has none.
    cq.wait_obj = progress_ == Progress::polling ? FI_WAIT_NONE : FI_WAIT_FD;
    must(fi_cq_open(domain_, &cq, &completions_, nullptr), "fi_cq_open");
    must(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
    must(fi_ep_bind(endpoint_, &addresses_->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    must(fi_enable(endpoint_), "fi_enable");
    must(fi_mr_reg(domain_, memory_, bytes_, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kRequestedKey, 0,
                   &memory_region_, nullptr),
         "fi_mr_reg");
    std::size_t fetch = 0;
    std::size_t compare = 0;
    atomics_ = fi_fetch_atomicvalid(endpoint_, FI_UINT64, FI_SUM, &fetch) == 0 &&
               fi_compare_atomicvalid(endpoint_, FI_UINT64, FI_CSWAP, &compare) == 0 &&
               fi_atomicvalid(endpoint_, FI_UINT64, FI_SUM, &most_words_) == 0 && fetch > 0 && compare > 0 &&
               most_words_ > 0;
}

void Endpoint::exchange(const Control& control) {
    char name[256] = {};
    std::size_t size = sizeof name;
    must(fi_getname(&endpoint_->fid, name, &size), "fi_getname");
    char other[sizeof name] = {};
    control.send(name, sizeof name);
    control.receive(other, sizeof other);
    if (fi_av_insert(addresses_, other, 1, &peer_, 0, nullptr) != 1) throw std::runtime_error("fi_av_insert failed");
    const bool by_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    remote_base_ = control.swap(by_address ? reinterpret_cast<std::uintptr_t>(memory_) : 0);
    remote_key_ = control.swap(fi_mr_key(memory_region_));
}

void Endpoint::close_all() {
    for (fid* one : {memory_region_ ? &memory_region_->fid : nullptr, endpoint_ ? &endpoint_->fid : nullptr,
                     completions_ ? &completions_->fid : nullptr, addresses_ ? &addresses_->fid : nullptr,
                     domain_ ? &domain_->fid : nullptr, fabric_ ? &fabric_->fid : nullptr}) {
        if (one != nullptr) fi_close(one);
    }
    if (info_ != nullptr) fi_freeinfo(info_);
}

template <class Post>
void Endpoint::post(const char* what, Post&& one) {
    long result = one();
    while (result == -FI_EAGAIN) {
        poll();
        result = one();
    }
    must(result, what);
    ++outstanding_;
}

void Endpoint::write(std::size_t from, std::size_t to, std::size_t bytes) {
    const iovec local{memory_ + from, bytes};
    const fi_rma_iov remote{remote_base_ + to, bytes, remote_key_};
    void* descs[] = {desc()};
    const fi_msg_rma message{&local, descs, 1, peer_, &remote, 1, nullptr, 0};
    post("fi_writemsg", [&] { return fi_writemsg(endpoint_, &message, kWaited); });
}

void Endpoint::read(std::size_t into, std::size_t from, std::size_t bytes) {
    const iovec local{memory_ + into, bytes};
    const fi_rma_iov remote{remote_base_ + from, bytes, remote_key_};
    void* descs[] = {desc()};
    const fi_msg_rma message{&local, descs, 1, peer_, &remote, 1, nullptr, 0};
    post("fi_readmsg", [&] { return fi_readmsg(endpoint_, &message, FI_COMPLETION); });
}

void Endpoint::add(std::size_t operand, std::size_t at, std::size_t words) {
    for (std::size_t done = 0; done < words;) {
        const std::size_t row = std::min(words - done, most_words_);
        const fi_ioc local{memory_ + operand + 8 * done, row};
        const fi_rma_ioc remote = remote_words(at + 8 * done, row);
        void* descs[] = {desc()};
        const fi_msg_atomic message{&local, descs, 1, peer_, &remote, 1, FI_UINT64, FI_SUM, nullptr, 0};
        post("fi_atomicmsg", [&] { return fi_atomicmsg(endpoint_, &message, kWaited); });
        done += row;
    }
}

void Endpoint::fetch_add(std::size_t operand, std::size_t result, std::size_t at) {
    const fi_ioc local{memory_ + operand, 1};
    fi_ioc fetched{memory_ + result, 1};
    const fi_rma_ioc remote = remote_words(at, 1);
    void* descs[] = {desc()};
    const fi_msg_atomic message{&local, descs, 1, peer_, &remote, 1, FI_UINT64, FI_SUM, nullptr, 0};
    post("fi_fetch_atomicmsg",
         [&] { return fi_fetch_atomicmsg(endpoint_, &message, &fetched, descs, 1, FI_COMPLETION); });
}

void Endpoint::compare_swap(std::size_t operand, std::size_t compare, std::size_t result, std::size_t at) {
    const fi_ioc local{memory_ + operand, 1};
    const fi_ioc compared{memory_ + compare, 1};
    fi_ioc fetched{memory_ + result, 1};
    const fi_rma_ioc remote = remote_words(at, 1);
    void* descs[] = {desc()};
    const fi_msg_atomic message{&local, descs, 1, peer_, &remote, 1, FI_UINT64, FI_CSWAP, nullptr, 0};
    post("fi_compare_atomicmsg", [&] {
        return fi_compare_atomicmsg(endpoint_, &message, &compared, descs, 1, &fetched, descs, 1, FI_COMPLETION);
    });
}

void Endpoint::send(std::size_t from, std::size_t bytes) {
    if (bytes > info_->tx_attr->inject_size) {
        post("fi_send", [&] { return fi_send(endpoint_, memory_ + from, bytes, desc(), peer_, nullptr); });
        return;
    }
    post("fi_inject", [&] { return fi_inject(endpoint_, memory_ + from, bytes, peer_); });
    --outstanding_;  // no completion reports it
}

void Endpoint::expect(std::size_t at, std::size_t bytes) {
    if (receive_bytes_ > 0) return;
    receive_at_ = at;
    receive_bytes_ = bytes;
    post_receive();
}

void Endpoint::post_receive() {
    must(fi_recv(endpoint_, memory_ + receive_at_, receive_bytes_, desc(), FI_ADDR_UNSPEC, &received_), "fi_recv");
}

void Endpoint::poll() {
    fi_cq_entry entries[16];
    const ssize_t got = fi_cq_read(completions_, entries, 16);
    if (got > 0) {
        for (ssize_t i = 0; i < got; ++i) {
            if (entries[i].op_context != &received_) {
                --outstanding_;
                continue;
            }
            ++received_;
            post_receive();
        }
    } else if (got == -FI_EAVAIL) {
        fi_cq_err_entry error{};
        fi_cq_readerr(completions_, &error, 0);
        must(-error.err, "an operation failed");
    } else if (got != -FI_EAGAIN) {
        must(got, "fi_cq_read");
    }
}

void Endpoint::start_thread() {
    stop_ = false;
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::thread([this] { wait_descriptor_settles_ ? sleep_in_epoll() : sleep_in_sread(); });
}

void Endpoint::stop_thread() {
    stop_ = true;
    const std::uint64_t one = 1;
    if (::write(wake_, &one, sizeof one) < 0) std::perror("net_raw: eventfd");
    thread_.join();
    close(wake_);
}

void Endpoint::sleep_in_epoll() {
    int wait = -1;
    must(fi_control(&completions_->fid, FI_GETWAIT, &wait), "FI_GETWAIT");
    const int set = epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : {wait, wake_}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    }
    while (!stop_) {
        poll();
        fid* waited = &completions_->fid;
        if (fi_trywait(fabric_, &waited, 1) != FI_SUCCESS) continue;
        epoll_event events[2];
        epoll_wait(set, events, 2, -1);
    }
    close(set);
}

void Endpoint::sleep_in_sread() {
    while (!stop_) {
        fi_cq_entry entry{};
        fi_cq_sread(completions_, &entry, 1, nullptr, kSreadMs);
    }
}

}  // namespace bench
