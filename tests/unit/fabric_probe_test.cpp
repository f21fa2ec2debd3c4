// The probes of direct accesses and of atomics, with providers that lie.
// Level: gate
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "fabric/probe.h"

namespace osc::test {
namespace {

enum class Lie {
    None,
    RegistersNothing,
    RefusesWrites,
    WritesFail,
    WritesNever,
    WritesLater,
    ReadsFail,
    ReadsOther,
    Busy,
    RefusesAtomics,
    AtomicsFail,
    AtomicsNever,
    AddsNarrow,
    SwapsAlways,
    TellsAfter,
    HasNoRows,
    KeepsMappings,
    KeepsHeaps,
    UpdatesLater,
    UpdatesOneMore
};

/// Does accesses when it is polled, as software providers do.
class Provider final : public fabric::Endpoint {
  public:
    explicit Provider(Lie lie) : lie_(lie) {}
    bool exposes() const { return exposed_; }

    bool insert(const fabric::Address&, fabric::PeerId& peer) override {
        peer = 1;
        return true;
    }
    bool expose(void* base, std::size_t, fabric::Exposed& exposed) override {
        if (lie_ == Lie::RegistersNothing) return false;
        exposed = {base, 99, reinterpret_cast<std::uint64_t>(base)};
        exposed_ = true;
        return true;
    }
    void revoke(fabric::Exposed& exposed) override {
        exposed = {};
        exposed_ = false;
    }
    fabric::Posted write(fabric::PeerId, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                         fabric::Operation& operation) override {
        EXPECT_EQ(key, 99u);
        if (lie_ == Lie::RefusesWrites) return fabric::Posted::Failed;
        if (lie_ == Lie::Busy && busy_++ < 1000) return fabric::Posted::Again;
        const auto copy = [=, this] { std::memcpy(reinterpret_cast<void*>(address), registered(from, bytes), bytes); };
        later_ = [this, copy, &operation] {
            if (lie_ == Lie::WritesNever) return;
            if (lie_ != Lie::WritesLater && lie_ != Lie::WritesFail) copy();
            operation.ended(operation, lie_ == Lie::WritesFail ? EIO : 0);
        };
        return fabric::Posted::Yes;
    }
    fabric::Posted read(fabric::PeerId, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t,
                        fabric::Operation& operation) override {
        later_ = [=, this, &operation] {
            std::memcpy(to, reinterpret_cast<const void*>(address), lie_ == Lie::ReadsOther ? bytes / 2 : bytes);
            operation.ended(operation, lie_ == Lie::ReadsFail ? EIO : 0);
        };
        return fabric::Posted::Yes;
    }
    std::size_t longest_row(fabric::RowForm, Basic, Op) const override { return lie_ == Lie::HasNoRows ? 0 : 100; }
    fabric::Posted update(fabric::PeerId, fabric::AtomicRow& row, std::uint64_t address, std::uint64_t key,
                          fabric::Operation& operation) override {
        EXPECT_EQ(key, 99u);
        if (lie_ == Lie::RefusesAtomics) return fabric::Posted::Failed;
        later_ = [&row, address, &operation, this] {
            if (lie_ == Lie::AtomicsNever) return;
            auto* const words = reinterpret_cast<std::uint64_t*>(address);
            const auto operand = [&](std::size_t i) { return word_of(row.operands(), i); };
            if (row.form != fabric::RowForm::Update) std::memcpy(row.before(), words, row.bytes);
            for (std::size_t i = 0; i < row.count && lie_ != Lie::UpdatesLater; ++i) {
                const std::uint64_t sum = words[i] + operand(i);
                if (row.form != fabric::RowForm::Swap)
                    words[i] = lie_ == Lie::AddsNarrow ? static_cast<std::uint32_t>(sum) : sum;
                else if (words[i] == word_of(row.expected(), i) || lie_ == Lie::SwapsAlways)
                    words[i] = operand(i);
            }
            if (lie_ == Lie::UpdatesOneMore) ++words[row.count];
            if (lie_ == Lie::TellsAfter && row.form != fabric::RowForm::Update)
                std::memcpy(row.before(), words, row.bytes);
            operation.ended(operation, lie_ == Lie::AtomicsFail ? EIO : 0);
        };
        return fabric::Posted::Yes;
    }
    bool has_hardware_atomics() const override { return false; }
    int poll(fabric::Receiver&) override {
        if (const auto due = std::exchange(later_, nullptr)) due();
        return 0;
    }

    // The rest of an endpoint is not for these tests.
    const fabric::Address& address() const override { return address_; }
    const char* provider() const override { return "liar"; }
    std::uint32_t ipv4() const override { return 0; }
    fabric::Posted send(fabric::PeerId, const void*, std::size_t, fabric::Operation&) override {
        return fabric::Posted::Failed;
    }
    fabric::Posted send_copied(fabric::PeerId, const void*, std::size_t) override { return fabric::Posted::Failed; }
    std::size_t largest_copied() const override { return 0; }
    std::size_t largest_transfer() const override { return 1 << 20; }
    std::size_t direct_from() const override { return 0; }
    const char* flaw() const override { return ""; }
    const char* atomics_flaw() const override { return ""; }
    int sleep(int, fabric::Receiver&) override { return 0; }
    void wake() override {}

  private:
    // The pages of a registration that a cache has kept hold the bytes that were written first.
    const void* registered(const void* from, std::size_t bytes) {
        const bool in_heap = from < ::sbrk(0);
        if (lie_ != Lie::KeepsMappings && !(lie_ == Lie::KeepsHeaps && in_heap)) return from;
        std::vector<std::byte>& kept = kept_[from];
        if (kept.empty()) kept.assign(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes);
        return kept.data();
    }

    static std::uint64_t word_of(const std::byte* row, std::size_t i) {
        std::uint64_t word = 0;
        std::memcpy(&word, row + i * sizeof word, sizeof word);
        return word;
    }

    const Lie lie_;
    int busy_ = 0;
    bool exposed_ = false;
    std::map<const void*, std::vector<std::byte>> kept_;
    std::function<void()> later_;
    fabric::Address address_;
};

std::string flaw_of(Lie lie, std::string (*probe)(fabric::Endpoint&) = &fabric::probe_direct) {
    Provider provider(lie);
    const std::string flaw = probe(provider);
    EXPECT_TRUE(!flaw.empty() || !provider.exposes());
    return flaw;
}

TEST(Probe, AcceptsAWorkingProvider) {
    EXPECT_EQ(flaw_of(Lie::None), "");
    EXPECT_EQ(flaw_of(Lie::Busy), "");
}

TEST(Probe, FindsEveryLie) {
    EXPECT_EQ(flaw_of(Lie::RegistersNothing), "no memory can be registered");
    EXPECT_EQ(flaw_of(Lie::RefusesWrites), "a write does not end well");
    EXPECT_EQ(flaw_of(Lie::WritesFail), "a write does not end well");
    EXPECT_EQ(flaw_of(Lie::WritesLater), "a write ends before its data is there");
    EXPECT_EQ(flaw_of(Lie::ReadsFail), "a read does not end well");
    EXPECT_EQ(flaw_of(Lie::ReadsOther), "a read brings other bytes");
}

TEST(Probe, FindsACacheThatKeepsMappingsThatAreGone) {
    Provider keeps(Lie::KeepsMappings);
    EXPECT_EQ(fabric::probe_cache(keeps), fabric::kStale);
    Provider fails(Lie::WritesFail);
    EXPECT_EQ(fabric::probe_cache(fails), "a write does not end well");
}

#ifndef __SANITIZE_ADDRESS__  // its malloc gives no memory back
TEST(Probe, FindsACacheThatMissesAHeapThatShrinks) {
    Provider keeps(Lie::KeepsHeaps);
    EXPECT_EQ(fabric::probe_cache(keeps), fabric::kStale);
    Provider provider(Lie::None);
    EXPECT_EQ(fabric::probe_cache(provider), "");
}
#endif

TEST(Probe, FindsEveryLieOfAtomics) {
    EXPECT_EQ(flaw_of(Lie::None, &fabric::probe_atomics), "");
    EXPECT_EQ(flaw_of(Lie::RegistersNothing, &fabric::probe_atomics), "no memory can be registered");
    for (const Lie lie : {Lie::RefusesAtomics, Lie::AtomicsFail})
        EXPECT_EQ(flaw_of(lie, &fabric::probe_atomics), "an atomic does not end well");
    for (const Lie lie : {Lie::AddsNarrow, Lie::SwapsAlways, Lie::TellsAfter, Lie::UpdatesLater})
        EXPECT_EQ(flaw_of(lie, &fabric::probe_atomics), "an atomic does not do what it should");
}

// Each probe waits five seconds, so a child process waits for one of them meanwhile.
TEST(Probe, GivesUpOperationsThatNeverEnd) {
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(flaw_of(Lie::AtomicsNever, &fabric::probe_atomics) == "an atomic does not end well" ? 0 : 1);
    EXPECT_EQ(flaw_of(Lie::WritesNever), "a write does not end well");
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Probe, FindsEveryLieOfRows) {
    EXPECT_EQ(flaw_of(Lie::None, &fabric::probe_rows), "");
    EXPECT_EQ(flaw_of(Lie::RegistersNothing, &fabric::probe_rows), "no memory can be registered");
    EXPECT_EQ(flaw_of(Lie::HasNoRows, &fabric::probe_rows), "has no atomics on rows of words");
    for (const Lie lie : {Lie::RefusesAtomics, Lie::AtomicsFail})
        EXPECT_EQ(flaw_of(lie, &fabric::probe_rows), "an atomic on a row does not end well");
    for (const Lie lie : {Lie::UpdatesLater, Lie::UpdatesOneMore, Lie::SwapsAlways, Lie::TellsAfter})
        EXPECT_EQ(flaw_of(lie, &fabric::probe_rows), "an atomic on a row does not do what it should");
}

}  // namespace
}  // namespace osc::test
