// What each process waits for inside libosc, in shared memory, so that peers can read it while the process does not
// run: the hang reporter's view of a process. A wait that begins to sleep writes a note; its end clears the note. No
// fast path writes here.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace osc::shm {

enum class WaitKind : std::uint32_t {
    None,          // the process does not wait inside libosc
    Other,         // a wait without further description
    Lock,          // the lock of `target`
    Post,          // the post of `target`
    Completes,     // the completes of the exposure epoch's origins
    Barrier,       // all processes in a fence, or in the window's free
    TargetFence,   // `target` in the fence that this process has made
    Closes,        // the close messages of a deferred fence
    Operations,    // operations at `target`, or kEveryTarget
    Notification,  // the counter `target` of this process
    Creation,      // the other processes in the creation of a window
    Finalize,      // no wait: the process has called MPI_Finalize
};

inline constexpr std::uint32_t kEveryTarget = ~std::uint32_t{0};

/// One wait, as its process describes it.
struct WaitNote {
    std::uint64_t window = 0;  // Core::id; 0: no window
    std::int64_t since = 0;    // now_ns(); in a message: the wait's length so far
    WaitKind kind = WaitKind::None;
    std::uint32_t rank = 0;      // of the process, in the window's group
    std::uint32_t target = 0;    // in the window's group
    std::uint32_t barriers = 0;  // ControlBlock::barriers of the process; of a notification: the value awaited
    std::uint32_t threads = 0;   // 1: other threads may use the window meanwhile (MPI_THREAD_MULTIPLE)
    char call[28] = "";          // the MPI function
};
static_assert(std::is_trivially_copyable_v<WaitNote> && sizeof(WaitNote) % sizeof(std::uint64_t) == 0);

/// One process's state, in the first bytes of its arena.
class Activity {
  public:
    /// A copy of the note. Thread-safe, in any process; `kind` is None if the process changes the note all the time.
    WaitNote note() const;
    /// Only the process itself, one thread at a time.
    void write(const WaitNote& note);

    std::atomic<std::uint64_t> identity{0};      // random; equal in every view of this process
    std::atomic<std::uint64_t> host_polls{0};    // how often the host MPI polled for messages
    std::atomic<std::uint32_t> counts_polls{0};  // 1: host_polls counts

  private:
    static constexpr std::size_t kWords = sizeof(WaitNote) / sizeof(std::uint64_t);
    std::atomic<std::uint64_t> version_{0};  // odd while the note changes
    std::atomic<std::uint64_t> words_[kWords]{};
};

/// The activity of this process, which peers see once use_activity() has put it into shared memory. Thread-safe.
Activity& my_activity();
void use_activity(Activity& shared);

/// The MPI function that this thread is in, for notes. Set by the general paths of libosc's entry points.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local const char* t_call = "";

/// What the waits of this thread are for, while the object lives. An inner object hides an outer one.
class WaitScope {
  public:
    WaitScope(WaitKind kind, std::uint64_t window, std::uint32_t rank, std::uint32_t target = 0,
              std::uint32_t barriers = 0);
    ~WaitScope() { t_innermost = before_; }
    WaitScope(const WaitScope&) = delete;
    WaitScope& operator=(const WaitScope&) = delete;

    /// What this thread waits for; null: it is not said.
    static const WaitScope* innermost() { return t_innermost; }
    WaitKind kind() const { return kind_; }
    std::uint64_t window() const { return window_; }
    std::uint32_t target() const { return target_; }

  private:
    friend class WaitWatch;
    [[gnu::tls_model("initial-exec")]] static constinit thread_local const WaitScope* t_innermost;
    const WaitKind kind_;
    const std::uint32_t rank_;
    const std::uint32_t target_;
    const std::uint32_t barriers_;
    const std::uint64_t window_;
    const WaitScope* const before_;
};

/// Called once for a wait that has lasted too long, and once for each demand, by the waiting thread without any lock.
/// It may call the host MPI, and must not wait long.
using ReportWait = void (*)(const WaitNote& note);

/// From now on notes are written, and waits longer than `limit_ns` reported. Thread-safe.
void watch_waits(ReportWait report, std::int64_t limit_ns);
/// Makes every thread that sleeps in a wait report it. Async-signal-safe; false if no thread does.
bool demand_reports();
/// Whether other threads of this process may use windows meanwhile; part of every note.
void set_threaded(bool threaded);
/// Writes a note that stays: this process has called MPI_Finalize.
void note_finalize();

/// One wait's sleeps. Costs nothing before the first look().
class WaitWatch {
  public:
    WaitWatch() = default;
    ~WaitWatch() {
        if (since_ != 0) end();
    }
    WaitWatch(const WaitWatch&) = delete;
    WaitWatch& operator=(const WaitWatch&) = delete;

    /// In each round of the sleeps: writes the note, and reports the wait when it is due.
    void look();

  private:
    void begin();
    void end() const;
    WaitNote describe() const;

    std::int64_t since_ = 0;  // 0: look() has not been called, or no waits are watched
    std::uint32_t demands_ = 0;
    bool reported_ = false;
    bool noted_ = false;  // this thread wrote the process's note
};

}  // namespace osc::shm
