// Finds the host MPI. Libraries with another ABI than libosc is built for are recognised by functions and data that
// only they have: libosc reads none of their handles, and calls only what may be called at any time. Build: start
#include "host/real.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "abi/recognise.h"
#include "host/lacking.h"

namespace osc::host {

namespace detail {
Real g_real;
}

namespace {

constexpr const char* kHostFunction = "PMPI_Initialized";  // every MPI library has it; libosc does not

void* g_library = nullptr;  // the host's library, opened
NextSymbol* g_next = nullptr;

// The library behind libosc in the search order that defines `symbol`, or null.
void* open_next(const char* symbol) {
    Dl_info info{};
    void* const address = next_symbol(symbol);
    if (address == nullptr || ::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return nullptr;
    return ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

// The process's libraries whose file name starts like an MPI library's.
std::vector<std::string> mpi_files() {
    std::vector<std::string> files;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* found) {
            const char* slash = std::strrchr(info->dlpi_name, '/');
            const char* name = slash != nullptr ? slash + 1 : info->dlpi_name;
            if (std::strncmp(name, "libmpi", 6) == 0)
                static_cast<std::vector<std::string>*>(found)->emplace_back(info->dlpi_name);
            return 0;
        },
        &files);
    return files;
}

// One outside the search order, which a language binding has opened with RTLD_LOCAL, and which defines `symbol`. Null
// if there is none.
void* open_hidden(const char* symbol) {
    for (const std::string& file : mpi_files()) {
        void* const handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (handle != nullptr && loader_dlsym()(handle, symbol) != nullptr) return handle;
        if (handle != nullptr) ::dlclose(handle);
    }
    return nullptr;
}

// The addresses of a library; none if no library has been found.
struct Span {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool contains(const void* address) const {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return at >= begin && at < end;
    }
};

Span g_host;

// Those of the library that has `address`. dladdr would look at each symbol of the library, thousands in an MPI's.
Span span_of(const void* address) {
    struct Search {
        const void* address;
        Span found;
    } search{address, {}};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            Span span{UINTPTR_MAX, 0};
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& part = info->dlpi_phdr[i];
                if (part.p_type != PT_LOAD) continue;
                const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                span = {std::min(span.begin, begin), std::max(span.end, begin + part.p_memsz)};
            }
            auto& looked = *static_cast<Search*>(data);
            if (!span.contains(looked.address)) return 0;
            looked.found = span;
            return 1;
        },
        &search);
    return search.found;
}

// Searches the host's library and the libraries that it needs, but no others of the process.
void* library_symbol(const char* symbol) {
    return g_library != nullptr ? loader_dlsym()(g_library, symbol) : nullptr;
}

// MPI libraries beside the host's, which tools have loaded.
std::vector<Span> other_libraries() {
    std::vector<Span> found;
    for (const std::string& file : mpi_files()) {
        void* const handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) continue;
        const Span span = span_of(loader_dlsym()(handle, kHostFunction));
        if (span.end != 0 && !span.contains(library_symbol(kHostFunction))) found.push_back(span);
        ::dlclose(handle);
    }
    return found;
}

// What they define is none of the host's, and no tool's.
bool in_other_library(void* address) {
    if (address == nullptr || g_library == nullptr) return false;
    static const std::vector<Span> others = other_libraries();
    return std::any_of(others.begin(), others.end(), [address](const Span& other) { return other.contains(address); });
}

// MPI 5.0 limits the version text to MPI_MAX_LIBRARY_VERSION_STRING, which is 8192 in its ABI and less in Open MPI's.
constexpr std::size_t kLongestVersion = 8192;

// The version of the standard ABI that the library has; below 1 if its ABI is another one (MPI 5.0 section 20.2).
int standard_abi() {
    using GetVersion = int (*)(int* major, int* minor);
    const auto get = reinterpret_cast<GetVersion>(library_symbol("PMPI_Abi_get_version"));
    int major = -1;
    int minor = -1;
    if (get == nullptr || get(&major, &minor) != 0) return -1;
    return major;
}

// The text up to its first comma or line break: further lines say how the library was built.
std::string version_of() {
    using GetVersion = int (*)(char* text, int* length);
    const auto get = reinterpret_cast<GetVersion>(library_symbol("PMPI_Get_library_version"));
    std::vector<char> text(kLongestVersion + 1, '\0');
    int length = 0;
    if (get == nullptr || get(text.data(), &length) != 0) return {};
    std::string version(text.data());
    version.resize(std::min(version.size(), version.find_first_of(",\n")));
    for (char& character : version)
        if (character == '\t') character = ' ';
    return version;
}

void fill(Real& table) {
#define OSC_ENTRY(kind, name, parameters, arguments) \
    table.name = reinterpret_cast<decltype(table.name)>(host_symbol("PMPI_" #name));
#include "api/entries.def"
#define OSC_REAL(name) table.name = reinterpret_cast<decltype(table.name)>(host_symbol("PMPI_" #name));
#include "host/real.def"
}

}  // namespace

Host find_host() {
    static std::mutex mutex;
    static Host found = Host::None;
    const std::lock_guard lock(mutex);
    if (found != Host::None) return found;
    g_library = next_symbol(kHostFunction) != nullptr ? open_next(kHostFunction) : open_hidden(kHostFunction);
    void* const known = host_symbol(kHostFunction);
    if (known == nullptr) return Host::None;
    g_host = span_of(known);
    const bool ours = std::strcmp(suffix_of_host(), abi::kSuffix) == 0;
    found = ours ? Host::Ours : Host::Foreign;
    if (ours) fill(detail::g_real);
    return found;
}

const char* suffix_of_host() {
    return abi::suffix_for(standard_abi() >= 1, &library_symbol);
}

std::string describe_host() {
    std::string text = version_of();
    if (text.empty()) text = "an MPI library";
    if (standard_abi() >= 1) text += " with the ABI of the MPI standard";
    Dl_info info{};
    if (::dladdr(library_symbol(kHostFunction), &info) != 0 && info.dli_fname != nullptr)
        text += std::string(", ") + info.dli_fname;
    return text;
}

void* host_symbol(const char* symbol) {
    if (void* address = next_symbol(symbol); address != nullptr) return address;
    if (void* address = library_symbol(symbol); address != nullptr) return address;
    return int_form(symbol);
}

// Its symbol versions on the processors that have one; the first is glibc 2.34's on all.
Dlsym loader_dlsym() noexcept {
    static std::atomic<Dlsym> found{nullptr};
    Dlsym function = found.load(std::memory_order_relaxed);
    if (function != nullptr) return function;
    for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
        if (function == nullptr) function = reinterpret_cast<Dlsym>(::dlvsym(RTLD_NEXT, "dlsym", version));
    found.store(function, std::memory_order_relaxed);
    return function;
}

// RTLD_NEXT depends on the caller, which the loader finds by the return address. So this is a call, not a jump: the
// caller of next_symbol() may be another library (search_behind).
void* next_symbol(const char* symbol) {
    if (g_next != nullptr) return g_next(symbol);
    void* const found = loader_dlsym()(RTLD_NEXT, symbol);
    asm volatile("" : : "r"(found));
    return in_other_library(found) ? nullptr : found;
}

void search_behind(NextSymbol* next) {
    g_next = next;
}

bool in_host_library(const void* address) {
    return g_host.contains(address);
}

}  // namespace osc::host
