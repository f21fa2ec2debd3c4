// Reads libraries' dynamic sections and writes to their tables of imported functions.
#include "base/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/pages.h"

namespace osc::base {
namespace {

// Relocations of table entries through which code reaches a function. Other relocations initialise a program's data.
#if defined(__x86_64__)
constexpr auto kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr auto kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT;
#elif defined(__powerpc64__)
constexpr auto kJumpSlot = R_PPC64_JMP_SLOT, kGlobalData = R_PPC64_GLOB_DAT;
#else
constexpr auto kJumpSlot = ~0U, kGlobalData = ~0U;  // none is known
#endif

// The dynamic section of a loaded library; glibc has relocated its entries to addresses.
struct Imports {
    const ElfW(Rela) * jumps = nullptr;
    std::size_t count = 0;
    const ElfW(Rela) * others = nullptr;  // addresses of functions, among other things
    std::size_t other_count = 0;
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
};

Imports imports_of(const link_map& library) {
    Imports imports;
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
        const auto address = reinterpret_cast<const void*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_JMPREL) imports.jumps = static_cast<const ElfW(Rela)*>(address);
        if (entry->d_tag == DT_PLTRELSZ) imports.count = entry->d_un.d_val / sizeof(ElfW(Rela));
        if (entry->d_tag == DT_RELA) imports.others = static_cast<const ElfW(Rela)*>(address);
        if (entry->d_tag == DT_RELASZ) imports.other_count = entry->d_un.d_val / sizeof(ElfW(Rela));
        if (entry->d_tag == DT_SYMTAB) imports.symbols = static_cast<const ElfW(Sym)*>(address);
        if (entry->d_tag == DT_STRTAB) imports.names = static_cast<const char*>(address);
    }
    if (imports.symbols == nullptr || imports.names == nullptr) imports.jumps = imports.others = nullptr;
    if (imports.jumps == nullptr) imports.count = 0;
    if (imports.others == nullptr) imports.other_count = 0;
    return imports;
}

// The import-table entry of a function in a library; null if the library does not import the function.
void** entry_of(const link_map& library, const char* name) {
    const Imports imports = imports_of(library);
    for (std::size_t i = 0; i < imports.count; ++i) {
        const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(imports.jumps[i].r_info)];
        if (std::strcmp(imports.names + symbol.st_name, name) == 0)
            return reinterpret_cast<void**>(library.l_addr + imports.jumps[i].r_offset);
    }
    return nullptr;
}

// Whether the loader has made an address read-only after it relocated the library.
bool sealed(const link_map& library, void** entry) {
    struct Search {
        ElfW(Addr) base;
        ElfW(Addr) address;
        bool found;
    } search{library.l_addr, reinterpret_cast<ElfW(Addr)>(entry), false};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* argument) {
            auto& wanted = *static_cast<Search*>(argument);
            if (info->dlpi_addr != wanted.base) return 0;
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr)& part = info->dlpi_phdr[i];
                if (part.p_type == PT_GNU_RELRO)
                    wanted.found = wanted.found ||
                                   is_sealed(wanted.base + part.p_vaddr, part.p_memsz, wanted.address, page_bytes());
            }
            return 1;
        },
        &search);
    return search.found;
}

bool replace(const link_map& library, void** entry, void* by) {
    auto* page = reinterpret_cast<void*>(page_down(reinterpret_cast<std::uintptr_t>(entry)));
    const bool seal = sealed(library, entry);
    static std::mutex mutex;  // another thread may seal the page that this one opens
    const std::lock_guard lock(mutex);
    if (seal && ::mprotect(page, page_bytes(), PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(entry, by, __ATOMIC_RELEASE);
    if (seal) ::mprotect(page, page_bytes(), PROT_READ);
    return true;
}

// A loaded library, which stays loaded while the object exists.
class Pinned {
  public:
    explicit Pinned(const char* name) : handle_(::dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {}
    ~Pinned() {
        if (handle_ != nullptr) ::dlclose(handle_);
    }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

    /// Null if the library is not loaded any more.
    const link_map* library() const {
        link_map* found = nullptr;
        return handle_ != nullptr && ::dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&found)) == 0 ? found
                                                                                                         : nullptr;
    }
    void* handle() const { return handle_; }

  private:
    void* handle_;
};

// The names of all loaded libraries; the program's is empty. Another thread may load and close libraries meanwhile, but
// not while the loader lists them.
std::vector<std::string> loaded_libraries() {
    std::vector<std::string> names;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
            static_cast<std::vector<std::string>*>(result)->emplace_back(info->dlpi_name);
            return 0;
        },
        &names);
    return names;
}

// The library that an address lies in; null if the loader does not know it.
const link_map* library_of(void* address, Dl_info& info) {
    link_map* library = nullptr;
    const int found = ::dladdr1(address, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP);
    return found != 0 ? library : nullptr;
}

}  // namespace

void* imported_by(void* library, const char* name) {
    Dl_info info{};
    const link_map* const importing = library_of(library, info);
    if (importing == nullptr || entry_of(*importing, name) == nullptr) return nullptr;
    void* const handle = ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    void* const function = ::dlsym(handle, name);
    ::dlclose(handle);
    return function;
}

bool replace_import(void* library, const char* name, void* by) {
    Dl_info info{};
    const link_map* const importing = library_of(library, info);
    void** const entry = importing != nullptr ? entry_of(*importing, name) : nullptr;
    return entry != nullptr && replace(*importing, entry, by);
}

// A program that takes a function's address may define the name itself, as a jump to the function. That is no function
// to call instead of the program's own calls, which would jump back here.
void* called_function(const char* name) {
    void* const found = ::dlsym(RTLD_DEFAULT, name);
    Dl_info info{};
    const ElfW(Sym)* symbol = nullptr;
    if (found == nullptr ||
        ::dladdr1(found, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) == 0)
        return found;
    return symbol != nullptr && symbol->st_shndx == SHN_UNDEF ? ::dlsym(RTLD_NEXT, name) : found;
}

Loads loads() {
    Loads counts;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
            *static_cast<Loads*>(result) = {info->dlpi_adds, info->dlpi_subs};
            return 1;
        },
        &counts);
    return counts;
}

std::size_t redirect_imports(std::size_t first, FunctionRef<void*(const Import&)> choose) {
    Dl_info info{};
    const link_map* const own = library_of(reinterpret_cast<void*>(&redirect_imports), info);
    const auto is = [](const std::string& path, const char* part) { return path.find(part) != std::string::npos; };
    const std::vector<std::string> paths = loaded_libraries();
    for (std::size_t i = first; i < paths.size(); ++i) {
        const std::string& path = paths[i];
        if (is(path, "/libc.so") || is(path, "/ld-linux") || is(path, "linux-vdso")) continue;
        const Pinned pinned(path.empty() ? nullptr : path.c_str());
        const link_map* const library = pinned.library();
        if (library == nullptr || library == own) continue;
        const Imports imports = imports_of(*library);
        const auto redirect = [&](const ElfW(Rela) & relocation) {
            const auto kind = ELF64_R_TYPE(relocation.r_info);
            const auto symbol = ELF64_R_SYM(relocation.r_info);
            if (symbol == 0 || (kind != kJumpSlot && kind != kGlobalData)) return;
            auto** const entry = reinterpret_cast<void**>(library->l_addr + relocation.r_offset);
            const Import import{imports.names + imports.symbols[symbol].st_name,
                                __atomic_load_n(entry, __ATOMIC_ACQUIRE), library, pinned.handle(), kind == kJumpSlot};
            if (void* const by = choose(import); by != nullptr) replace(*library, entry, by);
        };
        std::for_each(imports.jumps, imports.jumps + imports.count, redirect);
        std::for_each(imports.others, imports.others + imports.other_count, redirect);
    }
    return paths.size();
}

// Whether a table entry leads to the stub that binds it at the first call. It lies in the library itself, and no symbol
// names it, as one would name a function that the library defines.
bool Import::is_unbound() const {
    Dl_info info{};
    return binds_late && library_of(now, info) == library && info.dli_saddr != now;
}

// A call that is not bound yet will reach `function`, which all libraries' calls of `name` reach, unless the library
// was loaded with RTLD_DEEPBIND and prefers a definition of its own or of its dependencies.
void replace_all_imports(std::span<const Replacement> replacements) {
    std::unordered_map<std::string_view, const Replacement*> by_name;
    for (const Replacement& one : replacements)
        by_name.emplace(one.name, &one);
    redirect_imports(0, [&](const Import& import) -> void* {
        const auto place = by_name.find(import.name);
        if (place == by_name.end()) return nullptr;
        const auto& [name, function, by] = *place->second;
        Dl_info info{};
        if (import.library == library_of(by, info)) return nullptr;
        if (import.now == function) return by;
        if (!import.is_unbound()) return nullptr;
        const void* const found = ::dlsym(import.handle, name);
        return found == nullptr || found == function || found == ::dlsym(RTLD_DEFAULT, name) ? by : nullptr;
    });
}

// As glibc seals: from the page in which the part begins to the last page that lies wholly in it.
bool is_sealed(std::uintptr_t first, std::uintptr_t bytes, std::uintptr_t address, std::uintptr_t page) {
    return address >= first / page * page && address < (first + bytes) / page * page;
}

}  // namespace osc::base
