// Messages from the network, under libFuzzer. To build and run it, in a folder of its own:
//   cmake -S . -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug -DOSC_FUZZ=ON
//     -DOSC_SANITIZE=address,undefined,fuzzer-no-link
//   cmake --build build/fuzz --target wire_fuzzer && build/fuzz/tests/fuzz/wire_fuzzer -max_len=4096
#include <cstdio>
#include <cstdlib>

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    osc::test::WireInput input;
    if (const char* wrong = input.run(data, size); wrong != nullptr) {
        std::fprintf(stderr, "%s\n", wrong);
        std::abort();
    }
    return 0;
}
