// The probes of direct accesses and of atomics.
#include "transport/fabric/probe.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace osc::fabric {
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

struct AtomicProbe {
    Access access;
    Atomic what;
    std::uint64_t words[2] = {};
};

// The provider may still use the probe's memory after a failure, so it is never freed then.
template <class P>
void keep(std::unique_ptr<P> probe) {
    static auto* kept = new std::vector<std::unique_ptr<P>>;
    kept->push_back(std::move(probe));
}

// Of the calling thread: on a loaded machine it may not run for seconds.
std::int64_t processor_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// Calls post() and polls until the operation has ended; 0 or an error.
template <class Post>
int end(Endpoint& endpoint, Access& access, Post&& post) {
    constexpr std::int64_t kPatience = 1000000000;
    access = {};
    access.operation.ended = [](Operation& operation, int error) {
        auto& ended = reinterpret_cast<Access&>(operation);
        ended.error = error;
        ended.ended = true;
    };
    Ignored ignored;
    Posted posted = Posted::Again;
    for (const std::int64_t until = processor_ns() + kPatience; !access.ended;) {
        if (posted == Posted::Again) posted = post();
        if (posted == Posted::Failed || posted == Posted::NoMemory) return EIO;
        endpoint.poll(ignored);
        if (processor_ns() > until) return ETIMEDOUT;
    }
    return access.error;
}

/// A row between two words that no atomic may change.
struct RowProbe {
    static constexpr std::size_t kCount = 3;
    explicit RowProbe(RowForm form) : row(form, Basic::I64, Op::Sum, kCount, sizeof(std::int64_t)) {}

    Access access;
    AtomicRow row;
    std::int64_t words[kCount + 2] = {};
};

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

void probe_atomics(Endpoint& endpoint, std::string& flaw) {
    auto probe = std::make_unique<AtomicProbe>();
    PeerId self = 0;
    Exposed exposed;
    if (!endpoint.insert(endpoint.address(), self) || !endpoint.expose(probe->words, sizeof probe->words, exposed)) {
        flaw = "no memory can be registered";
        return;
    }
    using fabric::AtomicKind;
    constexpr std::uint64_t kHigh = std::uint64_t{1} << 63;
    // All steps use the second word; each step's result is the next one's start value.
    const struct {
        Atomic what;
        std::uint64_t after;
    } steps[] = {
        {{AtomicKind::Add, kHigh + 5, 0, 0}, kHigh + 5},
        {{AtomicKind::Swap, 7, 5, kHigh + 5}, kHigh + 5},
        {{AtomicKind::Swap, 7, kHigh + 5, kHigh + 5}, 7},
        {{AtomicKind::Add, ~std::uint64_t{0}, 0, 7}, 6},
    };
    for (const auto& step : steps) {
        probe->what = step.what;
        probe->what.before = ~step.what.before;
        const int error = end(endpoint, probe->access, [&] {
            return endpoint.atomic(self, probe->what, exposed.base + sizeof probe->words[0], exposed.key,
                                   probe->access.operation);
        });
        if (error != 0)
            flaw = "an atomic does not end well";
        else if (probe->what.before != step.what.before || probe->words[0] != 0 || probe->words[1] != step.after)
            flaw = "an atomic does not do what it should";
        if (!flaw.empty()) return keep(std::move(probe));
    }
    endpoint.revoke(exposed);
}

void probe_rows(Endpoint& endpoint, std::string& flaw) {
    for (const RowForm form : {RowForm::Update, RowForm::Fetch, RowForm::Swap}) {
        auto probe = std::make_unique<RowProbe>(form);
        AtomicRow& row = probe->row;
        PeerId self = 0;
        Exposed exposed;
        if (endpoint.longest_row(form, row.type, row.op) < row.count) {
            flaw = "has no atomics on rows of words";
            return;
        }
        if (!endpoint.insert(endpoint.address(), self) ||
            !endpoint.expose(probe->words, sizeof probe->words, exposed)) {
            flaw = "no memory can be registered";
            return;
        }
        std::int64_t after[RowProbe::kCount + 2];
        for (std::size_t i = 0; i < std::size(after); ++i) {
            const auto number = static_cast<std::int64_t>(i);
            probe->words[i] = after[i] = 1000 - 300 * number;
            if (i == 0 || i > RowProbe::kCount) continue;
            const std::int64_t operand = -7 * number;
            // The middle element is not as expected, and Swap leaves it.
            const bool differs = form == RowForm::Swap && i == 2;
            const std::int64_t expected = after[i] + (differs ? 1 : 0);
            const std::size_t at = (i - 1) * sizeof operand;
            std::memcpy(row.operands() + at, &operand, sizeof operand);
            if (form == RowForm::Swap) std::memcpy(row.expected() + at, &expected, sizeof expected);
            after[i] = form != RowForm::Swap ? after[i] + operand : differs ? after[i] : operand;
        }
        std::int64_t before[RowProbe::kCount];
        std::memcpy(before, probe->words + 1, sizeof before);
        const int error = end(endpoint, probe->access, [&] {
            return endpoint.update(self, row, exposed.base + sizeof probe->words[0], exposed.key,
                                   probe->access.operation);
        });
        if (error != 0)
            flaw = "an atomic on a row does not end well";
        else if (std::memcmp(probe->words, after, sizeof after) != 0 ||
                 (form != RowForm::Update && std::memcmp(row.before(), before, sizeof before) != 0))
            flaw = "an atomic on a row does not do what it should";
        if (!flaw.empty()) return keep(std::move(probe));
        endpoint.revoke(exposed);
    }
}

}  // namespace osc::fabric
