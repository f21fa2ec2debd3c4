// The objects attached to a window: predefined and user attributes, names, error handlers, info; and callbacks that
// query the window, or create and free others, while it is freed.
#include <cstring>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_get_attr", "MPI_Win_get_info", "MPI_Win_get_group", "MPI_Win_free")

using osct::info_value;

namespace {

template <class T>
T* attribute(MPI_Win win, int keyval) {
    void* value = nullptr;
    int found = 0;
    CHECK_OK(MPI_Win_get_attr(win, keyval, static_cast<void*>(&value), &found));
    CHECK(found);
    return static_cast<T*>(value);
}

// The delete callbacks' observations of their windows.
int deleted = 0;
MPI_Win expected = MPI_WIN_NULL;
MPI_Aint expected_bytes = 0;
bool make_another = false;

int on_delete(MPI_Win win, int, void* value, void* extra) {
    ++deleted;
    CHECK(win == expected);
    CHECK(value == &deleted);
    CHECK(extra == &expected);
    // The window still answers.
    CHECK_EQ(*attribute<MPI_Aint>(win, MPI_WIN_SIZE), expected_bytes);
    CHECK_EQ(*attribute<int>(win, MPI_WIN_DISP_UNIT), 8);
    MPI_Group group = MPI_GROUP_NULL;
    CHECK_OK(MPI_Win_get_group(win, &group));
    int members = 0;
    MPI_Group_size(group, &members);
    MPI_Group_free(&group);
    CHECK_EQ(members, size());
    CHECK(info_value(win, "no_locks") != "(none)");
    if (make_another) {
        long* base = nullptr;
        MPI_Win other = MPI_WIN_NULL;
        CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_SELF, &base, &other));
        CHECK(other != win);
        CHECK_OK(MPI_Win_free(&other));
    }
    return MPI_SUCCESS;
}

bool refuse = false;
int refuse_delete(MPI_Win, int, void*, void*) {
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int handled = 0;
int handled_class = 0;
void on_error(MPI_Win*, int* error, ...) {
    ++handled;
    handled_class = osct::error_class(*error);
}

}  // namespace

CASE(predefined_attributes) {
    struct Row {
        int flavor;
        MPI_Aint bytes;
        int unit;
    };
    std::vector<long> own(64);
    // Whole cache lines: the host alone mis-addresses other sizes.
    const auto bytes = static_cast<MPI_Aint>(64 * (rank() + 1));
    for (const Row& row : {Row{MPI_WIN_FLAVOR_CREATE, bytes, 4}, Row{MPI_WIN_FLAVOR_ALLOCATE, bytes, 8},
                           Row{MPI_WIN_FLAVOR_SHARED, bytes, 2}, Row{MPI_WIN_FLAVOR_DYNAMIC, 0, 1}}) {
        if (row.flavor == MPI_WIN_FLAVOR_SHARED && !osct::shares_memory(MPI_COMM_WORLD)) continue;
        void* base = own.data();
        MPI_Win win = MPI_WIN_NULL;
        if (row.flavor == MPI_WIN_FLAVOR_CREATE)
            MPI_Win_create(base, row.bytes, row.unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        else if (row.flavor == MPI_WIN_FLAVOR_ALLOCATE)
            MPI_Win_allocate(row.bytes, row.unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        else if (row.flavor == MPI_WIN_FLAVOR_SHARED)
            MPI_Win_allocate_shared(row.bytes, row.unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        else
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        CHECK_EQ(*attribute<int>(win, MPI_WIN_CREATE_FLAVOR), row.flavor);
        CHECK_EQ(*attribute<int>(win, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
        if (row.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
            CHECK(attribute<void>(win, MPI_WIN_BASE) == MPI_BOTTOM);
            CHECK_EQ(*attribute<MPI_Aint>(win, MPI_WIN_SIZE), MPI_Aint{0});
        } else {
            CHECK(attribute<void>(win, MPI_WIN_BASE) == base);
            CHECK_EQ(*attribute<MPI_Aint>(win, MPI_WIN_SIZE), row.bytes);
            CHECK_EQ(*attribute<int>(win, MPI_WIN_DISP_UNIT), row.unit);
        }
        CHECK_OK(MPI_Win_free(&win));
    }
}

CASE(user_attributes_and_callbacks_that_query) {
    int keyval = MPI_KEYVAL_INVALID;
    CHECK_OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, &expected));
    for (const bool another : {false, true}) {
        make_another = another;
        for (int round = 0; round < 200; ++round) {
            expected_bytes = 8 * (round + 1);
            long* base = nullptr;
            MPI_Win win = MPI_WIN_NULL;
            CHECK_OK(MPI_Win_allocate(expected_bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
            expected = win;
            CHECK_OK(MPI_Win_set_attr(win, keyval, &deleted));
            CHECK(attribute<int>(win, keyval) == &deleted);
            deleted = 0;
            if (round % 2 == 0) {
                CHECK_OK(MPI_Win_delete_attr(win, keyval));
                CHECK_EQ(deleted, 1);
                int found = 1;
                void* value = nullptr;
                CHECK_OK(MPI_Win_get_attr(win, keyval, static_cast<void*>(&value), &found));
                CHECK(!found);
            }
            CHECK_OK(MPI_Win_free(&win));
            CHECK_EQ(deleted, 1);
        }
    }
    make_another = false;
    // A keyval may go before the attributes that use it.
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    expected_bytes = 64;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    expected = win;
    MPI_Win_set_attr(win, keyval, &deleted);
    CHECK_OK(MPI_Win_free_keyval(&keyval));
    deleted = 0;
    CHECK_OK(MPI_Win_free(&win));
    CHECK_EQ(deleted, 1);
}

// A callback that fails keeps the window alive: it can be used, and freed once the attribute lets it.
CASE(callback_that_refuses) {
    OPENMPI_DECIDES("it frees the window");
    HOST_CANNOT("the host alone does not agree on whether the window lives");
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, refuse_delete, &keyval, nullptr);
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_attr(win, keyval, nullptr);
    refuse = true;
    CHECK(MPI_Win_delete_attr(win, keyval) != MPI_SUCCESS);
    int found = 0;
    void* value = nullptr;
    CHECK_OK(MPI_Win_get_attr(win, keyval, static_cast<void*>(&value), &found));
    CHECK(found);
    CHECK(MPI_Win_free(&win) != MPI_SUCCESS);
    const long out = rank();
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(base[0], (rank() + size() - 1L) % size());
    refuse = false;
    CHECK_OK(MPI_Win_free(&win));
    MPI_Win_free_keyval(&keyval);
}

CASE(names) {
    Window window(WindowKind::Allocate, 64);
    char name[MPI_MAX_OBJECT_NAME] = "x";
    int length = -1;
    CHECK_OK(MPI_Win_get_name(window, name, &length));
    CHECK(std::strcmp(name, "") == 0);
    CHECK_EQ(length, 0);
    CHECK_OK(MPI_Win_set_name(window, "halo of the east"));
    CHECK_OK(MPI_Win_get_name(window, name, &length));
    CHECK(std::strcmp(name, "halo of the east") == 0);
    CHECK_EQ(length, 16);
#ifdef MPI_ABI_VERSION
    CHECK(MPI_Win_fromint(MPI_Win_toint(window)) == window);
#else
    CHECK(MPI_Win_f2c(MPI_Win_c2f(window)) == window);
#endif
}

CASE(error_handlers) {
    Window win(WindowKind::Allocate, 64);
    MPI_Errhandler mine = MPI_ERRHANDLER_NULL, now = MPI_ERRHANDLER_NULL;
    CHECK_OK(MPI_Win_get_errhandler(win, &now));
    CHECK(now == MPI_ERRORS_ARE_FATAL);
    CHECK_OK(MPI_Win_create_errhandler(on_error, &mine));
    CHECK_OK(MPI_Win_set_errhandler(win, mine));
    CHECK_OK(MPI_Win_get_errhandler(win, &now));
    CHECK(now == mine);
    MPI_Errhandler_free(&now);
    MPI_Errhandler_free(&mine);
    handled = 0;
    int value = 0;
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK_EQ(handled, 1);
    CHECK_EQ(handled_class, MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_call_errhandler(win, MPI_ERR_RANK));
    CHECK_EQ(handled, 2);
    CHECK_EQ(handled_class, MPI_ERR_RANK);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK_EQ(handled, 2);
}

CASE(alignment_by_info) {
    // "96" and "0x1000" are no alignments, so 64 is in use. MPICH 4.0.2 alone divides by the zero that it reads.
    for (const char* given : {"16", "4096", "65536", "4194304", "96", "0x1000"}) {
        const bool bad = given[0] == '9' || given[1] == 'x';
        if (bad && !osct::served_by_osc()) continue;
        const std::string alignment = bad ? "64" : given;
        const Info info{{"mpi_minimum_memory_alignment", given}};
        char* base = nullptr;
        MPI_Win win = MPI_WIN_NULL;
        CHECK_OK(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win));
        void* block = nullptr;
        CHECK_OK(MPI_Alloc_mem(100, info, &block));
        if (osct::served_by_osc()) {
            CHECK_EQ(reinterpret_cast<std::uintptr_t>(base) % std::stoul(alignment), 0u);
            CHECK_EQ(reinterpret_cast<std::uintptr_t>(block) % std::stoul(alignment), 0u);
            CHECK_EQ(info_value(win, "mpi_minimum_memory_alignment"), alignment);
        }
        std::memset(block, 1, 100);
        MPI_Free_mem(block);
        MPI_Win_free(&win);
    }
}
