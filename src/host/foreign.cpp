// Recognises MPI libraries of other ABIs.
#include "host/foreign.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "abi/abi.h"

namespace osc::host {
namespace {

// MPI 5.0 limits the version text to MPI_MAX_LIBRARY_VERSION_STRING, which is 8192 in its ABI and less in Open MPI's.
constexpr std::size_t kLongestVersion = 8192;

// The version of the standard ABI that the library has; below 1 if its ABI is another one (MPI 5.0 section 20.2).
int standard_abi(Find find) {
    using GetVersion = int (*)(int* major, int* minor);
    const auto get = reinterpret_cast<GetVersion>(find("PMPI_Abi_get_version"));
    int major = -1;
    int minor = -1;
    if (get == nullptr || get(&major, &minor) != 0) return -1;
    return major;
}

// The text up to its first comma or line break: further lines say how the library was built.
std::string version_of(Find find) {
    using GetVersion = int (*)(char* text, int* length);
    const auto get = reinterpret_cast<GetVersion>(find("PMPI_Get_library_version"));
    std::vector<char> text(kLongestVersion + 1, '\0');
    int length = 0;
    if (get == nullptr || get(text.data(), &length) != 0) return {};
    std::string version(text.data());
    version.resize(std::min(version.size(), version.find_first_of(",\n")));
    for (char& character : version)
        if (character == '\t') character = ' ';
    return version;
}

}  // namespace

bool is_foreign(Find find) {
    return !abi::is_host(find) || standard_abi(find) >= 1;
}

std::string describe(Find find) {
    std::string text = version_of(find);
    if (text.empty()) text = "an MPI library";
    if (standard_abi(find) >= 1) text += " with the ABI of the MPI standard";
    Dl_info info{};
    if (::dladdr(find("PMPI_Initialized"), &info) != 0 && info.dli_fname != nullptr)
        text += std::string(", ") + info.dli_fname;
    return text;
}

}  // namespace osc::host
