// See early_library.cpp.
#include <cstdlib>

#include "early_library.h"

int main() {
    if (std::getenv("TEST_STARTS") == nullptr && std::getenv("TEST_STARTS_FIRST") == nullptr) early_begin();
    early_main();
    const bool ends = std::getenv("TEST_ENDS") == nullptr && std::getenv("TEST_ENDS_LAST") == nullptr;
    return ends ? early_end() : 0;
}
