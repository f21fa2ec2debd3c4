// One input under libFuzzer: class OSC_INPUT of the header OSC_INPUT_HEADER does it, and says what went wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include OSC_INPUT_HEADER

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (const char* wrong = osc::test::OSC_INPUT().run(data, size); wrong != nullptr) {
        std::fprintf(stderr, "%s\n", wrong);
        std::abort();
    }
    return 0;
}
