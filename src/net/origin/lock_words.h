// The words of a window's two-level locks over the network. Owns this process's two words, which all processes, this
// one too, access by the provider's atomics only, and the addresses of the other processes' words.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "net/origin/remote_window.h"
#include "sync/two_level.h"

namespace osc::net {

class LockWords final : public sync::Words {
  public:
    /// `far`: for the connections to all processes and the descriptions of the others.
    LockWords(NetworkStack& network, RemoteWindow& far, std::uint32_t me);
    LockWords(const LockWords&) = delete;
    LockWords& operator=(const LockWords&) = delete;
    /// Closes the registration: no peer can access the words afterwards.
    ~LockWords();

    /// Why this process cannot take part; "" if it can (its words are then free).
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
    Fault perform(std::uint32_t rank, Word word, fabric::RowForm form, std::uint64_t operand, std::uint64_t expected,
                  std::uint64_t& before);

    NetworkStack& network_;
    RemoteWindow& far_;
    const std::uint32_t me_;
    alignas(64) std::uint64_t words_[2]{};  // by Word; the global one counts at rank 0 only
    fabric::Exposed exposed_;
    std::mutex mutex_;
    std::map<std::uint32_t, WordAddress> addresses_;  // of those used; under mutex_
};

}  // namespace osc::net
