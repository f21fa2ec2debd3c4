// The system forbids process_vm_readv and process_vm_writev while windows live: a filter that the program installs
// itself, as a sandbox does. From then on the target's agent serves what this process reached by them. An origin meets
// the refusal in another kind of operation at each target, while other origins update the same elements by
// process_vm_*.
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "../mpi/harness.h"
#include "../mpi/windows.h"
#include "refuse_calls.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Win_create_dynamic", "MPI_Put", "MPI_Get", "MPI_Accumulate",
             "MPI_Get_accumulate", "MPI_Fetch_and_op", "MPI_Win_lock_all", "MPI_Win_flush")

namespace {

constexpr int kShared = 3000;  // elements that all origins add to: several stripes
constexpr int kOwn = 256;      // elements of each origin
constexpr int kRun = 100;      // operations without a flush
constexpr std::size_t kWord = sizeof(std::int64_t);

// Operations on one target. Each kind leaves in the own elements what it has put there, and adds to the shared ones.
class Origin {
  public:
    static constexpr int kKinds = 8;

    Origin(const Window& window, int target, MPI_Datatype every_second)
        : window_(window), target_(target), every_second_(every_second), out_(kOwn), in_(kShared) {}

    void perform(int kind) {
        std::iota(out_.begin(), out_.end(), ++number_ * 1000 + rank());
        switch (kind) {
            case 0:
                put(0, kOwn);
                break;
            case 1:
                for (int i = 0; i < kOwn; ++i)
                    put(i, 1);
                break;
            case 2:
                CHECK_OK(MPI_Put(out_.data(), kOwn / 2, MPI_INT64_T, target_, own(0), 1, every_second_, window_));
                CHECK_OK(MPI_Put(out_.data(), kOwn / 2, MPI_INT64_T, target_, own(1), 1, every_second_, window_));
                break;
            case 3:
                add(0, kShared);
                break;
            case 4:
                for (int i = 0; i < kRun; ++i)
                    add(i * 29, 1);
                break;
            case 5:
                CHECK_OK(MPI_Fetch_and_op(&kOne, in_.data(), MPI_INT64_T, target_, shared(7), MPI_SUM, window_));
                ++added_[7];
                break;
            case 6:
                CHECK_OK(MPI_Get_accumulate(ones_.data(), kShared, MPI_INT64_T, in_.data(), kShared, MPI_INT64_T,
                                            target_, shared(0), kShared, MPI_INT64_T, MPI_SUM, window_));
                for (std::int64_t& sum : added_)
                    ++sum;
                break;
            default:  // elements that every kind reads back
                return read_back(previous_);
        }
        CHECK_OK(MPI_Win_flush(target_, window_));
        if (kind < 3) {
            previous_ = out_;
            if (kind == 2)
                for (std::size_t i = 0; i < kOwn; ++i)
                    previous_[i] = out_[i / 2];
        }
        read_back(previous_);
    }

    const std::vector<std::int64_t>& added() const { return added_; }

  private:
    static constexpr std::int64_t kOne = 1;

    MPI_Aint shared(int element) const { return window_.at(target_, static_cast<std::size_t>(element) * kWord); }
    MPI_Aint own(int element) const { return shared(kShared + rank() * kOwn + element); }
    void put(int first, int count) {
        CHECK_OK(MPI_Put(out_.data() + first, count, MPI_INT64_T, target_, own(first), count, MPI_INT64_T, window_));
    }
    void add(int first, int count) {
        CHECK_OK(MPI_Accumulate(ones_.data(), count, MPI_INT64_T, target_, shared(first), count, MPI_INT64_T, MPI_SUM,
                                window_));
        for (int i = first; i < first + count; ++i)
            ++added_[static_cast<std::size_t>(i)];
    }
    void read_back(const std::vector<std::int64_t>& expected) {
        in_.assign(kShared, -1);
        CHECK_OK(MPI_Get(in_.data(), kOwn, MPI_INT64_T, target_, own(0), kOwn, MPI_INT64_T, window_));
        CHECK_OK(MPI_Win_flush(target_, window_));
        CHECK_ALL(in_.data(), kOwn, [&](std::size_t i) { return expected[i]; });
    }

    const Window& window_;
    const int target_;
    const MPI_Datatype every_second_;
    std::int64_t number_ = 0;
    std::vector<std::int64_t> out_, in_;
    std::vector<std::int64_t> previous_ = std::vector<std::int64_t>(kOwn);
    std::vector<std::int64_t> added_ = std::vector<std::int64_t>(kShared);
    const std::vector<std::int64_t> ones_ = std::vector<std::int64_t>(kShared, 1);
};

}  // namespace

CASE(operations_go_on_by_the_agent) {
    SKIP_IF(size() < 2);
    MPI_Datatype every_second = MPI_DATATYPE_NULL;
    MPI_Type_vector(kOwn / 2, 1, 2, MPI_INT64_T, &every_second);
    MPI_Type_commit(&every_second);
    const std::size_t bytes = (kShared + static_cast<std::size_t>(size()) * kOwn) * kWord;
    const Window windows[] = {{WindowKind::Create, bytes}, {WindowKind::Dynamic, bytes}};
    std::vector<Origin> origins[2];
    for (int w = 0; w < 2; ++w)
        for (int target = 0; target < size(); ++target)
            origins[w].emplace_back(windows[w], target, every_second);
    const auto perform_all = [&] {
        for (int step = 0; step < 2 * Origin::kKinds; ++step)
            for (int i = 0; i < size(); ++i) {
                const int target = (rank() + i) % size();
                const int at = step + rank() * size() + target;
                origins[at % 2][static_cast<std::size_t>(target)].perform(at / 2 % Origin::kKinds);
            }
    };
    for (const Window& window : windows)
        MPI_Win_lock_all(0, window);
    perform_all();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 2 * size(); ++round) {
        if (rank() != 0 && round == rank()) CHECK(refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev));
        perform_all();
    }
    for (int w = 0; w < 2; ++w) {
        MPI_Win_unlock_all(windows[w]);
        for (int target = 0; target < size(); ++target) {
            // The host sends long messages by process_vm_* too.
            constexpr int kShort = 100;
            const std::int64_t* const added = origins[w][static_cast<std::size_t>(target)].added().data();
            std::vector<std::int64_t> sums(kShared);
            for (int i = 0; i < kShared; i += kShort)
                MPI_Reduce(added + i, sums.data() + i, kShort, MPI_INT64_T, MPI_SUM, target, MPI_COMM_WORLD);
            if (rank() == target)
                CHECK_ALL(windows[w].base<std::int64_t>(), kShared, [&](std::size_t i) { return sums[i]; });
        }
    }
    MPI_Type_free(&every_second);
}
