// The words of a window's two-level locks over the network: this process's own two, which peers reach by the provider's
// atomics, and the way to those of others. Nothing loads or stores them but the provider, from their registration on.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "sync/two_level.h"
#include "transport/net/far.h"

namespace osc::net {

class LockWords final : public sync::Words {
  public:
    /// `far`: where the others say what they have exposed.
    LockWords(Network& network, const Job& job, Far& far, std::uint32_t me);
    LockWords(const LockWords&) = delete;
    LockWords& operator=(const LockWords&) = delete;
    /// Nobody reaches the words any more.
    ~LockWords();

    /// Why this process cannot take part; "": it can, and its words are free.
    const char* flaw() const;
    const ofi::Exposed& exposed() const { return exposed_; }

    Fault add(std::uint32_t rank, Word word, std::uint64_t value, std::uint64_t& before) override;
    Fault swap(std::uint32_t rank, Word word, std::uint64_t expected, std::uint64_t wanted,
               std::uint64_t& before) override;

  private:
    struct Place {
        Connection* to = nullptr;
        std::uint64_t base = 0;
        std::uint64_t key = 0;
    };
    struct Call;
    Fault find(std::uint32_t rank, Place& place);
    Fault perform(std::uint32_t rank, Word word, const ofi::Atomic& what, std::uint64_t& before);

    Network& network_;
    const Job& job_;
    Far& far_;
    const std::uint32_t me_;
    alignas(64) std::uint64_t words_[2]{};  // by Word; the global one counts at rank 0 only
    ofi::Exposed exposed_;
    std::mutex mutex_;
    std::map<std::uint32_t, Place> places_;  // of those used; under mutex_
};

}  // namespace osc::net
