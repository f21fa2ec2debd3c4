// libosc_ofi.so: the endpoint over libfabric. Owns the fabric objects, the receive buffers and the registrations.
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/ofi/choose.h"
#include "transport/ofi/probe.h"

namespace osc::ofi {
namespace {

constexpr int kReceives = 64;  // buffers that wait for messages
static_assert(sizeof(fi_context2) == sizeof(Operation::provider));

std::uint64_t random_key() {
    std::uint64_t key = 0;
    while (key == 0)
        if (::getrandom(&key, sizeof key, 0) != sizeof key) key = 0;
    return key;
}

Posted posted(ssize_t result) {
    if (result == 0) return Posted::Yes;
    return result == -FI_EAGAIN ? Posted::Again : Posted::Failed;
}

class Libfabric final : public Endpoint {
  public:
    ~Libfabric() override;
    bool start(const Wishes& wishes, std::string& why);

    const Address& address() const override { return address_; }
    const char* provider() const override { return info_->fabric_attr->prov_name; }
    std::uint32_t ipv4() const override;
    bool insert(const Address& address, PeerId& peer) override;
    Posted send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) override;
    Posted send_copied(PeerId peer, const void* message, std::size_t bytes) override;
    std::size_t largest_copied() const override { return info_->tx_attr->inject_size; }
    Posted write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                 Operation& operation) override;
    Posted deposit(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                   Operation* operation) override;
    bool prefers_deposits() const override { return deposits_ && flaw_.empty(); }
    bool settled() const override { return posting_.load(std::memory_order_acquire) == 0; }
    Posted read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                Operation& operation) override;
    Posted atomic(PeerId peer, Atomic& what, std::uint64_t address, std::uint64_t key, Operation& operation) override;
    std::size_t largest_transfer() const override { return info_->ep_attr->max_msg_size; }
    std::size_t direct_from() const override { return chosen_.direct; }
    const char* flaw() const override { return flaw_.c_str(); }
    const char* atomics_flaw() const override { return atomics_flaw_.c_str(); }
    bool expose(void* base, std::size_t bytes, Exposed& exposed) override;
    void revoke(Exposed& exposed) override;
    int poll(Receiver& receiver) override;
    int sleep(int milliseconds, Receiver& receiver) override;
    void wake() override;

  private:
    struct Receive {
        Operation operation;  // first: completions give its address
        std::byte* buffer = nullptr;
        bool posted = false;
    };

    bool needs(std::uint64_t mode) const { return (info_->domain_attr->mr_mode & mode) != 0; }
    fid_mr* register_memory(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t key);
    bool local(const void* base, std::size_t bytes, Operation& operation, void*& description);
    void release(Operation& operation);
    Posted write_flagged(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                         Operation& operation, std::uint64_t flags);
    bool post(Receive& receive);
    void try_atomics(bool wanted);
    int count_writes();
    int took(const fi_cq_msg_entry* entries, ssize_t count, Receiver& receiver);
    int took_error(Receiver& receiver);

    fi_info* info_ = nullptr;
    Provider chosen_{};
    std::string flaw_;  // of direct accesses, as far as the probe has found one
    std::string atomics_flaw_;
    bool deposits_ = false;
    int descriptor_ = -1;  // readable when something has come
    int waker_ = -1;       // an eventfd, for wake()
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* peers_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_cntr* writes_ = nullptr;  // see count_writes()
    fid_ep* endpoint_ = nullptr;
    fid_mr* receive_memory_ = nullptr;
    Address address_;
    std::unique_ptr<std::byte[]> buffers_;
    std::vector<Receive> receives_;
    int unposted_ = 0;
    std::atomic<int> posting_{0};  // threads in a function that posts
};

class Posting {
  public:
    explicit Posting(std::atomic<int>& threads) : threads_(threads) {
        threads_.fetch_add(1, std::memory_order_seq_cst);
        // Read back: on weak memory too, the provider's plain stores come after the sign only then. A fence would say
        // it as well, but the thread sanitizer does not know fences.
        static_cast<void>(threads_.load(std::memory_order_seq_cst));
    }
    ~Posting() { threads_.fetch_sub(1, std::memory_order_release); }
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;

  private:
    std::atomic<int>& threads_;
};

void close(fid* object) {
    if (object != nullptr) fi_close(object);
}

Libfabric::~Libfabric() {
    close(endpoint_ != nullptr ? &endpoint_->fid : nullptr);
    close(receive_memory_ != nullptr ? &receive_memory_->fid : nullptr);
    close(writes_ != nullptr ? &writes_->fid : nullptr);
    close(queue_ != nullptr ? &queue_->fid : nullptr);
    close(peers_ != nullptr ? &peers_->fid : nullptr);
    close(domain_ != nullptr ? &domain_->fid : nullptr);
    close(fabric_ != nullptr ? &fabric_->fid : nullptr);
    if (info_ != nullptr) fi_freeinfo(info_);
    if (waker_ >= 0) ::close(waker_);
}

bool Libfabric::start(const Wishes& wishes, std::string& why) {
    info_ = choose(wishes, chosen_, why);
    if (info_ == nullptr) return false;
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
                      did("fi_cntr_open", count_writes()) && did("fi_enable", fi_enable(endpoint_)) &&
                      did("fi_getname", fi_getname(&endpoint_->fid, address_.bytes, &length));
    if (!made) {
        why = std::string(provider()) + ": " + step + ": " + fi_strerror(-error);
        return false;
    }
    if ((chosen_.quirks & kBlockingRead) == 0) {
        waker_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (waker_ < 0 || fi_control(&queue_->fid, FI_GETWAIT, &descriptor_) != 0) {
            why = std::string(provider()) + ": nothing to sleep on";
            return false;
        }
    }
    address_.size = static_cast<std::uint32_t>(length);
    buffers_ = std::make_unique_for_overwrite<std::byte[]>(kReceives * kLargestMessage);
    receives_.resize(kReceives);
    if (needs(FI_MR_LOCAL)) {
        receive_memory_ = register_memory(buffers_.get(), kReceives * kLargestMessage, FI_RECV, random_key());
        if (receive_memory_ == nullptr) {
            why = std::string(provider()) + ": cannot register the receive buffers";
            return false;
        }
    }
    for (int i = 0; i < kReceives; ++i) {
        receives_[static_cast<std::size_t>(i)].buffer = buffers_.get() + static_cast<std::size_t>(i) * kLargestMessage;
        if (!post(receives_[static_cast<std::size_t>(i)])) {
            why = std::string(provider()) + ": cannot post a receive";
            return false;
        }
    }
    deposits_ = (chosen_.quirks & kDeposits) != 0 && !wishes.pieces && FI_VERSION_LT(fi_version(), FI_VERSION(1, 18));
    probe_direct(*this, flaw_);
    try_atomics(wishes.atomics);
    return true;
}

// An injected write that fails crashes ofi_rxm over tcp of libfabric 1.17: tcp reports the failure as an operation
// without context, and ofi_rxm reads its state through that context. A peer that dies while such a write is queued
// suffices. With a counter of writes bound to the endpoint, ofi_rxm gives each injected write a buffer of its own as
// context, and no completion to its caller.
int Libfabric::count_writes() {
    if ((chosen_.quirks & kDeposits) == 0) return 0;
    fi_cntr_attr attributes{};
    attributes.events = FI_CNTR_EVENTS_COMP;
    attributes.wait_obj = FI_WAIT_NONE;
    const int error = fi_cntr_open(domain_, &attributes, &writes_, nullptr);
    return error != 0 ? error : fi_ep_bind(endpoint_, &writes_->fid, FI_WRITE);
}

// What the provider says is asked first: one without atomics may have no function for them.
void Libfabric::try_atomics(bool wanted) {
    std::size_t most = 0;
    if (!wanted)
        atomics_flaw_ = "was opened without atomics";
    else if (!flaw_.empty())
        atomics_flaw_ = flaw_;
    else if ((info_->caps & FI_ATOMIC) == 0)
        atomics_flaw_ = "has no atomics";
    else if (fi_fetch_atomicvalid(endpoint_, FI_UINT64, FI_SUM, &most) != 0 || most == 0 ||
             fi_compare_atomicvalid(endpoint_, FI_UINT64, FI_CSWAP, &most) != 0 || most == 0)
        atomics_flaw_ = "has no atomics on words of 64 bits";
    else
        probe_atomics(*this, atomics_flaw_);
}

fid_mr* Libfabric::register_memory(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t key) {
    fid_mr* memory = nullptr;
    if (fi_mr_reg(domain_, base, bytes, access, 0, key, 0, &memory, nullptr) != 0) return nullptr;
    if (!needs(FI_MR_ENDPOINT)) return memory;
    if (fi_mr_bind(memory, &endpoint_->fid, 0) == 0 && fi_mr_enable(memory) == 0) return memory;
    fi_close(&memory->fid);
    return nullptr;
}

// Local memory of a transfer, registered for as long as that lasts where the provider asks for it.
bool Libfabric::local(const void* base, std::size_t bytes, Operation& operation, void*& description) {
    description = nullptr;
    operation.registration = nullptr;
    if (!needs(FI_MR_LOCAL)) return true;
    fid_mr* memory = register_memory(base, bytes, FI_SEND | FI_WRITE | FI_READ, random_key());
    if (memory == nullptr) return false;
    operation.registration = memory;
    description = fi_mr_desc(memory);
    return true;
}

void Libfabric::release(Operation& operation) {
    if (operation.registration == nullptr) return;
    fi_close(&static_cast<fid_mr*>(operation.registration)->fid);
    operation.registration = nullptr;
}

bool Libfabric::post(Receive& receive) {
    const ssize_t result =
        fi_recv(endpoint_, receive.buffer, kLargestMessage,
                receive_memory_ != nullptr ? fi_mr_desc(receive_memory_) : nullptr, FI_ADDR_UNSPEC, &receive.operation);
    receive.posted = result == 0;
    return receive.posted || result == -FI_EAGAIN;
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

Posted Libfabric::send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) {
    void* description = nullptr;
    if (!local(message, bytes, operation, description)) return Posted::Failed;
    const Posting now(posting_);
    const Posted result = posted(fi_send(endpoint_, message, bytes, description, peer, &operation));
    if (result != Posted::Yes) release(operation);
    return result;
}

Posted Libfabric::send_copied(PeerId peer, const void* message, std::size_t bytes) {
    const Posting now(posting_);
    return posted(fi_inject(endpoint_, message, bytes, peer));
}

Posted Libfabric::write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                        Operation& operation) {
    return write_flagged(peer, from, bytes, address, key, operation, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

Posted Libfabric::deposit(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                          Operation* operation) {
    if (operation != nullptr) return write_flagged(peer, from, bytes, address, key, *operation, FI_COMPLETION);
    const Posting now(posting_);
    return posted(fi_inject_write(endpoint_, from, bytes, peer, address, key));
}

Posted Libfabric::write_flagged(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address,
                                std::uint64_t key, Operation& operation, std::uint64_t flags) {
    void* description = nullptr;
    if (!local(from, bytes, operation, description)) return Posted::Failed;
    iovec here{const_cast<void*>(from), bytes};
    fi_rma_iov there{address, bytes, key};
    fi_msg_rma message{};
    message.msg_iov = &here;
    message.desc = &description;
    message.iov_count = 1;
    message.addr = peer;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.context = &operation;
    const Posting now(posting_);
    const Posted result = posted(fi_writemsg(endpoint_, &message, flags));
    if (result != Posted::Yes) release(operation);
    return result;
}

Posted Libfabric::read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                       Operation& operation) {
    void* description = nullptr;
    if (!local(to, bytes, operation, description)) return Posted::Failed;
    const Posting now(posting_);
    const Posted result = posted(fi_read(endpoint_, to, bytes, description, peer, address, key, &operation));
    if (result != Posted::Yes) release(operation);
    return result;
}

Posted Libfabric::atomic(PeerId peer, Atomic& what, std::uint64_t address, std::uint64_t key, Operation& operation) {
    void* description = nullptr;
    if (!local(&what, sizeof what, operation, description)) return Posted::Failed;
    const bool adds = what.kind == Atomic::Kind::Add;
    const Posting now(posting_);
    const Posted result = posted(adds ? fi_fetch_atomic(endpoint_, &what.operand, 1, description, &what.before,
                                                        description, peer, address, key, FI_UINT64, FI_SUM, &operation)
                                      : fi_compare_atomic(endpoint_, &what.operand, 1, description, &what.expected,
                                                          description, &what.before, description, peer, address, key,
                                                          FI_UINT64, FI_CSWAP, &operation));
    if (result != Posted::Yes) release(operation);
    return result;
}

bool Libfabric::expose(void* base, std::size_t bytes, Exposed& exposed) {
    if (!flaw_.empty()) return false;
    // A random key may be in use already, which the provider then refuses.
    for (int attempt = 0; attempt < 4; ++attempt) {
        fid_mr* memory = register_memory(base, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, random_key());
        if (memory == nullptr) continue;
        exposed.registration = memory;
        exposed.key = fi_mr_key(memory);
        exposed.base = needs(FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uint64_t>(base) : 0;
        return true;
    }
    return false;
}

void Libfabric::revoke(Exposed& exposed) {
    if (exposed.registration != nullptr) fi_close(&static_cast<fid_mr*>(exposed.registration)->fid);
    exposed = {};
}

int Libfabric::took(const fi_cq_msg_entry* entries, ssize_t count, Receiver& receiver) {
    for (ssize_t i = 0; i < count; ++i) {
        const fi_cq_msg_entry& entry = entries[i];
        auto* operation = static_cast<Operation*>(entry.op_context);
        if ((entry.flags & FI_RECV) != 0) {
            auto& receive = *reinterpret_cast<Receive*>(operation);
            receiver.received(receive.buffer, entry.len);
            receive.posted = false;
            if (!post(receive) || !receive.posted) ++unposted_;
        } else if (operation != nullptr) {
            release(*operation);
            operation->ended(*operation, 0);
        }
    }
    return static_cast<int>(count);
}

int Libfabric::took_error(Receiver&) {
    fi_cq_err_entry failure{};
    if (fi_cq_readerr(queue_, &failure, 0) <= 0) return 0;
    auto* operation = static_cast<Operation*>(failure.op_context);
    if (operation == nullptr) return 1;
    if ((failure.flags & FI_RECV) != 0) {
        auto& receive = *reinterpret_cast<Receive*>(operation);
        receive.posted = false;
        // A message that was too long, or that lost its sender, has cost nothing but its buffer, which is given again.
        if (failure.err == FI_ECANCELED || !post(receive) || !receive.posted) ++unposted_;
        return 1;
    }
    release(*operation);
    operation->ended(*operation, failure.err != 0 ? failure.err : FI_EIO);
    return 1;
}

int Libfabric::poll(Receiver& receiver) {
    if (unposted_ > 0)
        for (Receive& receive : receives_)
            if (!receive.posted && post(receive) && receive.posted) --unposted_;
    fi_cq_msg_entry entries[16];
    const ssize_t count = fi_cq_read(queue_, entries, std::size(entries));
    if (count > 0) return took(entries, count, receiver);
    return count == -FI_EAVAIL ? took_error(receiver) : 0;
}

void Libfabric::wake() {
    if (waker_ < 0) {
        fi_cq_signal(queue_);
        return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(waker_, &one, sizeof one);  // fails only when it is set already
}

int Libfabric::sleep(int milliseconds, Receiver& receiver) {
    int stirred = 0;
    if (waker_ >= 0) {
        fid* queue = &queue_->fid;
        if (fi_trywait(fabric_, &queue, 1) == 0 && !receiver.landed()) {
            pollfd both[] = {{descriptor_, POLLIN, 0}, {waker_, POLLIN, 0}};
            ::poll(both, 2, milliseconds);
            std::uint64_t count = 0;
            stirred = both[0].revents != 0 ? 1 : 0;
            if (both[1].revents != 0 && ::read(waker_, &count, sizeof count) < 0) return 0;
        }
        return std::max(poll(receiver), stirred);
    }
    fi_cq_msg_entry entry{};
    const ssize_t count = fi_cq_sread(queue_, &entry, 1, nullptr, milliseconds);
    if (count > 0) return took(&entry, count, receiver);
    return count == -FI_EAVAIL ? took_error(receiver) : 0;
}

}  // namespace
}  // namespace osc::ofi

extern "C" __attribute__((visibility("default"))) osc::ofi::Endpoint* osc_ofi_open(const osc::ofi::Wishes* wishes,
                                                                                   char* why, std::size_t room) {
    std::string text;
    auto endpoint = std::make_unique<osc::ofi::Libfabric>();
    if (endpoint->start(*wishes, text)) return endpoint.release();
    std::strncpy(why, text.c_str(), room - 1);
    why[room - 1] = '\0';
    return nullptr;
}
