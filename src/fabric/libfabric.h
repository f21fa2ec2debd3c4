// The endpoint over libfabric (libosc_ofi.so).
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fabric/adapters.h"
#include "fabric/choose.h"
#include "fabric/endpoint.h"
#include "fabric/slots.h"

namespace osc::fabric {

inline constexpr int kReceives = 64;  // posted receive buffers
static_assert(sizeof(fi_context2) == sizeof(Operation::provider));

/// A flag of fi_mr_reg: the registration ends when it is closed. Without it a provider that registers slowly keeps the
/// registration in its cache. OFI_MR_NOCACHE of libfabric's ofi_util.h, from 1.9 to 2.6.
inline constexpr std::uint64_t kUncached = std::uint64_t{1} << 60;

/// Endpoint over libfabric; most of its functions are that interface's. fabric.cpp opens and closes the endpoint,
/// registrations.cpp registers memory, posts.cpp posts operations,
/// completions.cpp receives messages and ends operations.
class Libfabric final : public Endpoint {
  public:
    ~Libfabric() override;
    bool start(const Wishes& wishes, std::string& why);

    const Address& address() const override { return address_; }
    const char* provider() const override { return info_->fabric_attr->prov_name; }
    int preference() const override { return preference_; }
    const char* passed_over() const override { return passed_over_.c_str(); }
    void set_passed_over(const std::string& reasons) { passed_over_ = reasons; }
    std::string adapter() const override { return adapter_of(*info_).name; }
    std::string refuses(std::uint32_t peers) const override {
        const std::string why = too_few_queue_pairs(adapter(), limits_.queue_pairs, peers);
        return why.empty() ? why : std::string(provider()) + ": " + why;
    }
    std::uint32_t ipv4() const override;
    bool insert(const Address& address, PeerId& peer) override;
    Posted send(PeerId peer, const void* message, std::size_t bytes, Operation& operation) override;
    Posted send_copied(PeerId peer, const void* message, std::size_t bytes) override;
    // Copies have no end that would count them out of in_flight_.
    std::size_t largest_copied() const override { return most_ > 0 ? 0 : info_->tx_attr->inject_size; }
    Posted write(PeerId peer, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                 Operation& operation) override;
    Posted read(PeerId peer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                Operation& operation) override;
    std::size_t longest_row(RowForm form, Basic type, Op op) const override;
    Posted update(PeerId peer, AtomicRow& row, std::uint64_t address, std::uint64_t key, Operation& operation) override;
    bool has_hardware_atomics() const override {
        return (chosen_.quirks & kHardwareAtomics) != 0 && atomics_flaw_.empty();
    }
    std::size_t largest_message() const override { return largest_message_; }
    bool needs_target() const override { return (chosen_.quirks & kMovesByItself) == 0; }
    std::size_t largest_transfer() const override { return info_->ep_attr->max_msg_size; }
    std::size_t direct_from() const override { return chosen_.direct; }
    const char* flaw() const override { return flaw_.c_str(); }
    const char* atomics_flaw() const override { return atomics_flaw_.c_str(); }
    void* pin(void* base, std::size_t bytes) override;
    std::string registration() const override;
    bool expose(void* base, std::size_t bytes, Exposed& exposed) override;
    void revoke(Exposed& exposed) override;
    int poll(Receiver& receiver) override;
    int sleep(int milliseconds, Receiver& receiver) override;
    void wake() override;
    bool watch(int timer) override;
    bool may_sleep() override;
    void ignore_events() override;
    bool await(int milliseconds) override;

  private:
    struct Receive {
        Operation operation;  // first: completions give its address
        std::byte* buffer = nullptr;
        bool posted = false;
    };

    bool needs(std::uint64_t mode) const { return (info_->domain_attr->mr_mode & mode) != 0; }
    // Closes the registrations that revoke() has left to the polling thread; see kUnlockedClose.
    void close_revoked();
    fid_mr* register_memory(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t flags);
    fid_mr* register_locked(const void* base, std::size_t bytes, std::uint64_t access, std::uint64_t flags);
    // Decides how the local memory of accesses is registered; after the probe of direct accesses.
    void choose_registration();
    bool proves_cache_again();

    // The local memory of an operation as the provider uses it.
    struct Local {
        std::byte* memory;
        void* description = nullptr;
    };
    // Makes room for an operation, and its memory usable, until release(): short memory by a slot, into which it is
    // copied if `results.sent`; longer memory by a registration.
    Posted local(void* memory, std::size_t bytes, const Results& results, Operation& operation, Local& used) {
        if (most_ > 0 && in_flight_.load(std::memory_order_relaxed) >= most_) return Posted::Again;
        used.memory = static_cast<std::byte*>(memory);
        operation.registration = nullptr;
        operation.slot = -1;
        return needs(FI_MR_LOCAL) ? make_local(bytes, results, operation, used) : Posted::Yes;
    }
    Posted make_local(std::size_t bytes, const Results& results, Operation& operation, Local& used);
    // The operation has ended, with `error`, or was not posted.
    void release(Operation& operation, int error) {
        if (operation.slot >= 0) slots_.give_back(operation.slot, error == 0);
        if (operation.registration != nullptr) unregister_local(operation);
    }
    void unregister_local(Operation& operation);
    Posted began(Operation& operation, ssize_t result);
    bool post(Receive& receive);
    bool listen(std::uint32_t events);
    void try_atomics(bool wanted);
    void try_rows();
    int process(const fi_cq_msg_entry* entries, ssize_t count, Receiver& receiver);
    int process_error();

    fi_info* info_ = nullptr;
    Provider chosen_{};
    std::size_t largest_message_ = kLargestMessage;
    int preference_ = -1;  // none is chosen
    std::string passed_over_;
    Limits limits_;
    std::string flaw_;  // see Endpoint::flaw()
    std::string atomics_flaw_;
    std::string rows_flaw_;  // of atomics on rows of elements
    bool bound_ = false;   // else the endpoint and what it uses stays: fi_close of ofi_rxm 1.17 crashes without a queue
    int descriptor_ = -1;  // of the completion queue: readable when it has entries
    int waker_ = -1;       // an eventfd, for wake()
    int watched_ = -1;     // an epoll set, for await(): descriptor_, waker_ and the caller's timer
    bool ignores_events_ = false;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* peers_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_ep* endpoint_ = nullptr;
    fid_mr* receive_memory_ = nullptr;
    fid_mr* slot_memory_ = nullptr;
    Slots slots_;
    Address address_;
    std::unique_ptr<std::byte[]> buffers_;
    std::vector<Receive> receives_;
    int unposted_ = 0;
    std::mutex registrations_;      // held while one is made or closed
    std::vector<fid_mr*> revoked_;  // under registrations_
    std::vector<fid_mr*> pinned_;   // under registrations_
    const char* monitor_ = "";      // see choose_monitor()
    std::string cache_flaw_;  // why registrations do not use libfabric's cache; under registrations_ after start()
    std::atomic<std::uint64_t> local_flags_{0};  // of registrations of local memory
    std::atomic<bool> has_revoked_{false};
    int locals_ = 0;  // registrations of operations in flight; under registrations_
    int most_ = 0;    // operations in flight that the completion queue has room for; 0: any number
    std::atomic<int> in_flight_{0};
};

}  // namespace osc::fabric
