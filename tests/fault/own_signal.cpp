// A program that handles SIGUSR1, or ignores it, keeps its disposition: the hang reporter takes the signal only where
// nothing but the host handles it. Installed before MPI_Init, before the first window, and after it. No window waits,
// so a line of the reporter shows that it acted.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace {

volatile std::sig_atomic_t g_handled = 0;

void handle(int) {
    g_handled = g_handled + 1;
}

void install() {
    struct sigaction ours {};
    ours.sa_handler = &handle;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(SIGUSR1, &ours, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    const char* const when = argc > 1 ? argv[1] : "";
    const auto is = [&](const char* text) { return std::strcmp(when, text) == 0; };
    if (is("before_init")) install();
    MPI_Init(&argc, &argv);
    if (is("before_window")) install();
    if (is("ignored")) std::signal(SIGUSR1, SIG_IGN);
    int* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    if (is("after_window")) install();
    for (int i = 0; i < 3; ++i)
        std::raise(SIGUSR1);
    const int wanted = is("ignored") ? 0 : 3;
    if (g_handled != wanted) std::printf("FAILED: %s: handled %d signals, not %d\n", when, int{g_handled}, wanted);
    MPI_Win_free(&win);
    MPI_Finalize();
    return g_handled == wanted ? 0 : 1;
}
