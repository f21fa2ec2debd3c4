// Reads the files that processes have recorded (file.h), also those of processes that have crashed or still run. A file
// is not trusted: what it says is checked before it is used.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "trace/file.h"

namespace osc::trace {

/// The mapped file of one process.
class File {
  public:
    /// Null, with the reason in `why`, if there is no such file or it is not of this version of libosc.
    static std::unique_ptr<File> open(const std::string& path, std::string& why);
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    /// A thread of the process.
    struct Thread {
        std::uint32_t number = 0;
        bool helper = false;
        std::string name;
    };
    struct Window {
        std::uint64_t id = 0;
        std::string made_by, name;
    };

    std::uint32_t rank() const { return header().rank; }
    std::uint32_t processes() const { return header().processes; }
    std::uint64_t run() const { return header().run; }
    std::int64_t started() const { return header().started; }
    std::uint64_t clock() const { return header().clock; }
    std::string host() const;
    ClockPair first_pair() const { return header().first; }
    ClockPair last_pair() const;
    std::uint64_t dropped() const;
    const std::vector<Thread>& threads() const { return threads_; }
    /// The window of a record; one without an id if the record has none.
    Window window(std::uint16_t number) const;
    /// Calls visit(thread, event) for all records, each thread's in the order of their ends.
    void visit(base::FunctionRef<void(std::uint32_t, const Event&)> visit) const;

  private:
    File(const std::byte* memory, std::size_t bytes);
    const Layout& layout() const { return *reinterpret_cast<const Layout*>(memory_); }
    const Header& header() const { return layout().header; }
    const Chunk& chunk(std::size_t number) const {
        return *reinterpret_cast<const Chunk*>(memory_ + kFirstChunk + number * sizeof(Chunk));
    }

    const std::byte* const memory_;
    const std::size_t bytes_;
    std::size_t chunks_ = 0;  // that threads have taken
    std::vector<Thread> threads_;
};

}  // namespace osc::trace
