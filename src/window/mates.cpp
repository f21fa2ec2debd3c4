// Questions, a barrier and answers, by messages of the host.
#include "window/mates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "host/host.h"

namespace osc {
namespace {

using Question = std::pair<std::uint64_t, std::uint64_t>;  // the number and the rank of the process that asks

// What a process answers: to each that asked, those that gave the same number.
class Directory {
  public:
    explicit Directory(MPI_Comm comm) : comm_(comm) {}

    // Receives the questions that have arrived.
    int receive() {
        for (;;) {
            int there = 0;
            if (const int error = mpi_.Iprobe(MPI_ANY_SOURCE, kQuestion, comm_, &there, MPI_STATUS_IGNORE);
                error != MPI_SUCCESS || !there)
                return error;
            std::uint64_t words[2];
            if (const int error =
                    mpi_.Recv(words, 2, MPI_UINT64_T, MPI_ANY_SOURCE, kQuestion, comm_, MPI_STATUS_IGNORE);
                error != MPI_SUCCESS)
                return error;
            const Fault fault = base::attempt([&] {
                asked_.emplace_back(words[0], words[1]);
                return Fault::None;
            });
            if (fault == Fault::None) continue;
            if (const int error = refuse(words[1]); error != MPI_SUCCESS) return error;
        }
    }

    // Begins the answers.
    int answer() {
        const Fault fault = base::attempt([&] {
            lists_.resize(2 * asked_.size());
            sent_.reserve(asked_.size());
            return Fault::None;
        });
        int error = MPI_SUCCESS;
        if (fault != Fault::None) {
            for (auto its = asked_.begin(); its != asked_.end() && error == MPI_SUCCESS; ++its)
                error = refuse(its->second);
            return error;
        }
        std::ranges::sort(asked_);
        int* list = lists_.data();
        for (auto first = asked_.begin(); first != asked_.end();) {
            int* end = list + 1;
            auto its = first;
            for (; its != asked_.end() && its->first == first->first; ++its)
                *end++ = static_cast<int>(its->second);
            *list = static_cast<int>(its - first);
            for (; first != its && error == MPI_SUCCESS; ++first)
                error = mpi_.Isend(list, *list + 1, MPI_INT, static_cast<int>(first->second), kAnswer, comm_,
                                   &sent_.emplace_back());
            if (error != MPI_SUCCESS) return error;
            list = end;
        }
        return MPI_SUCCESS;
    }

    // Ends them.
    int wait() {
        int error = MPI_SUCCESS;
        for (auto its = sent_.begin(); its != sent_.end() && error == MPI_SUCCESS; ++its)
            error = host::wait(*its);
        return error;
    }

  private:
    // An empty message, which the host sends at once.
    int refuse(std::uint64_t rank) const {
        return mpi_.Send(nullptr, 0, MPI_INT, static_cast<int>(rank), kAnswer, comm_);
    }

    const host::Real& mpi_ = host::real();
    MPI_Comm comm_;
    std::vector<Question> asked_;
    std::vector<int> lists_;
    std::vector<MPI_Request> sent_;
};

}  // namespace

int find_equals(MPI_Comm comm, std::uint64_t number, std::span<int> found) {
    const host::Real& mpi = host::real();
    const auto processes = static_cast<int>(found.size() - 1);
    const auto directory = static_cast<int>(number % static_cast<std::uint64_t>(processes));
    int rank = 0;
    mpi.Comm_rank(comm, &rank);
    found[0] = 0;  // an empty answer leaves it
    Directory mine(comm);
    int failed = MPI_SUCCESS;
    // Receives questions until the request is complete.
    const auto receive_until = [&](MPI_Request& request) {
        const int error = host::wait(request, [&] {
            failed = mine.receive();
            return failed == MPI_SUCCESS;
        });
        return failed != MPI_SUCCESS ? failed : error;
    };
    const std::uint64_t question[] = {number, static_cast<std::uint64_t>(rank)};
    MPI_Request answered = MPI_REQUEST_NULL;
    MPI_Request asked = MPI_REQUEST_NULL;
    MPI_Request all_asked = MPI_REQUEST_NULL;
    int error = mpi.Irecv(found.data(), processes + 1, MPI_INT, directory, kAnswer, comm, &answered);
    if (error == MPI_SUCCESS) error = mpi.Issend(question, 2, MPI_UINT64_T, directory, kQuestion, comm, &asked);
    if (error == MPI_SUCCESS) error = receive_until(asked);
    if (error == MPI_SUCCESS) error = mpi.Ibarrier(comm, &all_asked);
    if (error == MPI_SUCCESS) error = receive_until(all_asked);
    if (error == MPI_SUCCESS) error = mine.answer();
    if (error == MPI_SUCCESS) error = host::wait(answered);
    if (error == MPI_SUCCESS) error = mine.wait();
    return error;
}

}  // namespace osc
