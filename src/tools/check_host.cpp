// libosc_check.so: the calls of MPI for the health check. It is linked to libosc before the host MPI, so its windows
// are libosc's.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "osc/osc.h"
#include "tools/host_mpi.h"

namespace osc::tools {
namespace {

class LinkedHost final : public HostMpi {
  public:
    std::string version() const override {
        char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        int length = 0;
        MPI_Get_library_version(text, &length);
        std::string line(text);
        line.resize(std::min(line.size(), line.find_first_of(",\n")));
        std::replace(line.begin(), line.end(), '\t', ' ');
        return line;
    }
    std::string path() const override {
        Dl_info info{};
        const bool found = ::dladdr(reinterpret_cast<const void*>(&MPI_Initialized), &info) != 0;
        return found && info.dli_fname != nullptr ? info.dli_fname : "";
    }

    bool start(std::string& why) override {
        int provided = 0;
        if (!did(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided), why)) return false;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
        return true;
    }
    void finish() override { MPI_Finalize(); }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

    std::vector<std::string> exchange(const std::string& mine) override {
        const int bytes = static_cast<int>(mine.size());
        std::vector<int> sizes(static_cast<std::size_t>(size_));
        MPI_Allgather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD);
        std::vector<int> starts(sizes.size());
        std::exclusive_scan(sizes.begin(), sizes.end(), starts.begin(), 0);
        std::string all(static_cast<std::size_t>(starts.back() + sizes.back()), '\0');
        MPI_Allgatherv(mine.data(), bytes, MPI_CHAR, all.data(), sizes.data(), starts.data(), MPI_CHAR, MPI_COMM_WORLD);
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < sizes.size(); ++i)
            texts.push_back(all.substr(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(sizes[i])));
        return texts;
    }

    bool open_window(std::size_t bytes, std::string& why) override {
        const unsigned long long before = osc_served("MPI_Win_allocate");
        void* base = nullptr;
        if (!did(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                                  static_cast<void*>(&base), &window_),
                 why))
            return false;
        is_served_ = osc_served("MPI_Win_allocate") > before;
        std::memset(base, 0, bytes);
        MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
        MPI_Barrier(MPI_COMM_WORLD);
        return did(MPI_Win_lock_all(0, window_), why);
    }
    void close_window() override {
        MPI_Win_unlock_all(window_);
        MPI_Win_free(&window_);
    }
    bool is_served() const override { return is_served_; }

    bool shares_memory_with(int rank) override {
        MPI_Aint bytes = 0;
        int unit = 0;
        void* base = nullptr;
        if (MPI_Win_shared_query(window_, rank, &bytes, &unit, static_cast<void*>(&base)) != MPI_SUCCESS) return false;
        return base != nullptr && bytes > 0;
    }
    bool put(int rank, std::size_t offset, const void* from, std::size_t bytes) override {
        const int count = static_cast<int>(bytes);
        return MPI_Put(from, count, MPI_BYTE, rank, static_cast<MPI_Aint>(offset), count, MPI_BYTE, window_) ==
                   MPI_SUCCESS &&
               MPI_Win_flush(rank, window_) == MPI_SUCCESS;
    }
    bool get(int rank, std::size_t offset, void* to, std::size_t bytes) override {
        const int count = static_cast<int>(bytes);
        return MPI_Get(to, count, MPI_BYTE, rank, static_cast<MPI_Aint>(offset), count, MPI_BYTE, window_) ==
                   MPI_SUCCESS &&
               MPI_Win_flush(rank, window_) == MPI_SUCCESS;
    }

  private:
    static bool did(int error, std::string& why) {
        if (error == MPI_SUCCESS) return true;
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_string(error, text, &length);
        why = text;
        return false;
    }

    int rank_ = 0;
    int size_ = 1;
    MPI_Win window_ = MPI_WIN_NULL;
    bool is_served_ = false;
};

}  // namespace
}  // namespace osc::tools

extern "C" __attribute__((visibility("default"))) osc::tools::HostMpi* osc_check_open() {
    static auto* host = new osc::tools::LinkedHost;
    return host;
}
