// The words of a window's two-level locks over the network: this process's own two, which peers reach by the provider's
// atomics, and the way to those of others. Nothing loads or stores them but the provider, from their registration on.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "sync/two_level.h"
#include "transport/am/origin/remote_window.h"

namespace osc::am {

class LockWords final : public sync::Words {
  public:
    /// `far`: where the others say what they have exposed.
    LockWords(NetworkStack& network, const Job& job, RemoteWindow& far, std::uint32_t me);
    LockWords(const LockWords&) = delete;
    LockWords& operator=(const LockWords&) = delete;
    /// Nobody reaches the words any more.
    ~LockWords();

    /// Why this process cannot take part; "": it can, and its words are free.
    const char* flaw() const;
    const fabric::Exposed& exposed() const { return exposed_; }

    Fault add(std::uint32_t rank, Word word, std::uint64_t value, std::uint64_t& before) override;
    Fault swap(std::uint32_t rank, Word word, std::uint64_t expected, std::uint64_t wanted,
               std::uint64_t& before) override;

  private:
    struct WordAddress {
        Connection* to = nullptr;
        std::uint64_t base = 0;
        std::uint64_t key = 0;
    };
    struct Call;
    Fault find(std::uint32_t rank, WordAddress& place);
    Fault perform(std::uint32_t rank, Word word, const fabric::Atomic& what, std::uint64_t& before);

    NetworkStack& network_;
    const Job& job_;
    RemoteWindow& far_;
    const std::uint32_t me_;
    alignas(64) std::uint64_t words_[2]{};  // by Word; the global one counts at rank 0 only
    fabric::Exposed exposed_;
    std::mutex mutex_;
    std::map<std::uint32_t, WordAddress> addresses_;  // of those used; under mutex_
};

}  // namespace osc::am
