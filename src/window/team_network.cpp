// A team that spans nodes: opening the network, telling each other how to be reached, and measuring the way.
#include <algorithm>
#include <bit>

#include "config/options.h"
#include "diag/log.h"
#include "host/host.h"
#include "host/nodes.h"
#include "host/progress_hook.h"
#include "window/team.h"

namespace osc {

bool Team::open_network(bool loopback, bool atomics) {
    const config::Values& options = config::values();
    const ofi::Wishes wishes{options.ofi_provider.c_str(), options.ofi_iface.c_str(), loopback, atomics};
    std::string why;
    if (net::Network::mine().open(wishes, static_cast<int>(options.timeout * 1000), why)) {
        const ofi::Endpoint& endpoint = net::Network::mine().endpoint();
        if (endpoint.flaw()[0] != '\0' && config::verbose("windows"))
            diag::say("%s: %s; all goes by messages", endpoint.provider(), endpoint.flaw());
        if (options.host_polls) host::hook_progress([] { net::Network::mine().host_polls(); });
        return true;
    }
    not_served_ = "the network cannot be used: " + why;
    return false;
}

// Everybody is told of everybody; what is kept of it is one book per node.
int Team::exchange_network(MPI_Comm comm, const Layout& layout, int& reach) {
    std::vector<net::Card> cards(size_);
    const net::Card mine = net::Network::mine().card();
    MPI_Request request = MPI_REQUEST_NULL;
    int error =
        host::real().Iallgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, comm, &request);
    if (error == MPI_SUCCESS) error = host::wait(request);
    if (error != MPI_SUCCESS) return error;
    const bool written = me_ != leader() || write_book(layout, cards);
    cards = {};
    error = host::least(comm, written ? kAll : kNone, reach);
    if (error != MPI_SUCCESS || reach != kAll) return error;
    // Nobody asks before everybody knows him: a message from a stranger is dropped.
    error = host::least(comm, read_book(layout) ? kAll : kNone, reach);
    return error == MPI_SUCCESS && reach == kAll ? measure_network(comm) : error;
}

bool Team::write_book(const Layout& layout, std::span<const net::Card> cards) {
    const auto nodes = static_cast<std::uint32_t>(layout.leaders.size());
    const shm::Piece piece = shm::Arena::mine().allocate(net::Book::bytes_for(size_, nodes), alignof(net::Card), true);
    if (!piece) return false;
    net::Book book = net::Book::at(static_cast<std::byte*>(piece.address), size_, nodes);
    std::copy(cards.begin(), cards.end(), book.cards.begin());
    std::copy(layout.node_of.begin(), layout.node_of.end(), book.node_of.begin());
    std::copy(layout.place_of.begin(), layout.place_of.end(), book.place_of.begin());
    std::copy(layout.leaders.begin(), layout.leaders.end(), book.leaders.begin());
    book.index();
    shared_->book.store(piece.offset, std::memory_order_release);
    return true;
}

// Whoever is in the book is known from then on.
bool Team::read_book(const Layout& layout) {
    const std::uint64_t offset = shared_->book.load(std::memory_order_acquire);
    const auto nodes = static_cast<std::uint32_t>(layout.leaders.size());
    std::byte* const memory = map(leader(), offset, net::Book::bytes_for(size_, nodes));
    if (memory == nullptr) return false;
    job_ = std::make_unique<net::Job>();
    static_cast<net::Book&>(*job_) = net::Book::at(memory, size_, nodes);
    job_->node = layout.node;
    places_->place_of = job_->place_of;
    net::Network::mine().admit(*job_);
    return true;
}

// The first process of each node measures the way to the next node's, and the slowest counts, so that all go by the
// same figures. In ns, and ns for 1,024 bytes, as integers.
int Team::measure_network(MPI_Comm comm) {
    int slowest[] = {0, 0};
    const auto nodes = static_cast<std::uint32_t>(job_->leaders.size());
    if (me_ == leader()) {
        const std::uint32_t next = job_->leaders[(job_->node + 1) % nodes];
        const net::Network::Cost cost = net::Network::mine().measure(job_->cards[next]);
        slowest[0] = static_cast<int>(cost.way);
        slowest[1] = static_cast<int>(cost.byte * 1024);
    }
    const int error = largest(comm, slowest);
    // std::bit_width returns int in C++20 as published, and its argument's type in libstdc++ before GCC 13.
    const auto rounds = static_cast<std::uint32_t>(std::bit_width(nodes - 1));
    costs_ = {static_cast<double>(slowest[0]), static_cast<double>(slowest[1]) / 1024, rounds};
    return error;
}

void Team::forget_network() {
    if (job_ == nullptr) return;
    net::Network::mine().dismiss(*job_);
    const std::uint64_t offset = shared_->book.load(std::memory_order_relaxed);
    unmap(leader(), offset, reinterpret_cast<std::byte*>(job_->cards.data()),
          net::Book::bytes_for(size_, static_cast<std::uint32_t>(job_->leaders.size())));
    job_.reset();
}

}  // namespace osc
