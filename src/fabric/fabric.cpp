// libosc_ofi.so: opens and closes the endpoint over libfabric.
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "fabric/libfabric.h"
#include "fabric/monitor.h"
#include "fabric/probe.h"

namespace osc::fabric {
namespace {

// The number of peers that libfabric sizes its queues for, as it read it when it was loaded.
int universe() {
    const char* const size = std::getenv("FI_UNIVERSE_SIZE");
    return size != nullptr ? std::max(1, std::atoi(size)) : static_cast<int>(kLargestUniverse);
}

template <class Object>
void close(Object* object) {
    if (object != nullptr) fi_close(&object->fid);
}

}  // namespace

Libfabric::~Libfabric() {
    if (endpoint_ != nullptr && !bound_) return;
    close_revoked();
    close(endpoint_);
    for (fid_mr* memory : pinned_)
        close(memory);
    close(receive_memory_);
    close(slot_memory_);
    close(queue_);
    close(peers_);
    close(domain_);
    close(fabric_);
    if (info_ != nullptr) fi_freeinfo(info_);
    if (waker_ >= 0) ::close(waker_);
    if (watched_ >= 0) ::close(watched_);
}

bool Libfabric::start(const Wishes& wishes, std::string& why) {
    info_ = choose(wishes, chosen_, preference_, why).release();
    if (info_ == nullptr) return false;
    const auto fail = [&](const std::string& reason) {
        why = std::string(provider()) + ": " + reason;
        return false;
    };
    if ((chosen_.quirks & kBuffered) != 0) largest_message_ = std::min(wishes.buffer, kLargestMessage);
    if (largest_message_ < kSmallestBuffer)
        return fail("FI_OFI_RXM_BUFFER_SIZE is less than " + std::to_string(kSmallestBuffer));
    if ((chosen_.quirks & kBoundedQueue) != 0) limits_ = limits_of(*info_);
    if (why = refuses(wishes.peers); !why.empty()) return false;
    most_ = (chosen_.quirks & kBoundedQueue) != 0 ? kSendsPerPeer * universe() : 0;
    monitor_ = needs(FI_MR_LOCAL) ? choose_monitor() : "";
    int error = 0;
    const char* step = "";
    const auto did = [&](const char* what, int result) {
        step = what;
        error = result;
        return result == 0;
    };
    fi_av_attr table{};
    table.type = FI_AV_UNSPEC;
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_MSG;
    completions.wait_obj = (chosen_.quirks & kBlockingRead) != 0 ? FI_WAIT_UNSPEC : FI_WAIT_FD;
    std::size_t length = sizeof address_.bytes;
    const bool made = did("fi_fabric", fi_fabric(info_->fabric_attr, &fabric_, nullptr)) &&
                      did("fi_domain", fi_domain(fabric_, info_, &domain_, nullptr)) &&
                      did("fi_av_open", fi_av_open(domain_, &table, &peers_, nullptr)) &&
                      did("fi_cq_open", fi_cq_open(domain_, &completions, &queue_, nullptr)) &&
                      did("fi_endpoint", fi_endpoint(domain_, info_, &endpoint_, nullptr)) &&
                      did("fi_ep_bind", fi_ep_bind(endpoint_, &peers_->fid, 0)) &&
                      did("fi_ep_bind", fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV)) &&
                      (bound_ = true) && did("fi_enable", fi_enable(endpoint_)) &&
                      did("fi_getname", fi_getname(&endpoint_->fid, address_.bytes, &length));
    if (!made) {
        const bool short_queues = most_ > 0 && error == -FI_EINVAL;
        return fail(std::string(step) + ": " + fi_strerror(-error) +
                    (short_queues ? " (the device's queues may be too short: lower FI_UNIVERSE_SIZE)" : ""));
    }
    if ((chosen_.quirks & kBlockingRead) == 0) {
        waker_ = base::above_stdio(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (waker_ < 0 || fi_control(&queue_->fid, FI_GETWAIT, &descriptor_) != 0) return fail("nothing to sleep on");
    }
    address_.size = static_cast<std::uint32_t>(length);
    buffers_ = std::make_unique_for_overwrite<std::byte[]>(kReceives * largest_message_);
    receives_.resize(kReceives);
    if (needs(FI_MR_LOCAL)) {
        std::byte* const slots = slots_.open();
        receive_memory_ = register_memory(buffers_.get(), kReceives * largest_message_, FI_RECV, kUncached);
        if (slots != nullptr)
            slot_memory_ =
                register_memory(slots, Slots::kCount * Slots::kBytes, FI_SEND | FI_WRITE | FI_READ, kUncached);
        if (receive_memory_ == nullptr || slot_memory_ == nullptr)
            return fail("cannot register memory for messages; raise the limit of locked memory (ulimit -l)");
    }
    std::byte* buffer = buffers_.get();
    for (Receive& receive : receives_) {
        receive.buffer = buffer;
        buffer += largest_message_;
        if (!post(receive)) return fail("cannot post a receive");
        if (!receive.posted) ++unposted_;
    }
    flaw_ = probe_direct(*this);
    choose_registration();
    try_atomics(wishes.atomics || (chosen_.quirks & kHardwareAtomics) != 0);
    try_rows();
    return true;
}

// A provider without atomics may have no functions for them, so its capabilities are tested before the probe.
void Libfabric::try_atomics(bool wanted) {
    if (!wanted)
        atomics_flaw_ = "was opened without atomics";
    else if (!flaw_.empty())
        atomics_flaw_ = flaw_;
    else if ((info_->caps & FI_ATOMIC) == 0)
        atomics_flaw_ = "has no atomics";
    else if (longest_row(RowForm::Fetch, Basic::U64, Op::Sum) == 0 ||
             longest_row(RowForm::Swap, Basic::U64, Op::None) == 0)
        atomics_flaw_ = "has no atomics on words of 64 bits";
    else
        atomics_flaw_ = probe_atomics(*this);
}

void Libfabric::try_rows() {
    rows_flaw_ = atomics_flaw_;
    if (rows_flaw_.empty() && longest_row(RowForm::Fetch, Basic::I64, Op::Sum) > 0) rows_flaw_ = probe_rows(*this);
}

std::uint32_t Libfabric::ipv4() const {
    sockaddr_in address{};
    if (info_->addr_format != FI_SOCKADDR_IN || address_.size < sizeof address) return 0;
    std::memcpy(&address, address_.bytes, sizeof address);
    return address.sin_addr.s_addr;
}

bool Libfabric::insert(const Address& address, PeerId& peer) {
    fi_addr_t number = FI_ADDR_UNSPEC;
    if (fi_av_insert(peers_, address.bytes, 1, &number, 0, nullptr) != 1) return false;
    peer = number;
    return true;
}

}  // namespace osc::fabric

// A provider that cannot be opened gives way to the next one.
namespace {

void (*g_before_end)() = nullptr;

// The loader calls it after the program's exit handlers and destructors, which may use windows, and before it ends
// libfabric, on which this library depends.
__attribute__((destructor)) void at_end() {
    if (g_before_end != nullptr) g_before_end();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) osc::fabric::Endpoint* osc_ofi_open(const osc::fabric::Wishes* wishes,
                                                                                      char* why, std::size_t room) {
    std::string reasons;
    for (osc::fabric::Wishes next = *wishes;;) {
        std::string reason;
        auto endpoint = std::make_unique<osc::fabric::Libfabric>();
        if (endpoint->start(next, reason)) {
            endpoint->set_passed_over(reasons);
            if (wishes->before_end != nullptr) g_before_end = wishes->before_end;
            return endpoint.release();
        }
        const bool none = endpoint->preference() < next.from;
        if (!none || reasons.empty()) reasons += (reasons.empty() ? "" : "; ") + reason;
        if (none) break;
        next.from = endpoint->preference() + 1;
    }
    std::strncpy(why, reasons.c_str(), room - 1);
    why[room - 1] = '\0';
    return nullptr;
}
