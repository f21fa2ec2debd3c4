// Runs addr2line, which reads debug information: the preloaded library has no parser of its own. The child process is
// this process's alone, and is awaited by its number.
#include "plugins/verify/symbols.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/clock.h"

extern "C" char** environ;

namespace osc::check {
namespace {

constexpr std::int64_t kLimit = 30'000'000'000;  // ns that the tool may take; a loaded machine is slow
constexpr std::size_t kMostText = 64 * 1024;

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

// The environment without what would load libosc, or another tool, into the child.
std::vector<char*> plain_environment() {
    std::vector<char*> kept;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) kept.push_back(*entry);
    kept.push_back(nullptr);
    return kept;
}

// Reads until the end, or the limit; false at the limit.
bool read_all(int file, std::string& text) {
    const std::int64_t until = now_ns() + kLimit;
    std::array<char, 4096> piece{};
    for (;;) {
        pollfd wait{file, POLLIN, 0};
        const std::int64_t left = (until - now_ns()) / 1'000'000;
        if (left <= 0) return false;
        const int ready = ::poll(&wait, 1, static_cast<int>(left));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        const ssize_t got = ::read(file, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        if (text.size() < kMostText) text.append(piece.data(), static_cast<std::size_t>(got));
    }
}

// What the tool prints; empty if it is not installed or fails.
std::string output_of(const std::vector<std::string>& words) {
    int pipes[2];
    if (::pipe2(pipes, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> arguments;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment = plain_environment();
    pid_t child = -1;
    const int error =
        ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipes[1]);
    std::string text;
    if (error == 0) {
        if (!read_all(pipes[0], text)) {
            ::kill(child, SIGKILL);
            text.clear();
        }
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    ::close(pipes[0]);
    return text;
}

// The innermost inlined frame is what the program's author wrote: the first pair of lines.
std::string by_tool(const LoadedFile& file, std::uint64_t offset) {
    for (const char* tool : {"addr2line", "eu-addr2line"}) {
        const std::string text = output_of({tool, "-f", "-C", "-e", file.path, hexadecimal(offset)});
        const std::size_t end = text.find('\n');
        if (end == std::string::npos) continue;
        const std::string function = text.substr(0, end);
        std::string place = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
        place = place.substr(0, place.find(" (discriminator"));
        if (function.starts_with("??") || place.starts_with("??") || place.find(":?") != std::string::npos ||
            place.ends_with(":0"))
            return {};
        return function + " (" + place + ")";
    }
    return {};
}

}  // namespace

std::string describe(const LoadedFile& file, std::uint64_t offset) {
    // A return address is that of the next instruction, which may belong to another line.
    const std::uint64_t call = offset - 1;
    if (std::string text = by_tool(file, call); !text.empty()) return text;
    std::string text = file.path.substr(file.path.rfind('/') + 1) + "+" + hexadecimal(call);
    Dl_info symbol{};
    const auto* const address = reinterpret_cast<const void*>(file.base + call);
    if (::dladdr(address, &symbol) != 0 && symbol.dli_sname != nullptr)
        text += std::string(" (") + symbol.dli_sname + "+" +
                hexadecimal(file.base + call - reinterpret_cast<std::uintptr_t>(symbol.dli_saddr)) + ")";
    return text;
}

}  // namespace osc::check
