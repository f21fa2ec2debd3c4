// The probe of direct accesses.
#include "transport/ofi/probe.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace osc::ofi {
namespace {

constexpr std::size_t kBytes = 16384;

struct Ignored final : Receiver {
    void received(std::byte*, std::size_t) override {}
};

struct Access {
    Operation operation;  // first
    bool ended = false;
    int error = 0;
};

struct Probe {
    Access access;
    std::byte here[kBytes];
    std::byte there[kBytes];
};

// The provider may use it after a probe that failed: it is kept for ever then.
void keep(std::unique_ptr<Probe> probe) {
    static auto* kept = new std::vector<std::unique_ptr<Probe>>;
    kept->push_back(std::move(probe));
}

// Posts by `post` and polls until it has ended; 0 or an error.
template <class Post>
int end(Endpoint& endpoint, Access& access, Post&& post) {
    using Clock = std::chrono::steady_clock;
    access = {};
    access.operation.ended = [](Operation& operation, int error) {
        auto& ended = reinterpret_cast<Access&>(operation);
        ended.error = error;
        ended.ended = true;
    };
    Ignored ignored;
    Posted posted = Posted::Again;
    for (const Clock::time_point until = Clock::now() + std::chrono::seconds(1); !access.ended;) {
        if (posted == Posted::Again) posted = post();
        if (posted == Posted::Failed) return EIO;
        endpoint.poll(ignored);
        if (Clock::now() > until) return ETIMEDOUT;
    }
    return access.error;
}

void fill(std::byte* bytes, unsigned seed) {
    for (std::size_t i = 0; i < kBytes; ++i)
        bytes[i] = static_cast<std::byte>((i * 31 + seed) >> (i % 5));
}

}  // namespace

void probe_direct(Endpoint& endpoint, std::string& flaw) {
    auto probe = std::make_unique<Probe>();
    PeerId self = 0;
    Exposed exposed;
    if (!endpoint.insert(endpoint.address(), self) || !endpoint.expose(probe->there, kBytes, exposed)) {
        flaw = "no memory can be registered";
        return;
    }
    const auto failed = [&](const char* what) {
        flaw = what;
        keep(std::move(probe));
    };
    fill(probe->here, 1);
    std::memset(probe->there, 0, kBytes);
    const int wrote = end(endpoint, probe->access, [&] {
        return endpoint.write(self, probe->here, kBytes, exposed.base, exposed.key, probe->access.operation);
    });
    if (wrote != 0) return failed("a write does not end well");
    if (std::memcmp(probe->here, probe->there, kBytes) != 0) return failed("a write ends before its data is there");
    fill(probe->there, 2);
    const int read = end(endpoint, probe->access, [&] {
        return endpoint.read(self, probe->here, kBytes, exposed.base, exposed.key, probe->access.operation);
    });
    if (read != 0) return failed("a read does not end well");
    if (std::memcmp(probe->here, probe->there, kBytes) != 0) return failed("a read brings other bytes");
    endpoint.revoke(exposed);
}

}  // namespace osc::ofi
