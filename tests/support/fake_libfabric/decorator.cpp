// libosc_fake_libfabric.so: preloaded in tests, it stands between libosc and libfabric. It makes calls fail, and adds
// the registration modes of network adapters to a provider that has none, strictly: an operation whose local memory
// lies in no live registration, a remote key of a registration that is not enabled, or a registration of memory that is
// not mapped ends the process with a line.
//
//   FAKE_FI_RANK=r           only in the process with this rank of the launcher's; all if unset
//   FAKE_FI_FAIL=step        this step fails; one of kSteps
//   FAKE_FI_AFTER=n          its first n calls succeed
//   FAKE_FI_ONCE=1           only one call fails
//   FAKE_FI_REGISTRATIONS=n  at most n registrations at a time
//   FAKE_FI_LARGEST=n        registrations of more than n bytes fail
//   FAKE_FI_DEAF=provider    an arriving message wakes no thread that sleeps in this provider
//   FAKE_FI_VERBS=1          tcp;ofi_rxm goes by the name of verbs;ofi_rxm; in all processes
//   FAKE_FI_QUEUE_PAIRS=n    endpoints of the layer below ofi_rxm, as the domain reports
//   FAKE_FI_CACHE=stale      with prov_key: cached registrations outlive the memory
//   FAKE_FI_MODES=a,b        of local (FI_MR_LOCAL), prov_key, endpoint, virt_addr, allocated; in all processes
//
// It changes the outermost objects only: a provider that is built over another one opens the other's objects by the
// same functions.
#include "fake_libfabric/decorator.h"

#include <dlfcn.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace osc::fake_libfabric {
namespace {

template <class Function>
Function* real(const char* name) {
    static void* const library = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);
    void* const found = library != nullptr ? ::dlsym(library, name) : nullptr;
    if (found == nullptr) stop("the real libfabric is not loaded");
    return reinterpret_cast<Function*>(found);
}

// The provider of the domain that was opened last.
std::string& provider() {
    static auto* name = new std::string;
    return *name;
}

// The layer below ofi_rxm goes by another name while the object lives.
class Renamed {
  public:
    Renamed(char*& name, const char* from, const char* to) : name_(name), before_(name) {
        static const bool wanted = !setting("FAKE_FI_VERBS").empty();
        if (!wanted || name == nullptr || std::strncmp(name, from, std::strlen(from)) != 0) return;
        other_ = to + std::string(name + std::strlen(from));
        name_ = other_.data();
    }
    ~Renamed() { name_ = before_; }
    Renamed(const Renamed&) = delete;
    Renamed& operator=(const Renamed&) = delete;
    explicit operator bool() const { return !other_.empty(); }
    /// The name stays when the object ends.
    void keep() {
        if (other_.empty()) return;
        std::free(before_);
        before_ = ::strdup(other_.c_str());
    }

  private:
    char*& name_;
    char* before_;
    std::string other_;
};

Renamed as_tcp(fi_fabric_attr* attributes) {
    return {attributes->prov_name, "verbs", "tcp"};
}

bool is_deaf() {
    return is_here() && !provider().empty() && provider() == setting("FAKE_FI_DEAF");
}

std::size_t size_of(fi_datatype type, std::size_t count) {
    switch (type) {
        case FI_INT8:
        case FI_UINT8:
            return count;
        case FI_INT16:
        case FI_UINT16:
            return 2 * count;
        case FI_INT32:
        case FI_UINT32:
        case FI_FLOAT:
            return 4 * count;
        default:
            return 8 * count;
    }
}

void patch_messages(fi_ops_msg& ops) {
    ops.recv = [](fid_ep* ep, void* buffer, std::size_t bytes, void* memory, fi_addr_t from, void* context) -> ssize_t {
        if (fails("recv")) return -FI_ENOMEM;
        check_local(buffer, bytes, memory, FI_RECV);
        return original(ep->msg).recv(ep, buffer, bytes, nullptr, from, context);
    };
    ops.send = [](fid_ep* ep, const void* buffer, std::size_t bytes, void* memory, fi_addr_t to, void* context) {
        check_local(buffer, bytes, memory, FI_SEND);
        return original(ep->msg).send(ep, buffer, bytes, nullptr, to, context);
    };
}

void patch_accesses(fi_ops_rma& ops) {
    ops.read = [](fid_ep* ep, void* to, std::size_t bytes, void* memory, fi_addr_t from, std::uint64_t address,
                  std::uint64_t key, void* context) {
        check_local(to, bytes, memory, FI_READ);
        return original(ep->rma).read(ep, to, bytes, nullptr, from, address, key, context);
    };
    ops.writemsg = [](fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) {
        check_local(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, message->desc[0], FI_WRITE);
        fi_msg_rma plain = *message;
        plain.desc = nullptr;
        return original(ep->rma).writemsg(ep, &plain, flags);
    };
}

void patch_atomics(fi_ops_atomic& ops) {
    ops.writemsg = [](fid_ep* ep, const fi_msg_atomic* message, std::uint64_t flags) {
        check_local(message->msg_iov[0].addr, size_of(message->datatype, message->msg_iov[0].count), message->desc[0],
                    FI_WRITE);
        fi_msg_atomic plain = *message;
        plain.desc = nullptr;
        return original(ep->atomic).writemsg(ep, &plain, flags);
    };
    ops.readwrite = [](fid_ep* ep, const void* operands, std::size_t count, void* memory, void* before,
                       void* before_memory, fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type,
                       fi_op op, void* context) {
        const std::size_t bytes = size_of(type, count);
        check_local(operands, op == FI_ATOMIC_READ ? 0 : bytes, memory, FI_WRITE);
        check_local(before, bytes, before_memory, FI_READ);
        return original(ep->atomic)
            .readwrite(ep, operands, count, nullptr, before, nullptr, to, address, key, type, op, context);
    };
    ops.compwrite = [](fid_ep* ep, const void* operands, std::size_t count, void* memory, const void* expected,
                       void* expected_memory, void* before, void* before_memory, fi_addr_t to, std::uint64_t address,
                       std::uint64_t key, fi_datatype type, fi_op op, void* context) {
        const std::size_t bytes = size_of(type, count);
        check_local(operands, bytes, memory, FI_WRITE);
        check_local(expected, bytes, expected_memory, FI_WRITE);
        check_local(before, bytes, before_memory, FI_READ);
        return original(ep->atomic)
            .compwrite(ep, operands, count, nullptr, expected, nullptr, before, nullptr, to, address, key, type, op,
                       context);
    };
}

// Providers may set their tables of data functions when the endpoint is enabled.
int control_endpoint(fid* object, int command, void* argument) {
    if (command == FI_ENABLE && fails("enable")) return -FI_ENOMEM;
    const int error = inside([&] { return original(object->ops).control(object, command, argument); });
    auto* const ep = reinterpret_cast<fid_ep*>(object);
    if (command != FI_ENABLE || error != 0) return error;
    patch(ep->msg, patch_messages);
    patch(ep->rma, patch_accesses);
    if (ep->atomic != nullptr) patch(ep->atomic, patch_atomics);
    return 0;
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context) {
    // net opens endpoints of its connections in the same domain.
    if (info->ep_attr->type != FI_EP_RDM) return original(domain->ops).endpoint(domain, info, ep, context);
    if (fails("endpoint")) return -FI_EMFILE;
    const Renamed renamed = as_tcp(info->fabric_attr);
    info->domain_attr->mr_mode &= ~wanted_modes();
    const int error = inside([&] { return original(domain->ops).endpoint(domain, info, ep, context); });
    info->domain_attr->mr_mode |= wanted_modes();
    if (error != 0) return error;
    patch((*ep)->fid.ops, [](fi_ops& ops) {
        ops.control = control_endpoint;
        ops.bind = [](fid* object, fid* other, std::uint64_t flags) {
            return fails("bind") ? -FI_ENOMEM : original(object->ops).bind(object, other, flags);
        };
    });
    patch((*ep)->cm, [](fi_ops_cm& ops) {
        ops.getname = [](fid* object, void* name, std::size_t* bytes) {
            auto* const owner = reinterpret_cast<fid_ep*>(object);
            return fails("name") ? -FI_ENOMEM : original(owner->cm).getname(object, name, bytes);
        };
    });
    return 0;
}

int open_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
    if (fails("cq")) return -FI_EMFILE;
    const int error = inside([&] { return original(domain->ops).cq_open(domain, attributes, queue, context); });
    if (error != 0) return error;
    patch((*queue)->ops, [](fi_ops_cq& ops) {
        ops.sread = [](fid_cq* cq, void* entries, std::size_t most, const void* condition,
                       int milliseconds) -> ssize_t {
            if (!is_deaf()) return original(cq->ops).sread(cq, entries, most, condition, milliseconds);
            ::usleep(static_cast<unsigned>(milliseconds) * 1000);
            return -FI_EAGAIN;
        };
    });
    patch((*queue)->fid.ops, [](fi_ops& ops) {
        ops.control = [](fid* object, int command, void* argument) {
            if (command == FI_GETWAIT && fails("wait")) return -FI_EMFILE;
            if (command == FI_GETWAIT && is_deaf()) {
                *static_cast<int*>(argument) = ::eventfd(0, EFD_CLOEXEC);
                return 0;
            }
            return original(object->ops).control(object, command, argument);
        };
    });
    return 0;
}

int open_table(fid_domain* domain, fi_av_attr* attributes, fid_av** table, void* context) {
    if (fails("av")) return -FI_ENOMEM;
    const int error = inside([&] { return original(domain->ops).av_open(domain, attributes, table, context); });
    if (error != 0) return error;
    patch((*table)->ops, [](fi_ops_av& ops) {
        ops.insert = [](fid_av* av, const void* address, std::size_t count, fi_addr_t* peer, std::uint64_t flags,
                        void* own) {
            return fails("insert") ? -FI_ENOMEM : original(av->ops).insert(av, address, count, peer, flags, own);
        };
    });
    return 0;
}

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
    if (fails("domain")) return -FI_EMFILE;
    provider() = info->fabric_attr->prov_name;
    const Renamed renamed = as_tcp(info->fabric_attr);
    info->domain_attr->mr_mode &= ~wanted_modes();
    const int error = inside([&] { return original(fabric->ops).domain(fabric, info, domain, context); });
    info->domain_attr->mr_mode |= wanted_modes();
    if (error != 0) return error;
    patch((*domain)->ops, [](fi_ops_domain& ops) {
        ops.endpoint = open_endpoint;
        ops.cq_open = open_queue;
        ops.av_open = open_table;
    });
    patch((*domain)->mr, [](fi_ops_mr& ops) { ops.reg = make_registration; });
    return 0;
}

}  // namespace
}  // namespace osc::fake_libfabric

using namespace osc::fake_libfabric;

extern "C" {

__attribute__((visibility("default"))) int fi_getinfo(std::uint32_t version, const char* node, const char* service,
                                                      std::uint64_t flags, const fi_info* hints, fi_info** info) {
    auto* const function = real<decltype(fi_getinfo)>("fi_getinfo");
    if (t_inside) return function(version, node, service, flags, hints, info);
    if (fails("getinfo")) return -FI_ENOMEM;
    if (hints != nullptr && (hints->domain_attr->mr_mode & wanted_modes()) != wanted_modes()) return -FI_ENODATA;
    char* none = nullptr;
    const Renamed renamed(hints != nullptr ? hints->fabric_attr->prov_name : none, "verbs", "tcp");
    const int error = inside([&] { return function(version, node, service, flags, hints, info); });
    const std::string pairs = is_here() ? setting("FAKE_FI_QUEUE_PAIRS") : "";
    for (fi_info* at = error == 0 ? *info : nullptr; at != nullptr; at = at->next) {
        if ((at->domain_attr->mr_mode & wanted_modes()) != 0) stop("the provider has the mode already");
        at->domain_attr->mr_mode |= wanted_modes();
        if (at->ep_attr->type == FI_EP_MSG && !pairs.empty()) at->domain_attr->ep_cnt = std::stoul(pairs);
        if (renamed) Renamed(at->fabric_attr->prov_name, "tcp", "verbs").keep();
    }
    return error;
}

__attribute__((visibility("default"))) int fi_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
    auto* const function = real<decltype(fi_fabric)>("fi_fabric");
    if (t_inside) return function(attributes, fabric, context);
    if (fails("fabric")) return -FI_ENOMEM;
    const Renamed renamed = as_tcp(attributes);
    const int error = inside([&] { return function(attributes, fabric, context); });
    if (error == 0) patch((*fabric)->ops, [](fi_ops_fabric& ops) { ops.domain = open_domain; });
    return error;
}

}  // extern "C"
