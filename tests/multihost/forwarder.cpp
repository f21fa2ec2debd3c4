// An Ethernet switch in user space: gives every host a TAP device eth0 and passes frames between them, later (delay),
// not at all (drop), or not between certain hosts (cut). The kernels that tests meet have no netem.
//
//   forwarder run DELAY_US DROP_PERCENT SEED h0=PID...   PID: a process in that host's network namespace; says "ready"
//   forwarder ask COMMAND...                             on a host: changes what the running one does
//
//   cut A B | cut A      no frame passes between A and B, or A and anybody, those on their way included
//   heal A B | heal A | heal
//   delay US             every frame arrives this much later; a round trip takes twice that
//   drop PERCENT         each frame is lost with this probability, as the seed decides
//   stats                how many frames were forwarded, dropped, cut and lost (not taken by the receiving device)
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "network.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSkipped = 77;
constexpr std::size_t kFrameBytes = 65536;
constexpr std::size_t kAddressBytes = 6;
constexpr std::size_t kHeaderBytes = 14;
// Frames taken from one device before the others get their turn.
constexpr int kTurn = 64;

[[noreturn]] void give_up(const std::string& what) {
    std::fprintf(stderr, "forwarder: %s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);
}

[[noreturn]] void skip(const std::string& why) {
    std::printf("SKIPPED: %s: %s\n", why.c_str(), std::strerror(errno));
    std::exit(kSkipped);
}

/// A host's place in the switch.
struct Port {
    std::string host;
    int tap;
    int control;
};

class Switch {
  public:
    Switch(std::vector<Port> ports, std::uint64_t seed) : ports_(std::move(ports)), random_(seed) {}

    /// One of the commands above; the answer.
    std::string command(const std::string& text);
    /// Reads the frames that host number `from` has sent.
    void take(std::size_t from);
    /// Delivers the frames that are due.
    void deliver();
    /// When the next delayed frame is due.
    bool next_due(Clock::time_point& due) const {
        if (!delayed_.empty()) due = delayed_.front().due;
        return !delayed_.empty();
    }
    const std::vector<Port>& ports() const { return ports_; }

  private:
    using Address = std::array<unsigned char, kAddressBytes>;
    struct Delayed {
        Clock::time_point due;
        std::size_t from, to;
        std::vector<unsigned char> bytes;
    };

    void forward(std::size_t from, const unsigned char* frame, std::size_t bytes);
    void pass(std::size_t from, std::size_t to, const unsigned char* frame, std::size_t bytes);
    void hand_over(std::size_t to, const unsigned char* frame, std::size_t bytes);
    bool is_cut(std::size_t from, std::size_t to) const {
        return cut_.count({std::min(from, to), std::max(from, to)}) != 0;
    }
    bool set_cut(std::istream& words, bool cut);
    bool find(const std::string& host, std::size_t& port) const;

    std::vector<Port> ports_;
    std::map<Address, std::size_t> learned_;
    std::deque<Delayed> delayed_;
    std::set<std::pair<std::size_t, std::size_t>> cut_;
    std::mt19937_64 random_;
    std::chrono::microseconds delay_{0};
    double drop_percent_ = 0;
    unsigned long forwarded_ = 0, dropped_ = 0, cut_off_ = 0, lost_ = 0;
};

void Switch::take(std::size_t from) {
    unsigned char frame[kFrameBytes];
    for (int i = 0; i < kTurn; ++i) {
        const ssize_t bytes = read(ports_[from].tap, frame, sizeof(frame));
        if (bytes < static_cast<ssize_t>(kHeaderBytes)) return;
        forward(from, frame, static_cast<std::size_t>(bytes));
    }
}

void Switch::forward(std::size_t from, const unsigned char* frame, std::size_t bytes) {
    Address destination, source;
    std::copy_n(frame, kAddressBytes, destination.begin());
    std::copy_n(frame + kAddressBytes, kAddressBytes, source.begin());
    learned_[source] = from;
    const auto known = learned_.find(destination);
    if (known != learned_.end()) {
        if (known->second != from) pass(from, known->second, frame, bytes);
        return;
    }
    // Broadcasts are never learned, since nothing is sent by them.
    for (std::size_t to = 0; to < ports_.size(); ++to)
        if (to != from) pass(from, to, frame, bytes);
}

void Switch::pass(std::size_t from, std::size_t to, const unsigned char* frame, std::size_t bytes) {
    if (is_cut(from, to)) {
        ++cut_off_;
        return;
    }
    constexpr std::uint64_t kSteps = 1000000;
    if (drop_percent_ > 0 && static_cast<double>(random_() % kSteps) < drop_percent_ / 100 * double{kSteps}) {
        ++dropped_;
        return;
    }
    if (delay_.count() == 0 && delayed_.empty()) {
        hand_over(to, frame, bytes);
        return;
    }
    // After the delay was shortened, frames must not overtake earlier ones.
    Clock::time_point due = Clock::now() + delay_;
    if (!delayed_.empty()) due = std::max(due, delayed_.back().due);
    delayed_.push_back({due, from, to, {frame, frame + bytes}});
}

void Switch::deliver() {
    while (!delayed_.empty() && delayed_.front().due <= Clock::now()) {
        const Delayed& next = delayed_.front();
        if (is_cut(next.from, next.to))
            ++cut_off_;
        else
            hand_over(next.to, next.bytes.data(), next.bytes.size());
        delayed_.pop_front();
    }
}

void Switch::hand_over(std::size_t to, const unsigned char* frame, std::size_t bytes) {
    if (write(ports_[to].tap, frame, bytes) == static_cast<ssize_t>(bytes))
        ++forwarded_;
    else
        ++lost_;
}

bool Switch::find(const std::string& host, std::size_t& port) const {
    for (port = 0; port < ports_.size(); ++port)
        if (ports_[port].host == host) return true;
    return false;
}

bool Switch::set_cut(std::istream& words, bool cut) {
    std::string first, second;
    std::size_t a = 0, b = 0;
    words >> first >> second;
    if (first.empty()) {
        if (!cut) cut_.clear();
        return !cut;
    }
    if (!find(first, a) || (!second.empty() && (!find(second, b) || a == b))) return false;
    for (std::size_t other = 0; other < ports_.size(); ++other) {
        if (other == a || (!second.empty() && other != b)) continue;
        const std::pair pair{std::min(a, other), std::max(a, other)};
        if (cut)
            cut_.insert(pair);
        else
            cut_.erase(pair);
    }
    return true;
}

std::string Switch::command(const std::string& text) {
    std::istringstream words(text);
    std::string verb;
    words >> verb;
    bool good = false;
    if (verb == "cut" || verb == "heal") {
        good = set_cut(words, verb == "cut");
    } else if (verb == "delay") {
        long microseconds = -1;
        good = words >> microseconds && microseconds >= 0;
        if (good) delay_ = std::chrono::microseconds(microseconds);
    } else if (verb == "drop") {
        double percent = -1;
        good = words >> percent && percent >= 0 && percent <= 100;
        if (good) drop_percent_ = percent;
    } else if (verb == "stats") {
        std::ostringstream out;
        out << "forwarded " << forwarded_ << " dropped " << dropped_ << " cut " << cut_off_ << " lost " << lost_;
        return out.str();
    }
    return good ? "ok" : "error: not understood: " + text;
}

/// Makes the port of h0=PID; this process is in that host's network namespace afterwards.
Port open_port(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) {
        std::fprintf(stderr, "forwarder: not NAME=PID: %s\n", argument.c_str());
        std::exit(2);
    }
    Port port{argument.substr(0, equals), -1, -1};
    const std::string space = "/proc/" + argument.substr(equals + 1) + "/ns/net";
    const int space_fd = open(space.c_str(), O_RDONLY | O_CLOEXEC);
    if (space_fd < 0 || setns(space_fd, CLONE_NEWNET) != 0) give_up(space);
    close(space_fd);

    const char* const device = "/dev/net/tun";
    port.tap = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (port.tap < 0) skip(device);
    ifreq request = {};
    std::strcpy(request.ifr_name, "eth0");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(port.tap, TUNSETIFF, &request) != 0) skip("no TAP device");

    port.control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address;
    const socklen_t length = multihost::control_address(address);
    if (port.control < 0 || bind(port.control, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(port.control, SOMAXCONN) != 0)
        give_up("control socket");
    return port;
}

void serve(Switch& network, int control) {
    const int fd = accept4(control, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    // A client must send at once, because frames do not wait for it.
    const timeval patience{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char text[multihost::kMessageBytes];
    const ssize_t got = recv(fd, text, sizeof(text), 0);
    if (got > 0) {
        const std::string answer = network.command({text, static_cast<std::size_t>(got)});
        if (send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) std::perror("forwarder: answer");
    }
    close(fd);
}

[[noreturn]] void run(Switch& network) {
    const std::size_t hosts = network.ports().size();
    std::vector<pollfd> waits;
    for (const Port& port : network.ports())
        waits.push_back({port.tap, POLLIN, 0});
    for (const Port& port : network.ports())
        waits.push_back({port.control, POLLIN, 0});
    while (true) {
        timespec left = {};
        Clock::time_point due;
        const bool waiting = network.next_due(due);
        if (waiting) {
            const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(due - Clock::now()).count();
            constexpr long kSecond = 1000000000;
            if (ns > 0) left = {ns / kSecond, ns % kSecond};
        }
        if (ppoll(waits.data(), waits.size(), waiting ? &left : nullptr, nullptr) < 0 && errno != EINTR)
            give_up("poll");
        network.deliver();
        for (std::size_t i = 0; i < hosts; ++i) {
            if (waits[i].revents & POLLIN) network.take(i);
            // A device that is gone for good would be reported for ever.
            if (waits[i].revents & (POLLERR | POLLHUP | POLLNVAL) && !(waits[i].revents & POLLIN)) waits[i].fd = -1;
            if (waits[hosts + i].revents & POLLIN) serve(network, waits[hosts + i].fd);
        }
    }
}

int ask(int argc, char** argv) {
    std::string command;
    for (int i = 0; i < argc; ++i)
        command.append(i ? " " : "").append(argv[i]);
    const std::string answer = multihost::ask_network(command);
    if (answer != "ok") std::printf("%s\n", answer.c_str());
    return answer.rfind("error", 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "ask") return ask(argc - 2, argv + 2);
    if (mode != "run" || argc < 6) {
        std::fprintf(stderr,
                     "usage: forwarder run DELAY_US DROP_PERCENT SEED NAME=PID... | forwarder ask COMMAND...\n");
        return 2;
    }
    // Delays are short; the kernel may not round them up to 50 us.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    std::vector<Port> ports;
    for (int i = 5; i < argc; ++i)
        ports.push_back(open_port(argv[i]));
    Switch network(std::move(ports), std::strtoull(argv[4], nullptr, 10));
    for (const std::string& first : {std::string("delay ") + argv[2], std::string("drop ") + argv[3]}) {
        const std::string answer = network.command(first);
        if (answer != "ok") {
            std::fprintf(stderr, "forwarder: %s\n", answer.c_str());
            return 2;
        }
    }
    std::printf("ready\n");
    std::fflush(stdout);
    // The other side reads this one line.
    std::fclose(stdout);
    run(network);
}
