// One reliable-datagram endpoint of bare libfabric with one registered piece of memory, connected to one peer that has
// the same: operations are posted without waiting, and finish() waits for all of them. Offsets are into that memory,
// here and there.
// Writes complete by FI_DELIVERY_COMPLETE, since only that is what an MPI flush promises.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include "raw_control.h"

namespace bench {

// How the process is a target: it polls; polls with a wait object that nothing sleeps on; or a thread of it sleeps
// until something comes.
enum class Progress { polling, waitable, thread };

class Endpoint {
  public:
    Endpoint(const std::string& provider, Progress progress, std::byte* memory, std::size_t bytes,
             const Control& control);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void write(std::size_t from, std::size_t to, std::size_t bytes);
    void read(std::size_t into, std::size_t from, std::size_t bytes);
    // Adds `words` words, in as many operations as the provider's longest one asks for.
    void add(std::size_t operand, std::size_t at, std::size_t words = 1);
    void fetch_add(std::size_t operand, std::size_t result, std::size_t at);
    void compare_swap(std::size_t operand, std::size_t compare, std::size_t result, std::size_t at);

    // Sends a message. The provider copies a small one; a larger one stays until finish().
    void send(std::size_t from, std::size_t bytes);
    // From now on messages of up to `bytes` arrive at `at`. Before the peer sends; later calls change nothing.
    void expect(std::size_t at, std::size_t bytes);
    std::uint64_t received() const { return received_; }

    // Whether the provider does the 8-byte atomics at all; their claim to FI_ATOMIC says nothing.
    bool atomics() const { return atomics_; }

    std::size_t outstanding() const { return outstanding_; }
    void poll();
    void finish() {
        while (outstanding_ > 0)
            poll();
    }

    // The target's thread. It alone uses the endpoint from its start to its stop.
    void start_thread();
    void stop_thread();

  private:
    void open(const std::string& provider, const std::string& address);
    void exchange(const Control& control);
    void close_all();
    void* desc() const { return fi_mr_desc(memory_region_); }
    fi_rma_ioc remote_words(std::size_t at, std::size_t words) const { return {remote_base_ + at, words, remote_key_}; }
    template <class Post>
    void post(const char* what, Post&& one);
    void post_receive();
    void sleep_in_epoll();
    void sleep_in_sread();

    Progress progress_;
    std::byte* memory_;
    std::size_t bytes_;
    bool atomics_ = false;
    std::size_t most_words_ = 0;  // of one addition
    bool wait_descriptor_settles_ = true;

    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_cq* completions_ = nullptr;
    fid_ep* endpoint_ = nullptr;
    fid_mr* memory_region_ = nullptr;

    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    std::uint64_t remote_base_ = 0;
    std::uint64_t remote_key_ = 0;
    std::size_t outstanding_ = 0;
    std::uint64_t received_ = 0;
    std::size_t receive_at_ = 0;
    std::size_t receive_bytes_ = 0;  // 0: none is posted

    std::thread thread_;
    std::atomic<bool> stop_{false};
    int wake_ = -1;
};

}  // namespace bench
