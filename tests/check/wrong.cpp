// Programs that break one rule each. The runner reads the comments of this file: see cases.h. It reads one file for a
// program, so this one may be longer than others.
#include <cstddef>

#include "cases.h"

namespace corpus {
namespace {

constexpr int kOther = 1;

// ---- epoch misuse

void put_outside_epoch() {
    IntWindow window;
    int value = 1;
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window); });  // reported: epoch misuse
}

void unlock_without_lock() {
    IntWindow window;
    only(0, [&] { MPI_Win_unlock(kOther, window); });  // reported: epoch misuse
}

void flush_of_unlocked_rank() {
    IntWindow window;
    only(0, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);  // reported: epoch misuse
        MPI_Win_flush(kOther, window);                // reported: epoch misuse
        MPI_Win_unlock(0, window);
    });
}

void lock_all_inside_lock() {
    IntWindow window;
    only(0, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);  // reported: epoch misuse
        MPI_Win_lock_all(0, window);                  // reported: epoch misuse
        MPI_Win_unlock(0, window);
    });
}

void request_in_fence_epoch() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);  // reported: epoch misuse
    only(0, [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rput(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window, &request);  // reported: epoch misuse
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    MPI_Win_fence(0, window);
}

void request_in_start_epoch() {
    IntWindow window;
    const GroupOf other(1 - rank());
    int value = 0;
    only(1, [&] { MPI_Win_post(other, 0, window); });
    only(0, [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Win_start(other, 0, window);                                        // reported: epoch misuse
        MPI_Rget(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window, &request);  // reported: epoch misuse
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_complete(window);
    });
    only(1, [&] { MPI_Win_wait(window); });
}

void local_flush_of_unlocked_rank() {
    IntWindow window;
    only(0, [&] {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kOther, 0, window);  // reported: epoch misuse
        MPI_Win_flush_local(0, window);                       // reported: epoch misuse
        MPI_Win_unlock(kOther, window);
    });
}

void freed_without_a_closing_fence() {
    MPI_Win window = MPI_WIN_NULL;
    int* base = nullptr;
    int value = 1;
    MPI_Win_allocate(sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &window);
    MPI_Win_fence(0, window);  // reported: epoch misuse
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window); });
    MPI_Win_free(&window);  // reported: epoch misuse
}

// ---- false asserts

void precedes_after_all() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window); });
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);  // reported: false assert
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

void updated_after_noput() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(MPI_MODE_NOPUT, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window); });
    MPI_Win_fence(0, window);  // reported: false assert
}

// ---- access out of range

void put_beyond_the_window() {
    IntWindow window;
    int values[2] = {1, 2};
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(values, 2, MPI_INT, kOther, 63, 2, MPI_INT, window); });  // reported: access out of range
    MPI_Win_fence(0, window);
}

void negative_displacement() {
    IntWindow window;
    int value = 0;
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Get(&value, 1, MPI_INT, kOther, -1, 1, MPI_INT, window); });  // reported: access out of range
    MPI_Win_fence(0, window);
}

// Only the last block of the vector is outside.
void vector_beyond_the_window() {
    IntWindow window;
    int values[4] = {};
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 1, 20, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(values, 4, MPI_INT, kOther, 4, 1, column, window); });  // reported: access out of range
    MPI_Win_fence(0, window);
    MPI_Type_free(&column);
}

void address_not_attached() {
    static int memory[16];
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_attach(window, memory, 8 * sizeof(int));
    MPI_Aint address = 0;
    MPI_Get_address(memory + 8, &address);
    MPI_Bcast(&address, 1, MPI_AINT, kOther, MPI_COMM_WORLD);
    int value = 1;
    only(0, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kOther, 0, window);
        MPI_Put(&value, 1, MPI_INT, kOther, address, 1, MPI_INT, window);  // reported: access out of range
        MPI_Win_unlock(kOther, window);
    });
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
}

// ---- misaligned access

void misaligned_accumulate() {
    IntWindow window(64, 1);
    double x = 1;
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Accumulate(&x, 1, MPI_DOUBLE, kOther, 4, 1, MPI_DOUBLE, MPI_SUM, window);  // reported: misaligned access
    });
    MPI_Win_fence(0, window);
}

void misaligned_fetch() {
    IntWindow window(64, 2);
    int one = 1;
    int before = 0;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Fetch_and_op(&one, &before, MPI_INT, kOther, 3, MPI_SUM, window);  // reported: misaligned access
        MPI_Win_flush(kOther, window);
    });
    MPI_Win_unlock_all(window);
}

void misaligned_put() {
    IntWindow window(64, 1);
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 6, 1, MPI_INT, window); });  // reported: misaligned access
    MPI_Win_fence(0, window);
}

// ---- local buffer in use

void two_gets_into_one_buffer() {
    IntWindow window;
    int values[4] = {};
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Get(values, 3, MPI_INT, kOther, 0, 3, MPI_INT, window);      // reported: local buffer in use
        MPI_Get(values + 2, 2, MPI_INT, kOther, 8, 2, MPI_INT, window);  // reported: local buffer in use
    });
    MPI_Win_unlock_all(window);
}

void put_from_an_unfinished_get() {
    IntWindow window;
    int value = 0;
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Get(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window);  // reported: local buffer in use
        MPI_Put(&value, 1, MPI_INT, kOther, 8, 1, MPI_INT, window);  // reported: local buffer in use
    });
    MPI_Win_fence(0, window);
}

// The flush is at the other target.
void buffer_reused_after_the_wrong_flush() {
    IntWindow window;
    int value = 0;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Get(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window);  // reported: local buffer in use
        MPI_Win_flush(0, window);
        MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);  // reported: local buffer in use
        MPI_Win_flush(0, window);
    });
    MPI_Win_unlock_all(window);
}

void fetch_into_its_own_operand() {
    IntWindow window;
    int value = 1;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Fetch_and_op(&value, &value, MPI_INT, kOther, 0, MPI_SUM, window);  // reported: local buffer in use
        MPI_Win_flush(kOther, window);
    });
    MPI_Win_unlock_all(window);
}

// ---- origin buffer changed

void put_then_changed() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] {
        MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window);  // reported: origin buffer changed
        value = 2;
    });
    MPI_Win_fence(0, window);  // reported: origin buffer changed
}

// Every second element belongs to the put.
void accumulate_then_changed() {
    IntWindow window;
    int values[8] = {};
    MPI_Datatype odd = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 1, 2, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    only(0, [&] {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kOther, 0, window);
        MPI_Accumulate(values, 1, odd, kOther, 0, 4, MPI_INT, MPI_SUM, window);  // reported: origin buffer changed
        values[6] = 1;
        MPI_Win_unlock(kOther, window);  // reported: origin buffer changed
    });
    MPI_Type_free(&odd);
    MPI_Barrier(MPI_COMM_WORLD);
}

void request_buffer_changed() {
    IntWindow window;
    int value = 1;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rput(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window, &request);  // reported: origin buffer changed
        value = 2;
        MPI_Wait(&request, MPI_STATUS_IGNORE);  // reported: origin buffer changed
    });
    MPI_Win_unlock_all(window);
}

// ---- request never completed

void request_forgotten() {
    IntWindow window;
    static int value = 1;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rput(&value, 1, MPI_INT, kOther, 0, 1, MPI_INT, window, &request);  // reported: request never completed
    });
    MPI_Win_unlock_all(window);
}

void request_freed() {
    IntWindow window;
    int before = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kOther, 0, window);
    MPI_Request request = MPI_REQUEST_NULL;
    only(0, [&] {
        MPI_Rget(&before, 1, MPI_INT, kOther, 0, 1, MPI_INT, window, &request);  // reported: request never completed
        MPI_Request_free(&request);                                              // reported: request never completed
    });
    MPI_Win_unlock(kOther, window);
}

// ---- datatype mismatch

void int_into_float() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 1, MPI_FLOAT, window); });  // reported: datatype mismatch
    MPI_Win_fence(0, window);
}

// The structure has an int and a float; the third element differs.
void struct_into_ints() {
    IntWindow window;
    struct Pair {
        int number;
        float weight;
    } pairs[2] = {};
    const int lengths[2] = {1, 1};
    const MPI_Aint displacements[2] = {offsetof(Pair, number), offsetof(Pair, weight)};
    const MPI_Datatype members[2] = {MPI_INT, MPI_FLOAT};
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(2, lengths, displacements, members, &pair);
    MPI_Type_commit(&pair);
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Get(pairs, 2, pair, kOther, 0, 4, MPI_INT, window); });  // reported: datatype mismatch
    MPI_Win_fence(0, window);
    MPI_Type_free(&pair);
}

// libosc serves the next five, as MPICH and Open MPI do.
void bytes_replace_a_long() {
    const IntWindow window(64, 1);
    char bytes[8] = {};
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Accumulate(bytes, 8, MPI_BYTE, kOther, 0, 1, MPI_LONG, MPI_REPLACE, window);  // reported: datatype mismatch
    });
    MPI_Win_unlock_all(window);
}

void result_of_another_type() {
    const IntWindow window(64, 1);
    const long one = 1;
    char bytes[8] = {};
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Get_accumulate(&one, 1, MPI_LONG, bytes, 8, MPI_BYTE, kOther, 0, 1,  // reported: datatype mismatch
                           MPI_LONG, MPI_SUM, window);
    });
    MPI_Win_unlock_all(window);
}

void integers_of_the_other_sign() {
    const IntWindow window;
    const long wide = -1;
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Accumulate(&wide, 1, MPI_LONG, kOther, 0, 1,  // reported: datatype mismatch
                       MPI_UNSIGNED_LONG, MPI_SUM, window);
    });
    MPI_Win_unlock_all(window);
}

void data_onto_no_elements() {
    const IntWindow window;
    int value = 1;
    MPI_Win_lock_all(0, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, kOther, 0, 0, MPI_INT, window); });  // reported: datatype mismatch
    MPI_Win_unlock_all(window);
}

void sum_of_bytes() {
    const IntWindow window(64, 1);
    const char bytes[8] = {};
    MPI_Win_lock_all(0, window);
    only(0, [&] {
        MPI_Accumulate(bytes, 8, MPI_BYTE, kOther, 0, 8, MPI_BYTE, MPI_SUM, window);  // reported: invalid argument
    });
    MPI_Win_unlock_all(window);
}

void more_data_than_room() {
    IntWindow window;
    int values[4] = {};
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(values, 4, MPI_INT, kOther, 0, 3, MPI_INT, window); });  // reported: datatype mismatch
    MPI_Win_fence(0, window);
}

// ---- unmatched post or start: these never end, and run alone

// Both wait for the post of the other.
void starts_without_posts() {
    IntWindow window;
    const GroupOf peer(1 - rank());
    MPI_Win_start(peer, 0, window);  // waits for ever: unmatched post or start
    MPI_Win_complete(window);        // waits for ever: unmatched post or start
}

// Both wait for the start of the other.
void waits_without_starts() {
    IntWindow window;
    const GroupOf peer(1 - rank());
    MPI_Win_post(peer, 0, window);  // waits for ever: unmatched post or start
    MPI_Win_wait(window);           // waits for ever: unmatched post or start
}

// ---- windows never freed

void window_forgotten() {
    MPI_Win window = MPI_WIN_NULL;
    int* base = nullptr;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);  // reported: window never freed
}

void window_forgotten_in_an_epoch() {
    static int memory[4];
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);  // reported: window never freed
    MPI_Win_lock_all(0, window);                                                       // reported: window never freed
}

// ---- invalid arguments

void no_such_rank() {
    IntWindow window;
    int value = 1;
    MPI_Win_fence(0, window);
    only(0, [&] { MPI_Put(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, window); });  // reported: invalid argument
    MPI_Win_fence(0, window);
}

void lock_of_no_kind() {
    IntWindow window;
    only(0, [&] { MPI_Win_lock(0, kOther, 0, window); });  // reported: invalid argument
}

}  // namespace

#define OSC_CASE(name) \
    { #name, &name }
const std::vector<Case> kWrong = {
    OSC_CASE(put_outside_epoch),
    OSC_CASE(unlock_without_lock),
    OSC_CASE(flush_of_unlocked_rank),
    OSC_CASE(lock_all_inside_lock),
    OSC_CASE(request_in_fence_epoch),
    OSC_CASE(request_in_start_epoch),
    OSC_CASE(local_flush_of_unlocked_rank),
    OSC_CASE(freed_without_a_closing_fence),
    OSC_CASE(precedes_after_all),
    OSC_CASE(updated_after_noput),
    OSC_CASE(put_beyond_the_window),
    OSC_CASE(negative_displacement),
    OSC_CASE(vector_beyond_the_window),
    OSC_CASE(address_not_attached),
    OSC_CASE(misaligned_accumulate),
    OSC_CASE(misaligned_fetch),
    OSC_CASE(misaligned_put),
    OSC_CASE(two_gets_into_one_buffer),
    OSC_CASE(put_from_an_unfinished_get),
    OSC_CASE(buffer_reused_after_the_wrong_flush),
    OSC_CASE(fetch_into_its_own_operand),
    OSC_CASE(put_then_changed),
    OSC_CASE(accumulate_then_changed),
    OSC_CASE(request_buffer_changed),
    OSC_CASE(request_forgotten),
    OSC_CASE(request_freed),
    OSC_CASE(int_into_float),
    OSC_CASE(struct_into_ints),
    OSC_CASE(bytes_replace_a_long),
    OSC_CASE(result_of_another_type),
    OSC_CASE(integers_of_the_other_sign),
    OSC_CASE(data_onto_no_elements),
    OSC_CASE(sum_of_bytes),
    OSC_CASE(more_data_than_room),
    OSC_CASE(window_forgotten),
    OSC_CASE(window_forgotten_in_an_epoch),
    OSC_CASE(no_such_rank),
    OSC_CASE(lock_of_no_kind),
};

const std::vector<Case> kHanging = {
    OSC_CASE(starts_without_posts),
    OSC_CASE(waits_without_starts),
};

}  // namespace corpus
