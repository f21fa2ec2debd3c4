#include "shm/attachment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/options.h"
#include "base/pages.h"
#include "shm/arena.h"
#include "shm/vm_areas.h"

namespace osc::shm {
namespace {

// Whether the system reaches the byte in the way in which it does for other processes. Where it refuses such accesses
// altogether, that says nothing.
bool is_ordinary(std::uintptr_t address) {
    char byte = 0;
    const iovec here{&byte, 1};
    const iovec there{reinterpret_cast<void*>(address), 1};
    return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

// Takes one area after the other from `next`; `at` ends behind the fit ones.
template <class Next>
bool is_fit(std::uintptr_t at, std::uintptr_t end, Next&& next) {
    for (VmArea area; at < end && next(at, area);) {
        if (area.end <= at) continue;
        if (area.first > at || !area.readable || !area.writable || !is_ordinary(at)) return false;
        at = area.end;
    }
    return at >= end;
}

// Copies by the system, which reports an address that cannot be read instead of raising SIGBUS.
bool copy_safely(const void* from, void* to, std::size_t bytes) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    const auto wanted = static_cast<ssize_t>(bytes);
    const bool copied = ::write(ends[1], from, bytes) == wanted && ::read(ends[0], to, bytes) == wanted;
    ::close(ends[0]);
    ::close(ends[1]);
    return copied;
}

void* attach_pages(base::Xpmem::Permit permit, std::uint64_t first, std::size_t bytes) {
    return base::xpmem()->attach({permit, static_cast<off_t>(first)}, bytes, nullptr);
}

// All attachments of this process, for the handler of SIGBUS.
class Attachments {
  public:
    static Attachments& mine() {
        static auto& all = *new Attachments;
        return all;
    }

    void* attach(base::Xpmem::Permit from, std::uint64_t first, std::size_t bytes, Permit& permit) {
        const std::lock_guard lock(mutex_);
        install();
        void* const place = attach_pages(from, first, bytes);
        if (place == MAP_FAILED) return place;
        const Fault fault = base::attempt([&] {
            all_[static_cast<std::byte*>(place)] = {bytes, &permit, false};
            return Fault::None;
        });
        if (fault == Fault::None) return place;
        base::xpmem()->detach(place);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void detach(std::byte* place) {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(place);
        OSC_ASSERT(found != all_.end());
        if (found->second.lost)
            ::munmap(place, found->second.bytes);
        else
            base::xpmem()->detach(place);
        all_.erase(found);
    }
    // Makes the attachment with this address memory of this process, if its owner has died. The owner's permit is then
    // in `died`, unless another thread has done the same. False if the signal is for others.
    bool replace(std::byte* address, Permit*& died) {
        const std::lock_guard lock(mutex_);
        const auto after = all_.upper_bound(address);
        if (after == all_.begin()) return false;
        auto& [first, one] = *std::prev(after);
        if (address >= first + one.bytes) return false;
        if (one.lost) return true;
        if (one.permit->shows()) {
            base::say("memory of a window at another process is unmapped or protected there, but the window lives");
            return false;
        }
        base::xpmem()->detach(first);
        void* const pages = ::mmap(first, one.bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        if (pages == MAP_FAILED) return false;
        one.lost = true;
        died = one.permit;
        died->lose();
        return true;
    }

  private:
    struct One {
        std::size_t bytes;
        Permit* permit;
        bool lost;  // its pages are this process's own now
    };
    void install();

    std::mutex mutex_;
    std::map<std::byte*, One> all_;  // by their first byte
    bool is_installed_ = false;
};

struct sigaction g_before;
std::atomic<void (*)(const Permit&)> g_lost{nullptr};

// The default ends the process by the instruction, which runs again.
void pass_on(int number, siginfo_t* info, void* context) {
    if ((g_before.sa_flags & SA_SIGINFO) != 0) return g_before.sa_sigaction(number, info, context);
    if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) return g_before.sa_handler(number);
    struct sigaction fatal {};
    fatal.sa_handler = SIG_DFL;
    ::sigaction(number, &fatal, nullptr);
    if (info->si_code <= 0) ::raise(number);
}

void on_bus_error(int number, siginfo_t* info, void* context) {
    const int error = errno;
    Permit* died = nullptr;
    if (info->si_code != BUS_ADRERR || !Attachments::mine().replace(static_cast<std::byte*>(info->si_addr), died))
        pass_on(number, info, context);
    else if (void (*const lost)(const Permit&) = g_lost.load(std::memory_order_acquire);
             died != nullptr && lost != nullptr)
        lost(*died);
    errno = error;
}

// In front of the handler that is there now. Once: one that the program sets later may call this one.
void Attachments::install() {
    if (std::exchange(is_installed_, true)) return;
    ::sigaction(SIGBUS, nullptr, &g_before);
    struct sigaction ours {};
    ours.sa_sigaction = &on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

void on_loss(void (*lost)(const Permit&)) {
    g_lost.store(lost, std::memory_order_release);
}

bool offer_memory(const void* base, std::size_t bytes) {
    if (!base::values().xpmem) return false;
    static const bool kShown = [] {
        const base::Xpmem::Segment segment = base::show_memory();
        if (segment > 0) Arena::mine().publish(segment);
        return segment > 0;
    }();
    if (!kShown) return false;
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    if (is_fit(first, first + bytes, area_at)) return true;
    VmAreas areas;  // for kernels that list areas only
    return is_fit(first, first + bytes, [&](std::uintptr_t, VmArea& area) { return areas.next(area); });
}

Permit::~Permit() {
    if (permit_ > 0) base::xpmem()->release(permit_);
}

bool Permit::obtain(const ArenaHeader& owner) {
    if (permit_ != 0) return permit_ != kRefused;
    const base::Xpmem::Segment segment = owner.segment.load(std::memory_order_acquire);
    if (segment <= 0 || !base::values().xpmem || base::xpmem() == nullptr) return false;
    owner_ = &owner;
    permit_ = base::xpmem()->get(segment, base::Xpmem::kReadAndWrite, base::Xpmem::kMode, nullptr);
    if (permit_ > 0 && shows()) return true;
    if (permit_ > 0) base::xpmem()->release(permit_);
    permit_ = kRefused;
    return false;
}

bool Permit::shows() const {
    const std::uint64_t page = base::page_down(owner_->constant.address);
    void* const place = attach_pages(permit_, page, base::page_bytes());
    if (place == MAP_FAILED) return false;
    std::uint64_t token = 0;
    const std::byte* const shown = static_cast<std::byte*>(place) + (owner_->constant.address - page);
    const bool right = copy_safely(shown, &token, sizeof token) && token == owner_->constant.token;
    base::xpmem()->detach(place);
    return right;
}

std::byte* Permit::attach(std::uint64_t address, std::size_t bytes) {
    const std::uintptr_t start = base::page_down(address);
    const std::size_t length = base::page_up(address + bytes) - start;
    void* const place = Attachments::mine().attach(permit_, start, length, *this);
    if (place == MAP_FAILED) return nullptr;
    return static_cast<std::byte*>(place) + (address - start);
}

void Permit::detach(std::byte* place) {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    Attachments::mine().detach(place - (address - base::page_down(address)));
}

}  // namespace osc::shm
