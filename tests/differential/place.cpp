// Creates windows and knows where their bytes are.
#include "place.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "report.h"
#include "steps.h"

namespace diff {
namespace {

constexpr std::size_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xd7;

}  // namespace

const char* name_of(Flavor flavor) {
    static const char* const names[] = {"create(malloc)", "create(Alloc_mem)", "allocate", "shared", "dynamic"};
    return names[static_cast<std::size_t>(flavor)];
}

unsigned char* Place::take(std::size_t bytes, std::size_t skew, bool from_mpi, unsigned char*& block) const {
    const std::size_t all = (bytes + skew + 2 * kGuard + 63) / 64 * 64;
    if (from_mpi) {
        check_call(MPI_Alloc_mem(static_cast<MPI_Aint>(all), MPI_INFO_NULL, &block), "MPI_Alloc_mem");
    } else {
        block = static_cast<unsigned char*>(std::aligned_alloc(64, all));
    }
    std::memset(block, kGuardByte, all);
    std::memset(block + kGuard + skew, 0, bytes);
    return block + kGuard + skew;
}

void Place::give(Region& region) const {
    if (region.block == nullptr) return;
    if (region.from_mpi) {
        MPI_Free_mem(region.block);
    } else {
        std::free(region.block);
    }
}

Place::Place(Flavor flavor, bool host_safe, Random& random) : flavor_(flavor) {
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &me_);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<std::size_t> skews;
    const bool odd = !host_safe && random.once_in(2);
    for (int rank = 0; rank < size; ++rank) {
        std::size_t bytes = random.once_in(3) ? 64 + random.below(2000) : 8192 + random.below(40000);
        if (size > 1 && random.once_in(12)) bytes = 0;
        if (!odd) bytes = bytes / 16 * 16;
        sizes_.push_back(bytes);
        units_.push_back(flavor == Flavor::Dynamic ? 1 : random.pick<std::size_t>({1, 2, 3, 4, 8, 8, 12, 16}));
        skews.push_back(odd ? random.below(16) : 0);
    }
    const auto mine = static_cast<std::size_t>(me_);
    const auto bytes = static_cast<MPI_Aint>(sizes_[mine]);
    const int unit = static_cast<int>(units_[mine]);
    regions_.resize(static_cast<std::size_t>(size));
    for (std::size_t rank = 0; rank < regions_.size(); ++rank)
        if (flavor != Flavor::Dynamic) regions_[rank].push_back({0, sizes_[rank], 0, nullptr, nullptr, false});
    MPI_Info info = MPI_INFO_NULL;
    const bool spread = random.once_in(2);
    Region* region = flavor != Flavor::Dynamic ? &regions_[mine].front() : nullptr;
    switch (flavor) {
        case Flavor::CreateMalloc:
        case Flavor::CreateAllocMem:
            region->from_mpi = flavor == Flavor::CreateAllocMem;
            region->memory = take(sizes_[mine], skews[mine], region->from_mpi, region->block);
            check_call(MPI_Win_create(region->memory, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window_),
                       "MPI_Win_create");
            break;
        case Flavor::Allocate:
            check_call(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &region->memory, &window_),
                       "MPI_Win_allocate");
            break;
        case Flavor::Shared:
            if (spread) {
                MPI_Info_create(&info);
                MPI_Info_set(info, "alloc_shared_noncontig", "true");
            }
            check_call(MPI_Win_allocate_shared(bytes, unit, info, MPI_COMM_WORLD, &region->memory, &window_),
                       "MPI_Win_allocate_shared");
            if (spread) MPI_Info_free(&info);
            break;
        default:
            make_dynamic(host_safe, random);
    }
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    if (flavor == Flavor::Allocate || flavor == Flavor::Shared) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me_, 0, window_);
        if (bytes > 0) std::memset(region->memory, 0, static_cast<std::size_t>(bytes));
        MPI_Win_unlock(me_, window_);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

Place::~Place() {
    if (flavor_ == Flavor::Dynamic) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (const Region& region : regions_[static_cast<std::size_t>(me_)])
            check_call(MPI_Win_detach(window_, region.memory), "MPI_Win_detach");
    }
    check_call(MPI_Win_free(&window_), "MPI_Win_free");
    for (Region& region : regions_[static_cast<std::size_t>(me_)])
        give(region);
}

void Place::make_dynamic(bool host_safe, Random& random) {
    check_call(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window_), "MPI_Win_create_dynamic");
    for (std::size_t rank = 0; rank < regions_.size(); ++rank) {
        std::size_t offset = 0;
        while (offset < sizes_[rank]) {
            std::size_t bytes = std::min(sizes_[rank] - offset, 64 + random.below(20000) / 16 * 16);
            if (sizes_[rank] - offset - bytes < 64) bytes = sizes_[rank] - offset;
            Region region{offset, bytes, 0, nullptr, nullptr, random.once_in(2)};
            const std::size_t skew = host_safe || random.once_in(2) ? 0 : random.below(16);
            if (static_cast<int>(rank) == me_) {
                region.memory = take(bytes, skew, region.from_mpi, region.block);
                check_call(MPI_Win_attach(window_, region.memory, static_cast<MPI_Aint>(bytes)), "MPI_Win_attach");
            }
            regions_[rank].push_back(region);
            offset += bytes;
        }
    }
    share_addresses();
}

void Place::share_addresses() {
    for (std::size_t rank = 0; rank < regions_.size(); ++rank) {
        std::vector<MPI_Aint> addresses(regions_[rank].size());
        for (std::size_t i = 0; i < addresses.size(); ++i)
            if (static_cast<int>(rank) == me_) MPI_Get_address(regions_[rank][i].memory, &addresses[i]);
        MPI_Bcast(addresses.data(), static_cast<int>(addresses.size()), MPI_AINT, static_cast<int>(rank),
                  MPI_COMM_WORLD);
        for (std::size_t i = 0; i < addresses.size(); ++i)
            regions_[rank][i].address = addresses[i];
    }
}

std::pair<std::size_t, std::size_t> Place::replace_region(int rank, Random& random) {
    std::vector<Region>& regions = regions_[static_cast<std::size_t>(rank)];
    if (regions.empty()) return {0, 0};
    Region& region = regions[random.below(regions.size())];
    const bool from_mpi = random.once_in(2);
    if (!steps().take([&] { return "another region at rank " + std::to_string(rank); })) return {0, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == me_) {
        Region old = region;
        region.from_mpi = from_mpi;
        region.memory = take(region.bytes, 0, from_mpi, region.block);
        check_call(MPI_Win_detach(window_, old.memory), "MPI_Win_detach");
        check_call(MPI_Win_attach(window_, region.memory, static_cast<MPI_Aint>(region.bytes)), "MPI_Win_attach");
        give(old);
    } else {
        region.from_mpi = from_mpi;
    }
    share_addresses();
    return {region.offset, region.offset + region.bytes};
}

const Place::Region* Place::region_of(int rank, std::ptrdiff_t byte) const {
    for (const Region& region : regions_[static_cast<std::size_t>(rank)])
        if (byte >= static_cast<std::ptrdiff_t>(region.offset) &&
            byte < static_cast<std::ptrdiff_t>(region.offset + region.bytes))
            return &region;
    return nullptr;
}

bool Place::holds(int rank, std::ptrdiff_t low, std::ptrdiff_t high) const {
    const Region* region = region_of(rank, low);
    return region != nullptr && high <= static_cast<std::ptrdiff_t>(region->offset + region->bytes);
}

MPI_Aint Place::displacement(int rank, std::ptrdiff_t start, std::ptrdiff_t low) const {
    if (flavor_ != Flavor::Dynamic) return start / static_cast<std::ptrdiff_t>(unit(rank));
    const Region& region = *region_of(rank, low);
    return MPI_Aint_add(region.address, start - static_cast<std::ptrdiff_t>(region.offset));
}

void Place::load(std::vector<unsigned char>& out) const {
    out.resize(size(me_));
    for (const Region& region : regions_[static_cast<std::size_t>(me_)])
        if (region.bytes > 0) std::memcpy(out.data() + region.offset, region.memory, region.bytes);
}

void Place::store(std::size_t offset, const unsigned char* from, std::size_t bytes) {
    for (; bytes > 0; ++offset, ++from, --bytes) {
        const Region& region = *region_of(me_, static_cast<std::ptrdiff_t>(offset));
        region.memory[offset - region.offset] = *from;
    }
}

bool Place::guards_intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kGuardByte; };
    for (const Region& region : regions_[static_cast<std::size_t>(me_)]) {
        if (region.block == nullptr) continue;
        const unsigned char* end = region.memory + region.bytes;
        if (!std::all_of(static_cast<const unsigned char*>(region.block),
                         static_cast<const unsigned char*>(region.memory), untouched) ||
            !std::all_of(end, end + kGuard - 16, untouched))
            return false;
    }
    return true;
}

}  // namespace diff
