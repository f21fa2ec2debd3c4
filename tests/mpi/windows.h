// Windows of every kind of memory behind one interface, so that a case is written once and runs on all of them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace osct {

enum class WindowKind { Allocate, Create, CreateAllocMem, Dynamic, Shared };
inline constexpr WindowKind kAllWindowKinds[] = {WindowKind::Allocate, WindowKind::Create, WindowKind::CreateAllocMem,
                                                 WindowKind::Dynamic, WindowKind::Shared};

/// Whether the host MPI sees all processes of a communicator on one node; collective.
bool shares_memory(MPI_Comm comm);

/// A window with the same number of bytes on each rank, zeroed, ready when the constructor returns. The displacement
/// unit is one byte. Collective over the communicator, as is its end.
class Window {
  public:
    Window(WindowKind kind, std::size_t bytes, MPI_Comm comm = MPI_COMM_WORLD, MPI_Info info = MPI_INFO_NULL);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    MPI_Win handle() const { return win_; }
    operator MPI_Win() const { return win_; }
    /// The calling rank's own memory.
    template <class T = char>
    T* base() const {
        return static_cast<T*>(base_);
    }
    /// The target displacement of a byte: an address in dynamic windows, an offset in all others.
    MPI_Aint at(int target, std::size_t byte) const {
        return kind_ == WindowKind::Dynamic
                   ? MPI_Aint_add(addresses_[static_cast<std::size_t>(target)], static_cast<MPI_Aint>(byte))
                   : static_cast<MPI_Aint>(byte);
    }

  private:
    WindowKind kind_;
    MPI_Win win_ = MPI_WIN_NULL;
    void* base_ = nullptr;
    std::vector<MPI_Aint> addresses_;
};

/// A window of all processes that returns its errors.
struct Returning : Window {
    explicit Returning(WindowKind kind = WindowKind::Allocate, std::size_t bytes = 64) : Window(kind, bytes) {
        MPI_Win_set_errhandler(*this, MPI_ERRORS_RETURN);
    }
};

}  // namespace osct

using osct::kAllWindowKinds, osct::Returning, osct::Window, osct::WindowKind;

/// A case that runs on each kind of window, `kind`.
#define CASE_BY_KIND(name)                                               \
    static void case_##name([[maybe_unused]] osct::WindowKind kind);     \
    static const osct::Registrar registrar_##name(OSCT_NAME, #name, [] { \
        for (const osct::WindowKind kind : osct::kAllWindowKinds)        \
            case_##name(kind);                                           \
    });                                                                  \
    static void case_##name([[maybe_unused]] osct::WindowKind kind)
