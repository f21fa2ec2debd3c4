// A small harness for MPI test programs: named cases, checks that say file, line, rank and values, one verdict for the
// whole job, and the proof that libosc, when it is preloaded, served every call. harness.cpp holds main().
//
//   OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Win_flush")   // thread level, and the RMA calls that cases make
//   CASE(put_to_all) { SKIP_IF(osct::size() < 2); ...; CHECK_EQ(got, wanted); }
//
// Every rank runs every case in the same order; a case may therefore use collectives, but a check never does. Arguments
// of the program select cases by name; without any, all run and the served calls are proved at the end.
//
// One executable may hold several programs: CMake names each source's program in OSCT_NAME, and the first argument
// chooses one, PROGRAM[:single|serialized|multiple], where the thread level replaces the program's own.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "debug_setting.h"
#include "large_forms.h"

namespace osct {

/// Rank and size of MPI_COMM_WORLD.
int rank();
int size();
/// The next rank of MPI_COMM_WORLD and the one before, in a ring.
inline int right() {
    return (rank() + 1) % size();
}
inline int left() {
    return (rank() + size() - 1) % size();
}
/// True when libosc serves this process (present and not switched off by OSC_DISABLE).
bool served_by_osc();
/// True over Open MPI, by its own ABI and by the standard's.
bool over_openmpi();
/// Whether libosc takes a rank of MPI_COMM_WORLD for one of this rank's node; OSC_DEBUG=fake_nodes makes nodes up.
bool same_node(int peer);
/// Whether it does so for all ranks.
bool on_one_node();
/// A handle that every host knows to be none of its kind: of a communicator, if numbers tell kinds apart.
template <class Handle>
Handle no_handle() {
    if constexpr (std::is_pointer_v<Handle>)
        return nullptr;
    else
        return static_cast<Handle>(MPI_COMM_WORLD);
}
/// A group of ranks of MPI_COMM_WORLD, in this order; the caller frees it.
MPI_Group group_of(const std::vector<int>& ranks);
/// A group of one rank.
class Group {
  public:
    explicit Group(int member) : group_(group_of({member})) {}
    ~Group() { MPI_Group_free(&group_); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    operator MPI_Group() const { return group_; }

  private:
    MPI_Group group_;
};
/// An info object with keys and their values.
class Info {
  public:
    Info(std::initializer_list<std::pair<const char*, const char*>> pairs) {
        MPI_Info_create(&info_);
        for (const auto& [key, value] : pairs)
            MPI_Info_set(info_, key, value);
    }
    ~Info() { MPI_Info_free(&info_); }
    Info(const Info&) = delete;
    Info& operator=(const Info&) = delete;
    operator MPI_Info() const { return info_; }

  private:
    MPI_Info info_ = MPI_INFO_NULL;
};
/// The value of an info key in use; "(none)" without one.
std::string info_value(MPI_Win win, const char* key);
/// True when the long variants of stress cases were asked for (OSC_TEST_FULL=1).
bool full();
/// Seconds of a monotonic clock.
double now();
/// Computes for this many seconds without entering MPI.
void compute(double seconds);
/// Rank `busy` computes outside MPI until all other ranks have run f(). It fails after 10 s: they wait for it.
/// Collective over MPI_COMM_WORLD.
void while_one_computes(int busy, const std::function<void()>& f);
/// Resident memory of this process in KiB, and how many descriptors it has open.
long resident_kib();
int open_descriptors();
/// A statistic of libosc in this process (osc_counter); -1 without libosc.
long long counter(const char* name);
/// The network's atomics that a call costs this process.
template <class Call>
long long atomics(Call&& call) {
    const long long before = counter("network.atomics");
    call();
    return counter("network.atomics") - before;
}

/// Returns the errors of calls that have no window and no communicator of their own, while it lives.
class WithoutObject {
  public:
    WithoutObject() { handle_by(MPI_ERRORS_RETURN); }
    ~WithoutObject() { handle_by(MPI_ERRORS_ARE_FATAL); }
    WithoutObject(const WithoutObject&) = delete;
    WithoutObject& operator=(const WithoutObject&) = delete;

  private:
    static void handle_by(MPI_Errhandler handler) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    }
};

/// A copy of a communicator that returns its errors.
class ReturningComm {
  public:
    explicit ReturningComm(MPI_Comm parent = MPI_COMM_WORLD) {
        MPI_Comm_dup(parent, &comm_);
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    }
    ~ReturningComm() { MPI_Comm_free(&comm_); }
    ReturningComm(const ReturningComm&) = delete;
    ReturningComm& operator=(const ReturningComm&) = delete;
    operator MPI_Comm() const { return comm_; }

  private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

/// What a program declares about itself.
struct Program {
    Program(const char* name, int thread_level, std::initializer_list<std::string> uses);
    std::string name;
    int thread_level;
    std::vector<std::string> uses;
};
/// The thread level that the chosen program runs at.
int thread_level();

class Registrar {
  public:
    Registrar(const char* program, const char* name, void (*body)());
};

/// Counts a failure of this rank and prints it (the first few of each case).
void fail(const char* file, int line, const std::string& what);
void note_skip(const char* why);
std::string error_class_name(int error);
int error_class(int error);

template <class T>
std::string show(const T& value) {
    std::ostringstream out;
    if constexpr (sizeof(T) == 1 && std::is_integral_v<T>)
        out << static_cast<int>(value);
    else
        out << value;
    return out.str();
}

template <class A, class B>
void check_eq(const A& a, const B& b, const char* ea, const char* eb, const char* file, int line) {
    if (a == static_cast<A>(b)) return;
    fail(file, line, std::string(ea) + " is " + show(a) + ", not " + eb + " = " + show(b));
}

/// Compares a buffer with a function of the index; reports the first difference only.
template <class T, class F>
void check_all(const T* data, std::size_t count, F wanted, const char* expr, const char* file, int line) {
    for (std::size_t i = 0; i < count; ++i) {
        const T want = static_cast<T>(wanted(i));
        if (data[i] == want) continue;
        fail(file, line,
             std::string(expr) + "[" + std::to_string(i) + "] of " + std::to_string(count) + " is " + show(data[i]) +
                 ", not " + show(want));
        return;
    }
}

}  // namespace osct

// What nearly every case uses.
using osct::Group, osct::group_of, osct::Info, osct::left, osct::rank, osct::ReturningComm, osct::right, osct::size;

#ifndef OSCT_NAME
#define OSCT_NAME ""
#endif

#define OSCT_PROGRAM(level, ...) static const osct::Program the_program(OSCT_NAME, level, {__VA_ARGS__});

#define CASE(name)                                                                \
    static void case_##name();                                                    \
    static const osct::Registrar registrar_##name(OSCT_NAME, #name, case_##name); \
    static void case_##name()

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) osct::fail(__FILE__, __LINE__, "not true: " #condition); \
    } while (false)
#define CHECK_EQ(a, b) osct::check_eq((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_ALL(data, count, wanted) osct::check_all((data), (count), wanted, #data, __FILE__, __LINE__)

/// An MPI call that must succeed, and one that must fail with a class.
#define CHECK_OK(call)                                                                           \
    do {                                                                                         \
        const int osct_error = (call);                                                           \
        if (osct_error != MPI_SUCCESS)                                                           \
            osct::fail(__FILE__, __LINE__, #call " gave " + osct::error_class_name(osct_error)); \
    } while (false)
#define CHECK_CLASS(call, wanted)                                                                                   \
    do {                                                                                                            \
        const int osct_error = (call);                                                                              \
        if (osct::error_class(osct_error) != (wanted))                                                              \
            osct::fail(__FILE__, __LINE__, #call " gave " + osct::error_class_name(osct_error) + ", not " #wanted); \
    } while (false)

/// Leaves the case when it does not apply; the condition must be the same on all ranks.
#define SKIP_IF(condition)               \
    do {                                 \
        if (condition) {                 \
            osct::note_skip(#condition); \
            return;                      \
        }                                \
    } while (false)
/// Leaves the case over Open MPI, which decides what it checks.
#define OPENMPI_DECIDES(why)        \
    do {                            \
        if (osct::over_openmpi()) { \
            osct::note_skip(why);   \
            return;                 \
        }                           \
    } while (false)
/// Leaves the case when the host alone runs it and is known to be wrong or to refuse.
#define HOST_CANNOT(why)              \
    do {                              \
        if (!osct::served_by_osc()) { \
            osct::note_skip(why);     \
            return;                   \
        }                             \
    } while (false)
