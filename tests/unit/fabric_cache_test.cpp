// Registrations of transfers after UCX was loaded into a process whose endpoint is open: its hooks silence those of
// libfabric, so the cache is proven again, and not used if that fails. libosc_fake_libfabric.so makes libfabric's
// provider over TCP one with registrations.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fabric/endpoint.h"
#include "fabric/probe.h"
#include "real_provider.h"

namespace osc::test {
namespace {

class Network {
  public:
    Network(const char* modes, const char* cache) {
        ::setenv("FAKE_FI_MODES", modes, 1);
        ::setenv("FAKE_FI_CACHE", cache, 1);
        std::string why;
        endpoint_.reset(fabric::open({"tcp;ofi_rxm", "", true, false}, why));
        if (endpoint_ == nullptr) end_case(kSkipped, why);
        registration_ = endpoint_->registration();
        // malloc may not give the heap back: then the endpoint had no proof to begin with.
        if (registration_.rfind("cached, by libfabric's hooks", 0) != 0) end_case(kSkipped, registration_);
    }

    static constexpr int kRight = 0, kWrong = 1, kSkipped = 77;
    [[noreturn]] static void end_case(int code, const std::string& text) {
        std::fprintf(stderr, "%s\n", text.c_str());
        ::_exit(code);
    }

    static void load(const char* library) {
        const std::string path = std::string(OSC_LATE_LIBRARIES) + "/" + library;
        if (::dlopen(path.c_str(), RTLD_NOW) == nullptr) end_case(kWrong, ::dlerror());
    }

    // A write that is too long for a registered slot arrives, whatever the registrations do.
    void write() {
        std::vector<char> from(100000, 'a');
        std::vector<char> to(from.size(), 'b');
        fabric::PeerId self = 0;
        fabric::Exposed exposed;
        if (!endpoint_->insert(endpoint_->address(), self) || !endpoint_->expose(to.data(), to.size(), exposed))
            end_case(kWrong, "no memory can be registered");
        const int error = perform(*endpoint_, [&](fabric::Operation& operation) {
            return endpoint_->write(self, from.data(), from.size(), exposed.base, exposed.key, operation);
        });
        endpoint_->revoke(exposed);
        if (error != 0) end_case(kWrong, "a write does not end well");
        if (from != to) end_case(kWrong, "a write brings other bytes");
    }

    // Ends the case; right if registrations are now made so.
    [[noreturn]] void expect(const std::string& wanted) {
        const std::string found = endpoint_->registration();
        end_case(found == wanted ? kRight : kWrong, found);
    }
    [[noreturn]] void expect_cached() { expect(registration_); }

  private:
    std::unique_ptr<fabric::Endpoint> endpoint_;
    std::string registration_;
};

// The proof is made once in a process, so each case has a process of its own.
#ifdef __SANITIZE_ADDRESS__
#define OSC_CASE(body) GTEST_SKIP() << "its malloc gives no memory back"
#else
#define OSC_CASE(body)                                      \
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; \
    EXPECT_EXIT(body, right_or_skipped, "");                \
    if (g_skipped) GTEST_SKIP() << "the cache of registrations cannot be proven here"
#endif

[[maybe_unused]] bool g_skipped = false;

[[maybe_unused]] bool right_or_skipped(int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : Network::kWrong;
    g_skipped = code == Network::kSkipped;
    return code == Network::kRight || g_skipped;
}

constexpr const char* kStrict = "local,prov_key";

[[noreturn]] [[maybe_unused]] void load_and_write(const char* modes, const char* cache, const char* library,
                                                  const std::string& wanted) {
    Network network(modes, cache);
    network.write();
    Network::load(library);
    network.write();
    network.write();
    if (wanted.empty()) network.expect_cached();
    network.expect(wanted);
}

TEST(FabricCache, ACacheThatStillFollowsTheMemoryIsUsed) {
    OSC_CASE(load_and_write(kStrict, "", "libucm.so", ""));
}

TEST(FabricCache, ACacheThatUcxHasSilencedIsUsedNoMore) {
    OSC_CASE(load_and_write(kStrict, "stale", "libucm.so",
                            std::string("each transfer by itself: UCX was loaded: ") + fabric::kStale));
}

TEST(FabricCache, KeysOfTheUsersChoiceProveNothing) {
    OSC_CASE(load_and_write("local", "", "libucm.so",
                            "each transfer by itself: UCX was loaded: keys of the user's choice do not show whether "
                            "registrations are new"));
}

TEST(FabricCache, UcxsPlugInsAndOtherLibrariesInstallNoHooks) {
    OSC_CASE(load_and_write(kStrict, "stale", "libucm_cuda.so", ""));
    OSC_CASE(load_and_write(kStrict, "stale", "another.so", ""));
}

[[noreturn]] [[maybe_unused]] void load_in_turn() {
    Network network(kStrict, "stale");
    Network::load("another.so");
    network.write();
    Network::load("libucm.so");
    network.write();
    network.expect(std::string("each transfer by itself: UCX was loaded: ") + fabric::kStale);
}

TEST(FabricCache, UcxIsFoundBehindOtherLibraries) {
    OSC_CASE(load_in_turn());
}

// libosc looks for UCX at a transfer that it registers, and at no other time.
[[noreturn]] [[maybe_unused]] void load_only() {
    Network network(kStrict, "stale");
    Network::load("libucm.so");
    network.expect_cached();
}

TEST(FabricCache, NothingIsProvenBeforeTheNextTransfer) {
    OSC_CASE(load_only());
}

}  // namespace
}  // namespace osc::test
