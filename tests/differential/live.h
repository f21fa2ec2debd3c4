// One operation as its origin runs it: buffers laid out, the call made, its outcome compared.
#pragma once

#include "plan.h"

namespace diff {

class Live {
  public:
    Live(Operation& op, Random& jitter, const Place& place, bool host_safe);
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;

    /// Makes the MPI call and frees the datatypes, which the operation must survive.
    void issue();
    bool pending() const { return request_ != MPI_REQUEST_NULL; }
    void wait();
    /// After completion at the origin: compares the buffers; the second call does nothing.
    void check();
    /// After completion at the origin: the buffers may be written.
    void scramble();

    const Operation& operation() const { return op_; }
    /// The fetched elements, adjacent.
    std::vector<unsigned char> fetched() const;

  private:
    struct Buffer {
        std::vector<unsigned char> bytes;
        std::vector<unsigned char> before;
        std::size_t zero = 0;  // where displacement 0 lies
        unsigned char* base() { return bytes.data() + zero; }
    };
    Buffer make_buffer(const Layout& layout, std::size_t skew) const;
    void compare(const Buffer& buffer, const Layout& layout, const char* which, const Bytes* filled) const;

    Operation& op_;
    const Place& place_;
    Buffer here_;
    Buffer back_;
    MPI_Request request_ = MPI_REQUEST_NULL;
    bool nothing_given_ = false;  // MPI_NO_OP without origin arguments
    bool done_ = false;
};

}  // namespace diff
