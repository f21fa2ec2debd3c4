// Programs that keep the rules but come near to breaking one. The checker prints nothing about them.
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "cases.h"

namespace corpus {
namespace {

constexpr int kOther = 1;

// ---- epochs

void every_kind_of_epoch() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window); });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    const GroupOf peer(1 - rank());
    MPI_Win_post(peer, 0, window);
    MPI_Win_start(peer, 0, window);
    MPI_Put(&value, 1, MPI_INT, 1 - rank(), 1, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kOther, 0, window);
    MPI_Put(&value, 1, MPI_INT, kOther, 2 + rank(), 1, MPI_INT, window);
    MPI_Win_unlock(kOther, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Put(&value, 1, MPI_INT, kOther, 4 + rank(), 1, MPI_INT, window);
    MPI_Win_unlock_all(window);
}

// Locks and a start are allowed between fences without operations; so is a fence epoch that nobody uses.
void other_epochs_between_fences() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, kOther, 0, window);
    MPI_Put(&value, 1, MPI_INT, kOther, rank(), 1, MPI_INT, window);
    MPI_Win_unlock(kOther, window);
    MPI_Win_fence(0, window);
}

void calls_at_proc_null() {
    IntWindow window;
    int value = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, window);
    MPI_Win_lock_all(0, window);
    MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 1000, 1, MPI_INT, window);
    MPI_Win_flush(MPI_PROC_NULL, window);
    MPI_Win_unlock_all(window);
    MPI_Win_unlock(MPI_PROC_NULL, window);
}

// ---- ranges

void last_element_of_the_window() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 63, 1, MPI_INT, window); });
    MPI_Win_fence(0, window);
}

// The extent of the vector is beyond the end, its data is not; and an access of no bytes may be anywhere.
void extent_beyond_the_window() {
    IntWindow window;
    int values[4] = {1, 2, 3, 4};
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Datatype padded = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 1, 20, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, 4096, &padded);
    MPI_Type_commit(&padded);
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Put(values, 4, MPI_INT, kOther, 3, 1, padded, window);
        MPI_Put(values, 0, MPI_INT, kOther, 1000, 0, MPI_INT, window);
    });
    MPI_Win_fence(0, window);
    MPI_Type_free(&column);
    MPI_Type_free(&padded);
}

void attached_regions_that_touch() {
    static int memory[16];
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, sizeof memory);
    MPI_Aint address = 0;
    MPI_Get_address(memory + 14, &address);
    MPI_Bcast(&address, 1, MPI_AINT, kOther, MPI_COMM_WORLD);
    int values[2] = {1, 2};
    only(0, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kOther, 0, window);
        MPI_Put(values, 2, MPI_INT, kOther, address, 2, MPI_INT, window);
        MPI_Win_unlock(kOther, window);
    });
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
}

// ---- alignment

void bytes_at_odd_displacements() {
    IntWindow window(64, 1);
    const char text[6] = "odd";
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Put(text, 5, MPI_CHAR, kOther, 3, 5, MPI_CHAR, window);
        MPI_Put(text, 4, MPI_BYTE, kOther, 9, 4, MPI_BYTE, window);
    });
    MPI_Win_fence(0, window);
}

// A packed record has its double at an odd place, and says so with a derived datatype.
void packed_record() {
    IntWindow window(64, 1);
    char record[9] = {};
    const int lengths[2] = {1, 1};
    const MPI_Aint displacements[2] = {0, 1};
    const MPI_Datatype members[2] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Datatype packed = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(2, lengths, displacements, members, &packed);
    MPI_Type_commit(&packed);
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(record, 1, packed, kOther, 0, 1, packed, window); });
    MPI_Win_fence(0, window);
    MPI_Type_free(&packed);
}

void aligned_pairs() {
    IntWindow window(64, 8);
    struct {
        double value;
        int place;
    } pair = {1, 0};
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, kOther, 1, 1, MPI_DOUBLE_INT, MPI_MAXLOC, window); });
    MPI_Win_fence(0, window);
}

// ---- local buffers

// Many puts may read one buffer.
void puts_from_one_buffer() {
    IntWindow window;
    int value = 1;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        for (int i = 0; i < 32; ++i)
            MPI_Put(&value, 1, MPI_INT, i % 2, i, 1, MPI_INT, window);
    });
    MPI_Win_unlock_all(window);
}

void gets_into_neighbours() {
    IntWindow window;
    int values[32];
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        for (int i = 0; i < 32; ++i)
            MPI_Get(values + i, 1, MPI_INT, kOther, i, 1, MPI_INT, window);
    });
    MPI_Win_unlock_all(window);
}

// Two vectors interleave without an element in common.
void interleaved_gets() {
    IntWindow window;
    int values[16];
    MPI_Datatype even = MPI_DATATYPE_NULL;
    MPI_Type_vector(8, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Get(values, 1, even, kOther, 0, 8, MPI_INT, window);
        MPI_Get(values + 1, 1, even, kOther, 8, 8, MPI_INT, window);
    });
    MPI_Win_fence(0, window);
    MPI_Type_free(&even);
}

void buffer_reused_after_flush() {
    IntWindow window;
    int value = 0;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        for (int i = 0; i < 8; ++i) {
            MPI_Get(&value, 1, MPI_INT, kOther, i, 1, MPI_INT, window);
            MPI_Win_flush(kOther, window);
            ++value;
            MPI_Put(&value, 1, MPI_INT, kOther, i, 1, MPI_INT, window);
            MPI_Win_flush_local(kOther, window);
            value = 0;
            MPI_Accumulate(&value, 1, MPI_INT, 0, 32, 1, MPI_INT, MPI_SUM, window);
            MPI_Win_flush_local_all(window);
            value = 7;
        }
    });
    MPI_Win_unlock_all(window);
}

// Each kind of call that completes requests.
void requests_completed() {
    constexpr int kMost = 8;
    IntWindow window;
    int out[kMost] = {};
    int in[kMost] = {};
    MPI_Request requests[kMost];
    int flag = 0;
    int done = 0;
    int indices[kMost];
    MPI_Win_lock_all(0, window);
    for (int way = 0; way < 8; ++way) {
        for (int i = 0; i < kMost; ++i)
            if (i % 2 == 0)
                MPI_Rput(out + i, 1, MPI_INT, kOther, 8 * rank() + i, 1, MPI_INT, window, requests + i);
            else
                MPI_Rget(in + i, 1, MPI_INT, kOther, 16 + i, 1, MPI_INT, window, requests + i);
        if (way == 0) MPI_Waitall(kMost, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; way == 1 && i < kMost; ++i)
            MPI_Wait(requests + i, MPI_STATUS_IGNORE);
        for (int i = 0; way == 2 && i < kMost; ++i)
            for (flag = 0; flag == 0;)
                MPI_Test(requests + i, &flag, MPI_STATUS_IGNORE);
        for (int i = 0; way == 3 && i < kMost; ++i)
            MPI_Waitany(kMost, requests, &done, MPI_STATUS_IGNORE);
        for (int left = kMost; way == 4 && left > 0; left -= done)
            MPI_Waitsome(kMost, requests, &done, indices, MPI_STATUSES_IGNORE);
        for (flag = 0; way == 5 && flag == 0;)
            MPI_Testall(kMost, requests, &flag, MPI_STATUSES_IGNORE);
        for (int left = kMost; way == 6 && left > 0; left -= flag)
            MPI_Testany(kMost, requests, &done, &flag, MPI_STATUS_IGNORE);
        for (int left = kMost; way == 7 && left > 0; left -= done)
            MPI_Testsome(kMost, requests, &done, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < kMost; ++i)
            out[i] = in[i] = way;
        MPI_Win_flush(kOther, window);  // the next puts are at the same place
    }
    MPI_Win_unlock_all(window);
}

// More requests than the host has room for: libosc's own are one.
void many_open_requests() {
    constexpr int kMost = 270'000;
    IntWindow window;
    if (std::getenv("OSC_TEST_FULL") == nullptr) return;
    const int value = 1;
    std::vector<MPI_Request> requests(kMost);
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        for (MPI_Request& request : requests)
            MPI_Raccumulate(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, MPI_SUM, window, &request);
        MPI_Waitall(kMost, requests.data(), MPI_STATUSES_IGNORE);
    });
    MPI_Win_unlock_all(window);
}

// A flush completes the operation, and the request is waited for later.
void request_waited_after_the_epoch() {
    IntWindow window;
    int value = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_SHARED, kOther, 0, window);
    MPI_Rput(&value, 1, MPI_INT, kOther, rank(), 1, MPI_INT, window, &request);
    MPI_Win_unlock(kOther, window);
    value = 2;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// MPI_NO_OP does not read the origin buffer.
void no_op_ignores_its_origin() {
    IntWindow window;
    int value = 1;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Fetch_and_op(&value, &value, MPI_INT, kOther, 0, MPI_NO_OP, window);
        MPI_Win_flush(kOther, window);
    });
    MPI_Win_unlock_all(window);
}

// The gaps of the origin buffer may change; the memory may go after the flush.
void gaps_and_freed_memory() {
    IntWindow window;
    int values[8] = {};
    MPI_Datatype even = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Put(values, 1, even, kOther, 0, 4, MPI_INT, window);
        values[1] = values[3] = 1;
        MPI_Win_flush(kOther, window);
        auto* const heap = static_cast<int*>(std::calloc(1024 * 1024, sizeof(int)));
        MPI_Put(heap, 4, MPI_INT, kOther, 0, 4, MPI_INT, window);
        MPI_Win_flush_local(kOther, window);
        std::free(heap);
    });
    MPI_Win_unlock_all(window);
    MPI_Type_free(&even);
}

// ---- datatypes

MPI_Datatype structure(const std::vector<int>& lengths, const std::vector<MPI_Aint>& displacements,
                       const std::vector<MPI_Datatype>& members) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(static_cast<int>(members.size()), lengths.data(), displacements.data(), members.data(),
                           &made);
    MPI_Type_commit(&made);
    return made;
}

// One structure in two forms; MPI_LONG and MPI_INT64_T are the same on this machine.
void equal_signatures() {
    IntWindow window;
    struct {
        int number;
        float weight;
    } pairs[2] = {};
    MPI_Datatype pair = structure({1, 1}, {0, 4}, {MPI_INT, MPI_FLOAT});
    MPI_Datatype other = structure({1, 1}, {4, 0}, {MPI_INT, MPI_FLOAT});
    MPI_Datatype two = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, pair, &two);
    MPI_Type_commit(&two);
    long wide = 1;
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Put(pairs, 2, pair, kOther, 0, 1, two, window);
        MPI_Put(pairs, 2, pair, kOther, 8, 2, other, window);
        MPI_Put(&wide, 1, MPI_LONG, kOther, 16, 1, MPI_INT64_T, window);
    });
    MPI_Win_fence(0, window);
    for (MPI_Datatype* type : {&pair, &other, &two})
        MPI_Type_free(type);
}

// A structure with an array of structures, and the same members one by one.
void nested_structure() {
    IntWindow window;
    struct {
        struct {
            int number;
            float weight;
        } pairs[2];
        double sum;
    } record = {};
    MPI_Datatype pair = structure({1, 1}, {0, 4}, {MPI_INT, MPI_FLOAT});
    MPI_Datatype nested = structure({2, 1}, {0, 16}, {pair, MPI_DOUBLE});
    MPI_Datatype flat =
        structure({1, 1, 1, 1, 1}, {0, 4, 8, 12, 16}, {MPI_INT, MPI_FLOAT, MPI_INT, MPI_FLOAT, MPI_DOUBLE});
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(&record, 1, nested, kOther, 0, 1, flat, window); });
    MPI_Win_fence(0, window);
    for (MPI_Datatype* type : {&pair, &nested, &flat})
        MPI_Type_free(type);
}

// A put may have less data than the target's operand takes.
void shorter_than_the_room() {
    IntWindow window;
    int values[3] = {1, 2, 3};
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(values, 3, MPI_INT, kOther, 0, 8, MPI_INT, window); });
    MPI_Win_fence(0, window);
}

// Nothing moves, so no element differs.
void no_elements() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Put(&value, 0, MPI_INT, kOther, 0, 0, MPI_DOUBLE, window);
        MPI_Put(&value, 0, MPI_INT, kOther, 0, 1, MPI_DOUBLE, window);
    });
    MPI_Win_fence(0, window);
}

}  // namespace

#define OSC_CASE(name) \
    { #name, &name }
const std::vector<Case> kRight = {
    OSC_CASE(every_kind_of_epoch),
    OSC_CASE(other_epochs_between_fences),
    OSC_CASE(calls_at_proc_null),
    OSC_CASE(last_element_of_the_window),
    OSC_CASE(extent_beyond_the_window),
    OSC_CASE(attached_regions_that_touch),
    OSC_CASE(bytes_at_odd_displacements),
    OSC_CASE(packed_record),
    OSC_CASE(aligned_pairs),
    OSC_CASE(puts_from_one_buffer),
    OSC_CASE(gets_into_neighbours),
    OSC_CASE(interleaved_gets),
    OSC_CASE(buffer_reused_after_flush),
    OSC_CASE(requests_completed),
    OSC_CASE(many_open_requests),
    OSC_CASE(request_waited_after_the_epoch),
    OSC_CASE(no_op_ignores_its_origin),
    OSC_CASE(gaps_and_freed_memory),
    OSC_CASE(equal_signatures),
    OSC_CASE(shorter_than_the_room),
    OSC_CASE(no_elements),
    OSC_CASE(nested_structure),
};

}  // namespace corpus
