// Writes the timeline of this process (OSC_TRACE). Each thread fills chunks of the process's file (file.h), so writing
// takes no lock. A full file drops records and counts them. Off, nothing here is called, except enabled().
#pragma once

#include <cstddef>
#include <span>

#include "base/stamp.h"
#include "trace/record.h"

namespace osc::trace {

namespace detail {
inline constinit bool g_on = false;
inline std::atomic<bool> g_open{false};
}  // namespace detail

/// Whether there is a timeline. Constant from the first call of the program on.
inline bool enabled() {
    return detail::g_on;
}
/// OSC_TRACE asks for one, and the plugin that writes it is loaded. Before the first call of the program.
inline void turn_on() {
    detail::g_on = true;
}

/// Makes the file of this process and begins to record; `rank` and `processes` are those of the job. `ticks`:
/// stamps may be ticks. If the system refuses, prints one line and records nothing. Called once, at the first window.
void open(std::uint32_t rank, std::uint32_t processes, bool ticks);
/// Whether this process has a file that records. Thread-safe, as all functions from here on.
inline bool is_open() {
    return detail::g_open.load(std::memory_order_acquire);
}
/// Ends the recording; the file is complete then. Other threads may add a last record.
void close();

/// Facts of this process's file, from open() on.
struct Facts {
    std::uint64_t run = 0;  // of Header
    std::uint64_t clock = 0;
};
Facts facts();
/// The used part of the file.
std::span<const std::byte> contents();

/// Records a message that only measures clocks.
void note_clock_message(Kind kind, std::uint64_t flow);

/// A new number for the arrow of a message that carries it.
std::uint64_t new_flow();

/// A place in the table of windows, for records; 0 if no file is open.
std::uint16_t add_window(std::uint64_t id, const char* made_by);
/// Sets the name of that place, unless windows share it.
void name_window(std::uint16_t window, const char* name);

namespace detail {
/// Where this thread writes its next record.
struct Writer {
    Record* next = nullptr;
    Record* end = nullptr;
    std::atomic<std::uint64_t>* drops = nullptr;  // of this thread alone, once the file is full
};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local Writer t_writer;
inline std::atomic<std::uint64_t> g_next_pair{~std::uint64_t{0}};  // when note_clock() is due

/// Gives this thread another chunk. False if there is none: counts a drop if a file records.
bool refill();
inline bool refill_or_drop() {
    std::atomic<std::uint64_t>* const drops = t_writer.drops;
    if (drops == nullptr) return refill();
    drops->store(drops->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return false;
}
/// Notes what the two clocks say now.
void note_clock();
}  // namespace detail

/// Whether a record that begins now would be written. False counts it as dropped; then write() must not follow.
inline bool recording() {
    return __builtin_expect(detail::t_writer.next != detail::t_writer.end, 1) || detail::refill_or_drop();
}

/// Writes a record of this thread; the records inside it come before it.
[[gnu::always_inline]] inline void write(std::uint64_t begin, std::uint64_t end, std::uint64_t what,
                                         std::uint64_t value) {
    if (__builtin_expect(detail::t_writer.next == detail::t_writer.end, 0) && !detail::refill_or_drop()) return;
    Record& record = *detail::t_writer.next++;
    // A flush waits until earlier stores have reached the cache: their lines are to be there in time.
    __builtin_prefetch(&record + 16, 1);
    record.begin = begin;
    record.end = end;
    record.value = value;
    record.what.store(what, std::memory_order_release);
    if (__builtin_expect(end >= detail::g_next_pair.load(std::memory_order_relaxed), 0)) detail::note_clock();
}

/// Records the life of this object.
class Span {
  public:
    explicit Span(std::uint64_t what, std::uint64_t value = 0) : what_(what), value_(value) {
        if (__builtin_expect(is_open(), 0) && recording()) begin_ = base::stamp();
    }
    void set_value(std::uint64_t value) { value_ = value; }
    std::uint64_t value() const { return value_; }
    ~Span() {
        if (__builtin_expect(begin_ != 0, 0)) write(begin_, base::stamp(), what_, value_);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

  private:
    const std::uint64_t what_;
    std::uint64_t value_;
    std::uint64_t begin_ = 0;  // 0: not recorded
};

}  // namespace osc::trace
