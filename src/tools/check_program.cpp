// Whether libosc takes effect in a program, as the dynamic loader would start it with this environment: for osc_info
// --check and oscrun. The loader itself lists the libraries, without running the program; their symbols tell which is
// MPI's.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "abi/recognise.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

constexpr const char* kCheck = "program";

// A mapped ELF file of this machine's word size.
class Elf {
  public:
    explicit Elf(const std::string& path) {
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat about {};
        if (file >= 0 && ::fstat(file, &about) == 0 && about.st_size > 0) {
            // The kernel lets the loader ignore LD_PRELOAD (AT_SECURE).
            gains_rights_ = ((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
                            ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid()) ||
                            (::geteuid() != 0 && ::fgetxattr(file, "security.capability", nullptr, 0) > 0);
            bytes_ = static_cast<std::size_t>(about.st_size);
            void* const at = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
            if (at != MAP_FAILED) data_ = static_cast<const char*>(at);
        }
        if (file >= 0) ::close(file);
    }
    ~Elf() {
        if (data_ != nullptr) ::munmap(const_cast<char*>(data_), bytes_);
    }
    Elf(const Elf&) = delete;
    Elf& operator=(const Elf&) = delete;

    bool is_readable() const { return data_ != nullptr; }
    /// The command behind "#!", or "".
    std::string interpreter_of_script() const {
        const std::string_view text(data_, std::min<std::size_t>(bytes_, 256));
        if (!text.starts_with("#!")) return {};
        std::istringstream words(std::string(text.substr(2, text.find('\n') - 2)));
        std::string word;
        std::string last;
        // The last word of "/usr/bin/env python3" is the program.
        while (words >> word && !word.starts_with("-"))
            last = word;
        return last;
    }
    bool is_elf() const {
        return header() != nullptr && std::memcmp(header()->e_ident, ELFMAG, SELFMAG) == 0 &&
               header()->e_ident[EI_CLASS] == ELFCLASS64;
    }
    bool is_of_machine(const Elf& other) const { return header()->e_machine == other.header()->e_machine; }
    /// Whether it runs with rights that its caller lacks.
    bool gains_rights() const { return gains_rights_; }
    bool is_dynamic() const {
        const auto* const segments = at<Elf64_Phdr>(header()->e_phoff, header()->e_phnum);
        for (std::size_t i = 0; segments != nullptr && i < header()->e_phnum; ++i)
            if (segments[i].p_type == PT_INTERP) return true;
        return false;
    }
    /// Whether one of the file's tables of symbols defines `name`.
    bool defines(const char* name) const { return has(name, true); }
    /// Whether the file takes `name` from another one.
    bool imports(const char* name) const { return has(name, false); }

  private:
    bool has(const char* name, bool defined) const {
        if (!is_elf()) return false;
        const auto* const sections = at<Elf64_Shdr>(header()->e_shoff, header()->e_shnum);
        for (std::size_t i = 0; sections != nullptr && i < header()->e_shnum; ++i) {
            const Elf64_Shdr& table = sections[i];
            if ((table.sh_type != SHT_DYNSYM && table.sh_type != SHT_SYMTAB) || table.sh_link >= header()->e_shnum)
                continue;
            const Elf64_Shdr& names = sections[table.sh_link];
            const std::size_t count = table.sh_size / sizeof(Elf64_Sym);
            const auto* const symbols = at<Elf64_Sym>(table.sh_offset, count);
            const auto* const text = at<char>(names.sh_offset, names.sh_size);
            for (std::size_t s = 0; symbols != nullptr && text != nullptr && s < count; ++s)
                if ((symbols[s].st_shndx != SHN_UNDEF) == defined && symbols[s].st_name < names.sh_size &&
                    ::strncmp(text + symbols[s].st_name, name, names.sh_size - symbols[s].st_name) == 0)
                    return true;
        }
        return false;
    }
    template <class T>
    const T* at(std::size_t offset, std::size_t count) const {
        const bool fits = offset <= bytes_ && count <= (bytes_ - offset) / sizeof(T);
        return fits ? reinterpret_cast<const T*>(data_ + offset) : nullptr;
    }
    const Elf64_Ehdr* header() const { return at<Elf64_Ehdr>(0, 1); }

    const char* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool gains_rights_ = false;
};

// The loader's list of libraries, in its search order, and its messages.
struct Listing {
    std::vector<std::string> libraries;  // files
    std::vector<std::string> missing;    // names
    std::vector<std::string> ignored;    // entries of LD_PRELOAD that cannot be loaded, with the reason
};

Listing list(const std::string& program, const std::string& preload) {
    std::map<std::string, std::string> variables = {{"LD_TRACE_LOADED_OBJECTS", "1"}};
    if (!preload.empty()) variables["LD_PRELOAD"] = preload;
    std::istringstream lines(output_of(program, nullptr, variables));
    Listing listing;
    for (std::string line; std::getline(lines, line);) {
        // "ERROR: ld.so: object 'X' from LD_PRELOAD cannot be preloaded (why): ignored."
        if (const std::size_t quote = line.find("object '"); quote != std::string::npos) {
            const std::size_t end = line.find('\'', quote + 8);
            const std::size_t why = line.find('(', end);
            listing.ignored.push_back(line.substr(quote + 8, end - quote - 8) + ": " +
                                      line.substr(why + 1, line.rfind(')') - why - 1));
            continue;
        }
        // "\tlibX.so => /folder/libX.so (0x...)", "\t/folder/libX.so (0x...)", "\tlibX.so => not found"
        const std::size_t arrow = line.find(" => ");
        const std::size_t from = arrow != std::string::npos ? arrow + 4 : line.find_first_not_of('\t');
        if (from == std::string::npos || line[0] != '\t') continue;
        if (line.compare(from, 9, "not found") == 0)
            listing.missing.push_back(line.substr(1, arrow - 1));
        else
            listing.libraries.push_back(line.substr(from, line.rfind(" (") - from));
    }
    return listing;
}

// The index of the first library that defines `symbol`; the number of libraries if none does.
std::size_t first_with(const std::vector<std::string>& libraries, const char* symbol) {
    std::size_t i = 0;
    while (i < libraries.size() && !Elf(libraries[i]).defines(symbol))
        ++i;
    return i;
}

// Whether the program may load an MPI library after its start: it opens libraries or starts programs.
bool may_open_mpi(const std::string& path, const Listing& listing, std::size_t ours) {
    const auto opens = [](const std::string& file) {
        const Elf elf(file);
        const auto imports = [&](const char* name) { return elf.imports(name); };
        constexpr std::array kOpeners = {"dlopen", "dlmopen", "execl",  "execle",      "execlp",      "execv",
                                         "execve", "execvp",  "system", "posix_spawn", "posix_spawnp"};
        return std::any_of(kOpeners.begin(), kOpeners.end(), imports);
    };
    for (std::size_t i = 0; i < listing.libraries.size(); ++i)
        if (i != ours && opens(listing.libraries[i])) return true;
    return opens(path);
}

void look_at_libraries(Findings& findings, const std::string& path, const Listing& listing) {
    const std::vector<std::string>& all = listing.libraries;
    const std::size_t ours = first_with(all, "osc_served");
    const std::size_t mpi = first_with(all, "PMPI_Initialized");
    if (mpi == all.size() && Elf(path).defines("PMPI_Initialized"))
        return add(findings, kCheck, State::Problem, path + " contains the MPI library",
                   "libosc cannot come before a static MPI library: link the program to the shared one");
    if (ours == all.size()) {
        if (listing.ignored.empty())
            add(findings, kCheck, State::Problem, path + " loads no libosc.so",
                "set LD_PRELOAD to libosc.so's path, by mpiexec's -genv; or link with -losc before the MPI "
                "library, without --as-needed");
        return;
    }
    if (mpi == all.size() && !may_open_mpi(path, listing, ours))
        return add(findings, kCheck, State::Problem, path + " uses no MPI library", "libosc does nothing in it");
    if (mpi == all.size())
        return add(findings, kCheck, State::Note, path + " loads " + all[ours] + ", and no MPI library at its start",
                   "libosc serves the MPI library that the program opens later; OSC_VERBOSE=1 shows it");
    if (mpi < ours)
        return add(findings, kCheck, State::Problem, path + " loads " + all[mpi] + " before " + all[ours],
                   "write -losc before the MPI library on the link line, or preload libosc.so");
    const bool is_standard = all[mpi].find("/libmpi_abi.so") != std::string::npos;
    const std::string suffix =
        abi::suffix_for(is_standard, [&](const char* symbol) { return Elf(all[mpi]).defines(symbol); });
    const std::filesystem::path serves = std::filesystem::path(all[ours]).parent_path() / ("libosc" + suffix + ".so");
    std::error_code error;
    if (!suffix.empty() && !std::filesystem::exists(serves, error))
        return add(findings, kCheck, State::Problem,
                   path + " uses " + all[mpi] + ", and there is no " + serves.string(),
                   "libosc passes every call on: build libosc where that MPI library's compiler wrapper is installed");
    add(findings, kCheck, State::Ok,
        path + ": " + all[ours] + " comes before " + all[mpi] +
            (suffix.empty() ? "" : ", and " + serves.string() + " serves it"));
}

}  // namespace

std::string in_path(const std::string& program) {
    if (program.find('/') != std::string::npos) return program;
    const char* const value = std::getenv("PATH");
    std::istringstream folders(value != nullptr ? value : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (std::string path = folder + "/" + program; ::access(path.c_str(), X_OK) == 0) return path;
    return program;
}

std::string output_of(const std::string& command, const char* argument,
                      const std::map<std::string, std::string>& variables) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        for (const auto& [name, value] : variables)
            ::setenv(name.c_str(), value.c_str(), 1);
        ::execlp(command.c_str(), command.c_str(), argument, nullptr);
        ::_exit(127);
    }
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;)
        text.append(piece.data(), static_cast<std::size_t>(got));
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return text;
}

std::filesystem::path library_folder() {
    std::error_code error;
    std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    for (const std::filesystem::path& folder : {program.parent_path(), program / OSC_LIBRARIES_FROM_PROGRAMS})
        if (std::filesystem::exists(folder / "libosc_ofi.so", error)) return folder.lexically_normal();
    return program;
}

void check_program(Findings& findings, const std::string& program, const std::string& preload) {
    const std::string path = in_path(program);
    const Elf file(path);
    if (!file.is_readable())
        return add(findings, kCheck, State::Problem, path + " cannot be read", "name the program as the launcher does");
    if (const std::string interpreter = file.interpreter_of_script(); !interpreter.empty())
        return check_program(findings, interpreter, preload);
    if (!file.is_elf() || !file.is_of_machine(Elf("/proc/self/exe")))
        return add(findings, kCheck, State::Problem, path + " is no program of this machine",
                   "name the program itself");
    if (file.gains_rights())
        return add(findings, kCheck, State::Problem, path + " gains rights when it starts (set-uid, capabilities)",
                   "nothing can be preloaded: link it with -losc, or start a copy without these rights");
    if (!file.is_dynamic())
        return add(findings, kCheck, State::Problem, path + " is linked statically",
                   "nothing can be preloaded: link the program to the shared MPI library");
    const Listing listing = list(path, preload);
    for (const std::string& entry : listing.ignored)
        add(findings, kCheck, State::Problem, "LD_PRELOAD has " + entry, "give the path of a file that every node has");
    for (const std::string& name : listing.missing)
        add(findings, kCheck, State::Problem, path + " needs " + name + ", which the loader does not find",
            "add its folder to LD_LIBRARY_PATH", {{"missing", name}});
    look_at_libraries(findings, path, listing);
}

}  // namespace osc::tools
