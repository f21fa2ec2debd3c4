// The probes of direct accesses and of atomics, with providers that lie.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "transport/ofi/probe.h"

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
    TellsAfter
};

/// Does accesses when it is polled, as software providers do.
class Provider final : public ofi::Endpoint {
  public:
    explicit Provider(Lie lie) : lie_(lie) {}
    bool exposes() const { return exposed_; }

    bool insert(const ofi::Address&, ofi::PeerId& peer) override {
        peer = 1;
        return true;
    }
    bool expose(void* base, std::size_t, ofi::Exposed& exposed) override {
        if (lie_ == Lie::RegistersNothing) return false;
        exposed = {base, 99, reinterpret_cast<std::uint64_t>(base)};
        exposed_ = true;
        return true;
    }
    void revoke(ofi::Exposed& exposed) override {
        exposed = {};
        exposed_ = false;
    }
    ofi::Posted write(ofi::PeerId, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key,
                      ofi::Operation& operation) override {
        EXPECT_EQ(key, 99u);
        if (lie_ == Lie::RefusesWrites) return ofi::Posted::Failed;
        if (lie_ == Lie::Busy && busy_++ < 1000) return ofi::Posted::Again;
        const auto copy = [=] { std::memcpy(reinterpret_cast<void*>(address), from, bytes); };
        later_ = [this, copy, &operation] {
            if (lie_ == Lie::WritesNever) return;
            if (lie_ != Lie::WritesLater && lie_ != Lie::WritesFail) copy();
            operation.ended(operation, lie_ == Lie::WritesFail ? EIO : 0);
        };
        return ofi::Posted::Yes;
    }
    ofi::Posted read(ofi::PeerId, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t,
                     ofi::Operation& operation) override {
        later_ = [=, this, &operation] {
            std::memcpy(to, reinterpret_cast<const void*>(address), lie_ == Lie::ReadsOther ? bytes / 2 : bytes);
            operation.ended(operation, lie_ == Lie::ReadsFail ? EIO : 0);
        };
        return ofi::Posted::Yes;
    }
    ofi::Posted atomic(ofi::PeerId, ofi::Atomic& what, std::uint64_t address, std::uint64_t key,
                       ofi::Operation& operation) override {
        EXPECT_EQ(key, 99u);
        if (lie_ == Lie::RefusesAtomics) return ofi::Posted::Failed;
        later_ = [&what, address, &operation, this] {
            if (lie_ == Lie::AtomicsNever) return;
            auto& word = *reinterpret_cast<std::uint64_t*>(address);
            const std::uint64_t before = word;
            if (what.kind == ofi::Atomic::Kind::Add)
                word =
                    lie_ == Lie::AddsNarrow ? static_cast<std::uint32_t>(before + what.operand) : before + what.operand;
            else if (before == what.expected || lie_ == Lie::SwapsAlways)
                word = what.operand;
            what.before = lie_ == Lie::TellsAfter ? word : before;
            operation.ended(operation, lie_ == Lie::AtomicsFail ? EIO : 0);
        };
        return ofi::Posted::Yes;
    }
    int poll(ofi::Receiver&) override {
        if (const auto due = std::exchange(later_, nullptr)) due();
        return 0;
    }

    // The rest of an endpoint is not for these tests.
    const ofi::Address& address() const override { return address_; }
    const char* provider() const override { return "liar"; }
    std::uint32_t ipv4() const override { return 0; }
    ofi::Posted send(ofi::PeerId, const void*, std::size_t, ofi::Operation&) override { return ofi::Posted::Failed; }
    ofi::Posted send_copied(ofi::PeerId, const void*, std::size_t) override { return ofi::Posted::Failed; }
    std::size_t largest_copied() const override { return 0; }
    std::size_t largest_transfer() const override { return 1 << 20; }
    std::size_t direct_from() const override { return 0; }
    const char* flaw() const override { return ""; }
    const char* atomics_flaw() const override { return ""; }
    int sleep(int, ofi::Receiver&) override { return 0; }
    void wake() override {}

  private:
    const Lie lie_;
    int busy_ = 0;
    bool exposed_ = false;
    std::function<void()> later_;
    ofi::Address address_;
};

std::string flaw_of(Lie lie, void (*probe)(ofi::Endpoint&, std::string&) = &ofi::probe_direct) {
    Provider provider(lie);
    std::string flaw;
    probe(provider, flaw);
    EXPECT_TRUE(!flaw.empty() || !provider.exposes());
    return flaw;
}

TEST(Probe, BelievesWhatWorks) {
    EXPECT_EQ(flaw_of(Lie::None), "");
    EXPECT_EQ(flaw_of(Lie::Busy), "");
}

TEST(Probe, FindsEveryLie) {
    EXPECT_EQ(flaw_of(Lie::RegistersNothing), "no memory can be registered");
    EXPECT_EQ(flaw_of(Lie::RefusesWrites), "a write does not end well");
    EXPECT_EQ(flaw_of(Lie::WritesFail), "a write does not end well");
    EXPECT_EQ(flaw_of(Lie::WritesNever), "a write does not end well");
    EXPECT_EQ(flaw_of(Lie::WritesLater), "a write ends before its data is there");
    EXPECT_EQ(flaw_of(Lie::ReadsFail), "a read does not end well");
    EXPECT_EQ(flaw_of(Lie::ReadsOther), "a read brings other bytes");
}

TEST(Probe, BelievesAtomicsThatWork) {
    EXPECT_EQ(flaw_of(Lie::None, &ofi::probe_atomics), "");
}

TEST(Probe, FindsEveryLieOfAtomics) {
    EXPECT_EQ(flaw_of(Lie::RegistersNothing, &ofi::probe_atomics), "no memory can be registered");
    for (const Lie lie : {Lie::RefusesAtomics, Lie::AtomicsFail, Lie::AtomicsNever})
        EXPECT_EQ(flaw_of(lie, &ofi::probe_atomics), "an atomic does not end well");
    for (const Lie lie : {Lie::AddsNarrow, Lie::SwapsAlways, Lie::TellsAfter})
        EXPECT_EQ(flaw_of(lie, &ofi::probe_atomics), "an atomic does not do what it should");
}

}  // namespace
}  // namespace osc::test
