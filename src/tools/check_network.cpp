// The network between nodes: the interface, and libfabric's providers, opened and probed by libosc's own code.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "fabric/endpoint.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPings = 300;
constexpr std::size_t kPingBytes = 64;
constexpr std::chrono::seconds kPatience{5};
constexpr const char* kReported = "reported under another name";

// An option's value. base::values() would report misspelt options on stderr, which are findings here.
std::string setting(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr ? value : "";
}

// The name of the interface with this IPv4 address, or with the name `wanted`; "" if none is up. `up` receives the
// names of all interfaces with an address.
std::string interface_of(std::uint32_t ipv4, const std::string& wanted, std::string& up) {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return "";
    std::string found;
    for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0) continue;
        const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
        up += (up.empty() ? "" : ", ") + std::string(at->ifa_name);
        if (wanted.empty() ? address->sin_addr.s_addr == ipv4 : wanted == at->ifa_name) found = at->ifa_name;
    }
    ::freeifaddrs(all);
    return found;
}

struct Counted final : fabric::Receiver {
    int messages = 0;
    void received(std::byte*, std::size_t) override { ++messages; }
};

// One side of the ping. A send must end before the next one, because it uses the same operation.
class Side {
  public:
    explicit Side(fabric::Endpoint& endpoint) : endpoint_(endpoint) {
        sending_.operation.ended = [](fabric::Operation& operation, int error) {
            auto& sending = reinterpret_cast<Sending&>(operation);
            sending.under_way = false;
            sending.failed = sending.failed || error != 0;
        };
    }
    bool meet(const fabric::Endpoint& other) { return endpoint_.insert(other.address(), peer_); }
    void poll() { endpoint_.poll(counted_); }
    void sleep(int milliseconds) { endpoint_.sleep(milliseconds, counted_); }
    bool is_sending() const { return sending_.under_way; }
    bool failed() const { return sending_.failed; }
    int messages() const { return counted_.messages; }
    fabric::Posted send() {
        sending_.under_way = true;
        const fabric::Posted posted = endpoint_.send(peer_, message_, sizeof message_, sending_.operation);
        if (posted != fabric::Posted::Yes) sending_.under_way = false;
        return posted;
    }

  private:
    struct Sending {
        fabric::Operation operation;  // first
        bool under_way = false;
        bool failed = false;
    };
    fabric::Endpoint& endpoint_;
    fabric::PeerId peer_ = 0;
    Sending sending_;
    Counted counted_;
    std::byte message_[kPingBytes]{};
};

// Whether a message wakes a thread that sleeps on its receiver: it must come long before the sleep ends by itself. True
// also where the system gives no thread: nothing is proven then.
bool wakes(Side& from, Side& to) try {
    constexpr int kSleep = 1000;
    constexpr std::chrono::milliseconds kPause{30};
    for (int attempt = 0; attempt < 3; ++attempt) {
        const int awaited = to.messages() + 1;
        Clock::time_point came;
        std::thread sleeper([&] {
            const Clock::time_point until = Clock::now() + kPatience;
            while (to.messages() < awaited && Clock::now() < until)
                to.sleep(kSleep);
            came = Clock::now();
        });
        std::this_thread::sleep_for(kPause);
        const Clock::time_point sent = Clock::now();
        fabric::Posted posted = fabric::Posted::Again;
        for (; Clock::now() < sent + kPatience && (posted == fabric::Posted::Again || from.is_sending()); from.poll())
            if (posted == fabric::Posted::Again) posted = from.send();
        sleeper.join();
        if (to.messages() >= awaited && came - sent < std::chrono::milliseconds(kSleep / 2)) return true;
    }
    return false;
} catch (const std::system_error&) {
    return true;
}

// The median time in ns of a message and its reply between two endpoints of this process, which this thread polls in
// turn; 0 with a reason if there is none.
double ping(fabric::Endpoint& one, fabric::Endpoint& other, std::string& why) {
    Side sides[2] = {Side(one), Side(other)};
    if (!sides[0].meet(other) || !sides[1].meet(one)) {
        why = "the endpoints do not accept each other's addresses";
        return 0;
    }
    std::vector<double> times;
    const Clock::time_point until = Clock::now() + kPatience;
    for (int i = 0; i < kPings; ++i) {
        const Clock::time_point begin = Clock::now();
        for (int way = 0; way < 2; ++way) {
            Side& from = sides[way];
            Side& to = sides[1 - way];
            const int awaited = to.messages() + 1;
            fabric::Posted posted = fabric::Posted::Again;
            while (to.messages() < awaited || from.is_sending()) {
                if (posted == fabric::Posted::Again) posted = from.send();
                from.poll();
                to.poll();
                if (posted == fabric::Posted::Failed || posted == fabric::Posted::NoMemory || from.failed() ||
                    Clock::now() > until) {
                    why = Clock::now() > until ? "a message did not arrive" : "a message could not be sent";
                    return 0;
                }
            }
        }
        times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    }
    if (!wakes(sides[0], sides[1])) {
        why = "a message does not wake a thread that sleeps for it";
        return 0;
    }
    std::nth_element(times.begin(), times.begin() + kPings / 2, times.end());
    return times[kPings / 2];
}

// Opens a provider, and reports its abilities. The endpoint, or null if this machine lacks the provider.
std::unique_ptr<fabric::Endpoint> check_provider(Findings& findings, const std::string& name, const std::string& folder,
                                                 std::string& why) {
    const std::string iface = setting("OSC_OFI_IFACE");
    const fabric::Wishes wishes{name.c_str(), iface.c_str(), false, true};
    std::unique_ptr<fabric::Endpoint> endpoint(fabric::open(wishes, why, folder.c_str()));
    if (endpoint == nullptr) return nullptr;
    // libfabric takes the name tcp for tcp;ofi_rxm too.
    for (const Finding& finding : findings)
        if (finding.check == "provider" && finding.data["provider"] == endpoint->provider()) {
            why = kReported;
            return nullptr;
        }
    const std::unique_ptr<fabric::Endpoint> other(fabric::open(wishes, why, folder.c_str()));
    std::string trouble = why;
    const double ns = other != nullptr ? ping(*endpoint, *other, trouble) : 0;
    const std::string flaw = endpoint->flaw();
    const std::string atomics = endpoint->atomics_flaw();
    const std::string adapter = endpoint->adapter();
    const nlohmann::json data = {{"provider", endpoint->provider()},
                                 {"adapter", adapter},
                                 {"round_trip_ns", ns},
                                 {"direct_flaw", flaw},
                                 {"atomics_flaw", atomics},
                                 {"registration", endpoint->registration()},
                                 {"direct_from_bytes", endpoint->direct_from()},
                                 {"largest_transfer_bytes", endpoint->largest_transfer()}};
    const std::string time = base::format("%.1f us", ns / 1000);
    if (ns <= 0)
        add(findings, "provider", State::Problem, std::string(endpoint->provider()) + ": " + trouble,
            "libosc cannot use it: choose another one with OSC_OFI_PROVIDER", data);
    else if (!flaw.empty())
        add(findings, "provider", State::Problem,
            std::string(endpoint->provider()) + ": " + flaw + "; a message and its reply take " + time,
            "results are right, large transfers slower; choose another provider with OSC_OFI_PROVIDER", data);
    else
        add(findings, "provider", State::Ok,
            std::string(endpoint->provider()) + (adapter.empty() ? "" : " on " + adapter) +
                ": direct writes and reads, " + (atomics.empty() ? "atomics" : "no atomics") +
                "; registrations of transfers: " + endpoint->registration() + "; a message and its reply take " + time,
            "", data);
    return endpoint;
}

// False if the user names an interface that is not up: no provider can be opened then.
bool check_interface(Findings& findings, const fabric::Endpoint* endpoint) {
    const std::string wanted = setting("OSC_OFI_IFACE");
    if (endpoint != nullptr && !wanted.empty() && endpoint->adapter() == wanted) return true;
    std::string up;
    const std::uint32_t ipv4 = endpoint != nullptr ? endpoint->ipv4() : 0;
    if (wanted.empty() && ipv4 == 0) return true;  // no IP address, or no provider, which its own finding says
    const std::string found = interface_of(ipv4, wanted, up);
    if (found.empty()) {
        add(findings, "interface", State::Problem, "no interface " + wanted + " with an IPv4 address is up",
            "set OSC_OFI_IFACE to one of: " + up);
        return false;
    }
    char text[INET_ADDRSTRLEN] = "";
    const in_addr in{ipv4};
    const std::string address =
        ipv4 != 0 && ::inet_ntop(AF_INET, &in, text, sizeof text) != nullptr ? text : "its address is not in use";
    const nlohmann::json data = {{"interface", found}, {"address", address}};
    if (ipv4 != 0 && (ntohl(ipv4) >> 24) == IN_LOOPBACKNET)
        add(findings, "interface", State::Note, "the network binds to loopback (" + found + ")",
            "fine on one machine; between machines the host's name must resolve to a network address, or set "
            "OSC_OFI_IFACE to one of: " +
                up,
            data);
    else
        add(findings, "interface", State::Ok, found + " (" + address + ")", "", data);
    return true;
}

}  // namespace

void check_network(Findings& findings, const std::filesystem::path& folder) {
    const std::string wanted = setting("OSC_OFI_PROVIDER");
    std::vector<std::string> names(std::begin(kProviders), std::end(kProviders));
    if (!wanted.empty()) names = {wanted};
    std::string missing;
    std::string why;
    for (const std::string& name : names)
        if (check_provider(findings, name, folder.string(), why) == nullptr && why != kReported)
            missing += (missing.empty() ? "" : ", ") + name;
    const std::string iface = setting("OSC_OFI_IFACE");
    const fabric::Wishes wishes{wanted.c_str(), iface.c_str(), false, false};
    const std::unique_ptr<fabric::Endpoint> first(fabric::open(wishes, why, folder.c_str()));
    if (!check_interface(findings, first.get())) return;
    if (first == nullptr)
        add(findings, "network", State::Problem, "no window can span nodes: " + why,
            wanted.empty() ? "install libfabric with a provider of docs/GUIDE.md on every node, beside libosc's "
                             "libosc_ofi.so"
                           : "OSC_OFI_PROVIDER=" + wanted +
                                 " names a provider that cannot be used here; "
                                 "`fi_info` lists those that can, or unset it");
    else
        add(findings, "network", State::Ok,
            std::string("windows between nodes use ") + first->provider() +
                (missing.empty() ? "" : "; not on this machine: " + missing),
            "", {{"provider", first->provider()}});
}

}  // namespace osc::tools
