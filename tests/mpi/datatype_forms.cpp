// Every form of an operation between datatypes of every structure and of 1 to 96,000 pieces, against the host's
// MPI_Pack and MPI_Unpack. The program frees each datatype as soon as the call has returned, and makes another in its
// place.
#include <array>
#include <cstring>

#include "notified.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Rput", "MPI_Rget",
             "MPI_Raccumulate", "MPI_Rget_accumulate")

namespace {

using Element = unsigned;
const MPI_Datatype kElement = MPI_UNSIGNED;

// The largest divisor of `n` up to `most`.
int part(int n, int most) {
    while (n % most != 0)
        --most;
    return most;
}

MPI_Datatype subarray(const std::vector<int>& sizes, const std::vector<int>& parts, int order) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const std::vector<int> first{0, 1, 1};
    MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), parts.data(), first.data(), order, kElement,
                             &type);
    return type;
}

// Blocks of 1 to 3 elements with gaps of 1 to 4.
MPI_Datatype indexed(int n) {
    std::vector<int> lengths, places;
    for (int place = 2, left = n; left > 0; left -= lengths.back()) {
        lengths.push_back(std::min(left, 1 + static_cast<int>(lengths.size() % 7) % 3));
        places.push_back(place);
        place += lengths.back() + 1 + static_cast<int>(places.size() % 5) % 4;
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), kElement, &type);
    return type;
}

// Structures of `n` elements, which do not overlap, except those of the last one.
constexpr struct {
    const char* name;
    void (*make)(int n, MPI_Datatype* type);
} kStructures[] = {
    {"contiguous", [](int n, MPI_Datatype* type) { MPI_Type_contiguous(n, kElement, type); }},
    {"vector", [](int n, MPI_Datatype* type) { MPI_Type_vector(n, 1, 3, kElement, type); }},
    {"backward vector",
     [](int n, MPI_Datatype* type) { MPI_Type_vector(n / part(n, 4), part(n, 4), -9, kElement, type); }},
    {"2-d subarray",
     [](int n, MPI_Datatype* type) {
         const int columns = part(n, 32);
         *type = subarray({n / columns, columns + 5}, {n / columns, columns}, MPI_ORDER_C);
     }},
    {"3-d subarray",
     [](int n, MPI_Datatype* type) {
         const int x = part(n, 6), y = part(n / x, 40);
         *type = subarray({x, y + 1, n / x / y + 2}, {x, y, n / x / y}, MPI_ORDER_FORTRAN);
     }},
    {"indexed", [](int n, MPI_Datatype* type) { *type = indexed(n); }},
    // The last element first, at any byte.
    {"hindexed",
     [](int n, MPI_Datatype* type) {
         std::vector<MPI_Aint> places;
         for (MPI_Aint i = 0; i < n; ++i)
             places.push_back((n - i) * 10 + i % 3);
         MPI_Type_create_hindexed_block(n, 1, places.data(), kElement, type);
     }},
    {"struct",
     [](int n, MPI_Datatype* type) {
         std::array<MPI_Datatype, 3> members{kElement, kElement, kElement};
         MPI_Type_vector(n / 2, 1, 2, kElement, &members[1]);
         const std::array<int, 3> counts{1, 1, n - 1 - n / 2};
         const std::array<MPI_Aint, 3> places{4, 12, 16 + MPI_Aint{n} * 4};
         MPI_Type_create_struct(3, counts.data(), places.data(), members.data(), type);
         MPI_Type_free(&members[1]);
     }},
    {"darray",
     [](int n, MPI_Datatype* type) {
         const int columns = part(n, 30);
         const std::array<int, 2> sizes{2 * n / columns, 2 * columns}, grid{2, 2};
         const std::array<int, 2> ways{MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
         const std::array<int, 2> arguments{MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
         MPI_Type_create_darray(4, 1, 2, sizes.data(), ways.data(), arguments.data(), grid.data(), MPI_ORDER_C,
                                kElement, type);
     }},
    {"nested",
     [](int n, MPI_Datatype* type) {
         const int inner = part(n, 20);
         MPI_Datatype row = indexed(inner), plane = MPI_DATATYPE_NULL;
         const int rows = part(n / inner, 5);
         MPI_Type_create_hvector(rows, 1, 300, row, &plane);
         MPI_Type_create_hvector(n / inner / rows, 1, -2000, plane, type);
         MPI_Type_free(&row);
         MPI_Type_free(&plane);
     }},
    {"resized",
     [](int n, MPI_Datatype* type) {
         MPI_Datatype one = MPI_DATATYPE_NULL;
         MPI_Type_create_resized(kElement, -4, 12, &one);
         MPI_Type_contiguous(n, one, type);
         MPI_Type_free(&one);
     }},
    {"overlapping", [](int n, MPI_Datatype* type) { MPI_Type_vector(n / part(n, 2), part(n, 2), 1, kElement, type); }},
};
constexpr std::size_t kOverlapping = std::size(kStructures) - 1;

// A datatype of `n` elements, and where it begins in a buffer with a margin on both sides of the data.
constexpr MPI_Aint kMargin = 64;
struct Type {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Aint start = 0;
    std::size_t room = 0;

    Type(std::size_t structure, int n) {
        kStructures[structure].make(n, &type);
        MPI_Type_commit(&type);
        MPI_Aint low = 0, bytes = 0;
        MPI_Type_get_true_extent(type, &low, &bytes);
        start = kMargin + std::max(-low, MPI_Aint{0});
        room = static_cast<std::size_t>(start + low + bytes + kMargin);
    }
};

enum class Kind { Put, Get, Accumulate, GetAccumulate };
constexpr std::size_t kKinds = 4;
constexpr const char* kKindNames[kKinds] = {"put", "get", "accumulate", "get_accumulate"};
enum class Way { Plain, Request, Notified, NotifiedRequest };
constexpr std::size_t kWays = 4;
constexpr const char* kWayNames[kWays] = {"", ", request", ", notified", ", notified, request"};

// One form of an operation on one instance of each datatype.
int call(Kind kind, Way way, const void* from, MPI_Datatype here, void* result, MPI_Datatype back, int target,
         MPI_Aint disp, MPI_Datatype there, MPI_Win win) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto issue = [&] {
        // The operation, its request form and those that count a notification, with the same arguments.
        const auto form = [&](auto plain, auto asked, auto notified, auto both, auto... arguments) {
            switch (way) {
                case Way::Plain:
                    return plain(arguments..., win);
                case Way::Request:
                    return asked(arguments..., win, &request);
                case Way::Notified:
                    return notified(arguments..., 0, win);
                default:
                    return both(arguments..., 0, win, &request);
            }
        };
        switch (kind) {
            case Kind::Put:
                return form(MPI_Put, MPI_Rput, OSC_Put_notify, OSC_Rput_notify, from, 1, here, target, disp, 1, there);
            case Kind::Get:
                return form(MPI_Get, MPI_Rget, OSC_Get_notify, OSC_Rget_notify, result, 1, back, target, disp, 1,
                            there);
            case Kind::Accumulate:
                return form(MPI_Accumulate, MPI_Raccumulate, OSC_Accumulate_notify, OSC_Raccumulate_notify, from, 1,
                            here, target, disp, 1, there, MPI_SUM);
            default:
                return form(MPI_Get_accumulate, MPI_Rget_accumulate, OSC_Get_accumulate_notify,
                            OSC_Rget_accumulate_notify, from, 1, here, result, 1, back, target, disp, 1, there,
                            MPI_SUM);
        }
    };
    const int error = issue();
    for (MPI_Datatype* type : {&here, &back, &there})
        MPI_Type_free(type);
    // Takes a freed handle over, for other pieces.
    MPI_Datatype unrelated = MPI_DATATYPE_NULL;
    MPI_Type_vector(3, 9, 11, MPI_DOUBLE, &unrelated);
    MPI_Type_commit(&unrelated);
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(target, win);
    MPI_Type_free(&unrelated);
    return error;
}

using Buffer = std::vector<char>;

Buffer numbered(std::size_t bytes, int seed) {
    Buffer buffer(bytes);
    for (std::size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = static_cast<char>((i * 2654435761u + static_cast<unsigned>(seed) * 40503u) >> 11);
    return buffer;
}
std::vector<Element> packed(const Buffer& from, const Type& type, int n) {
    std::vector<Element> data(static_cast<std::size_t>(n));
    int position = 0;
    MPI_Pack(from.data() + type.start, 1, type.type, data.data(), n * 4, &position, MPI_COMM_SELF);
    CHECK_EQ(position, n * 4);
    return data;
}
void unpack(const std::vector<Element>& data, Buffer& to, const Type& type) {
    int position = 0;
    MPI_Unpack(data.data(), static_cast<int>(data.size() * 4), &position, to.data() + type.start, 1, type.type,
               MPI_COMM_SELF);
}

// Rank `right()` has the window's memory for this rank only, which knows all its bytes.
class Pair {
  public:
    Pair(WindowKind kind, int n) : n_(n), image_(size_for(n)), win_(kind, image_.size(), 1) {}

    void operate(Kind kind, Way way, std::size_t from, std::size_t to) {
        const bool reads = kind == Kind::Get || kind == Kind::GetAccumulate;
        const Type here(from, n_), there(to, n_), back(from == kOverlapping ? 1 : from, n_);
        const Buffer mine = numbered(here.room, ++operations_ + 100 * rank());
        Buffer result = numbered(back.room, 77), wanted_result = result;
        Buffer wanted = image_;
        std::vector<Element> data = packed(mine, here, n_);
        const std::vector<Element> old = packed(image_, there, n_);
        if (reads) unpack(old, wanted_result, back);
        for (std::size_t i = 0; kind != Kind::Put && i < data.size(); ++i)
            data[i] += old[i];
        if (kind != Kind::Get) unpack(data, wanted, there);
        notified_ += way == Way::Notified || way == Way::NotifiedRequest ? 1 : 0;
        const int target = right();
        CHECK_OK(call(kind, way, mine.data() + here.start, here.type, result.data() + back.start, back.type, target,
                      win_.at(target, static_cast<std::size_t>(there.start)), there.type, win_));
        Buffer seen(image_.size());
        const int bytes = static_cast<int>(seen.size());
        MPI_Get(seen.data(), bytes, MPI_BYTE, target, win_.at(target, 0), bytes, MPI_BYTE, win_);
        MPI_Win_flush(target, win_);
        if (seen != wanted || result != wanted_result)
            osct::fail(__FILE__, __LINE__,
                       std::string(seen != wanted ? "target of " : "result of ") +
                           kKindNames[static_cast<std::size_t>(kind)] + kWayNames[static_cast<std::size_t>(way)] +
                           ": " + kStructures[from].name + " to " + kStructures[to].name + " of " + std::to_string(n_));
        image_ = seen;
    }
    // As many as left() has issued.
    void check_notifications() {
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(win_.value(0), notified_);
    }

  private:
    static std::size_t size_for(int n) {
        std::size_t most = 0;
        for (std::size_t structure = 0; structure < kOverlapping; ++structure) {
            Type type(structure, n);
            most = std::max(most, type.room);
            MPI_Type_free(&type.type);
        }
        return most;
    }

    int n_;
    Buffer image_;
    osct::Notified win_;
    int operations_ = 0;
    MPI_Count notified_ = 0;
};

}  // namespace

CASE_BY_KIND(every_form_between_all_structures) {
    for (const int n : {1, 24, 1200, 96000}) {
        Pair pair(kind, n);
        std::size_t form = 0;
        const auto operate = [&](std::size_t from, std::size_t to) {
            // Every form of each pair of 24 elements. Of others every kind in one way, of the largest a single form:
            // all pairs together have every form.
            const std::size_t forms = n == 24 ? kKinds * kWays : n < 10000 ? kKinds : 1;
            for (std::size_t i = 0; i < forms; ++i, ++form)
                pair.operate(static_cast<Kind>(form % kKinds), static_cast<Way>(form / kKinds % kWays), from, to);
        };
        for (std::size_t one = 0; one < kOverlapping; ++one)
            for (std::size_t other = 0; other < kOverlapping; ++other)
                if (n == 24 || one == 0 || other == 0 || other == one + 1) operate(one, other);
        operate(kOverlapping, 0);
        operate(kOverlapping, 1);
        pair.check_notifications();
    }
}
