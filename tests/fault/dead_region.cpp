// A process of a dynamic window dies: rank 1 has cached regions of the others, and they have cached one of its regions.
// A detach does not wait for the dead process, the survivors keep their caches, and accesses to the dead process fail.
// It dies while it changes the table of its regions in a second window, which stays as the change left it.
#include "survivors.h"

namespace {

using namespace fault;

constexpr int kBytes = 1 << 16;
constexpr int kRegions = 3;
constexpr std::size_t kMany = 4000;  // regions: writing their table takes most of the time of an attach

int put(const std::vector<char>& data, int target, MPI_Aint there, MPI_Win win) {
    return MPI_Put(data.data(), kBytes, MPI_CHAR, target, there, kBytes, MPI_CHAR, win);
}

/// Regions of one element each, with gaps between them.
class Many {
  public:
    explicit Many(MPI_Win win) : win_(win) {
        for (std::size_t i = 0; i < kMany; ++i)
            MPI_Win_attach(win_, &memory_[2 * i], sizeof(long));
    }
    long* first() { return memory_.data(); }
    [[noreturn]] void change() {
        for (;;) {
            MPI_Win_detach(win_, &memory_[2 * (kMany - 1)]);
            MPI_Win_attach(win_, &memory_[2 * (kMany - 1)], sizeof(long));
        }
    }

  private:
    MPI_Win win_;
    std::vector<long> memory_ = std::vector<long>(2 * kMany);
};

void put_into_a_table_in_change(MPI_Win win, MPI_Aint there) {
    g_scenario = "a table in change";
    const long value = 1;
    must_return("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, kVictim, 0, win); });
    must_return("put", [&] { return MPI_Put(&value, 1, MPI_LONG, kVictim, there, 1, MPI_LONG, win); });
    must_return("unlock", [&] { return MPI_Win_unlock(kVictim, win); });
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (g_size < 4) return 1;
    g_scenario = "dead_region";
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<std::vector<char>> memory(kRegions, std::vector<char>(kBytes));
    std::vector<MPI_Aint> mine(kRegions), all(static_cast<std::size_t>(g_size) * kRegions);
    for (std::size_t i = 0; i < kRegions; ++i) {
        MPI_Win_attach(win, memory[i].data(), kBytes);
        MPI_Get_address(memory[i].data(), &mine[i]);
    }
    MPI_Allgather(mine.data(), kRegions, MPI_AINT, all.data(), kRegions, MPI_AINT, MPI_COMM_WORLD);
    const auto region = [&](int rank, int i) { return all[static_cast<std::size_t>(rank * kRegions + i)]; };
    const std::vector<char> data(kBytes, static_cast<char>('a' + g_rank));
    // All processes cache the regions of all others.
    for (int rank = 0; rank < g_size; ++rank) {
        must_work("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win); });
        for (int i = 0; i < kRegions; ++i)
            must_work("put", [&] { return put(data, rank, region(rank, i), win); });
        must_work("unlock", [&] { return MPI_Win_unlock(rank, win); });
    }
    MPI_Win changing = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &changing);
    MPI_Win_set_errhandler(changing, MPI_ERRORS_RETURN);
    MPI_Aint first = 0;
    if (g_rank == kVictim) {
        Many many(changing);
        MPI_Get_address(many.first(), &first);
        MPI_Bcast(&first, 1, MPI_AINT, kVictim, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        kill_self_after(0.1);
        many.change();
    }
    MPI_Bcast(&first, 1, MPI_AINT, kVictim, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    sleep_for(1);
    put_into_a_table_in_change(changing, first);
    g_scenario = "dead_region";
    // The first finds out, the others know it.
    for (std::size_t i = 0; i + 1 < kRegions; ++i)
        must_work("detach", [&] { return MPI_Win_detach(win, memory[i].data()); });
    // What is left is written to as before: in a ring without the dead.
    const int right = g_rank == 0 ? 2 : (g_rank + 1) % g_size;
    const int left = g_rank == 2 ? 0 : (g_rank + g_size - 1) % g_size;
    const std::vector<char> last(kBytes, static_cast<char>('A' + g_rank));
    must_work("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win); });
    must_work("put", [&] { return put(last, right, region(right, kRegions - 1), win); });
    must_work("unlock", [&] { return MPI_Win_unlock(right, win); });
    must_return("lock of the dead", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, kVictim, 0, win); });
    must_return("put to the dead", [&] { return put(data, kVictim, region(kVictim, 0), win); });
    must_return("unlock of the dead", [&] { return MPI_Win_unlock(kVictim, win); });
    const auto has_come = [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, win);
        const bool came = memory[kRegions - 1] == std::vector<char>(kBytes, static_cast<char>('A' + left));
        MPI_Win_unlock(g_rank, win);
        return came;
    };
    while (!has_come())
        sleep_for(0.01);
    must_work("last detach", [&] { return MPI_Win_detach(win, memory[kRegions - 1].data()); });
    leave();
}
