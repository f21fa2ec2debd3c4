// Redirection of imported functions: which pages are sealed, and which unbound calls may be redirected.
#include "base/imports.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using osc::base::is_sealed;
using osc::base::replace_all_imports;

// The libraries imports_*.so call this one, or their own.
extern "C" __attribute__((visibility("default"))) int osc_test_answer();
extern "C" int osc_test_answer() {
    return 1;
}

namespace {

int other_answer() {
    return 2;
}

using Function = int (*)();

struct Library {
    void* handle;
    explicit Library(const char* path, int flags) : handle(::dlopen(path, flags)) {}
    ~Library() {
        if (handle != nullptr) ::dlclose(handle);
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    int ask() const { return reinterpret_cast<Function>(::dlsym(handle, "osc_test_ask"))(); }
};

void redirect() {
    const osc::base::Replacement one{"osc_test_answer", reinterpret_cast<void*>(&osc_test_answer),
                                     reinterpret_cast<void*>(&other_answer)};
    replace_all_imports({&one, 1});
}

}  // namespace

TEST(Imports, SealedPagesEndWithinThePart) {
    constexpr std::uintptr_t kPage = 65536, kFirst = 0x10000 * 3 + 0xfd00;
    // The part ends within the page behind the next: data that stays writable follows it there.
    constexpr std::uintptr_t kBytes = 0x10000 + 0x1000;
    EXPECT_TRUE(is_sealed(kFirst, kBytes, kFirst, kPage));
    EXPECT_TRUE(is_sealed(kFirst, kBytes, 0x10000 * 4, kPage));
    EXPECT_TRUE(is_sealed(kFirst, kBytes, 0x10000 * 5 - 8, kPage));
    EXPECT_FALSE(is_sealed(kFirst, kBytes, 0x10000 * 5, kPage));
    EXPECT_FALSE(is_sealed(kFirst, kBytes, 0x10000 * 3 - 8, kPage));
    EXPECT_FALSE(is_sealed(kFirst, 0x100, kFirst, kPage));
    EXPECT_TRUE(is_sealed(0x3000, 0x1000, 0x3ff8, 4096));
    EXPECT_FALSE(is_sealed(0x3000, 0x1000, 0x4000, 4096));
}

TEST(Imports, UnboundCallsAreRedirected) {
    const Library library(OSC_IMPORTS_CALLER, RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(library.handle, nullptr) << ::dlerror();
    redirect();
    EXPECT_EQ(library.ask(), 2);
}

// Sanitizers refuse RTLD_DEEPBIND.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// It calls a definition of its own dependency, which no redirection may pass over.
TEST(Imports, UnboundCallsOfADeeplyBoundLibraryStay) {
    const Library library(OSC_IMPORTS_DEEP, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    ASSERT_NE(library.handle, nullptr) << ::dlerror();
    redirect();
    EXPECT_EQ(library.ask(), 3);
}
#endif

// ThreadSanitizer does not see the loader's lock, so it reports races between the loader's threads.
#if !defined(__SANITIZE_THREAD__)
TEST(Imports, OtherThreadsMayCloseLibraries) {
    std::atomic<bool> done{false};
    std::atomic<int> rounds{0};
    std::thread thread([&] {
        while (!done || rounds < 10) {
            const Library library(OSC_IMPORTS_CALLER, RTLD_LAZY | RTLD_LOCAL);
            ++rounds;
        }
    });
    for (int i = 0; i < 20; ++i)
        redirect();
    done = true;
    thread.join();
    EXPECT_GE(rounds, 10);
}
#endif
