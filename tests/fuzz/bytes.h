// Numbers from the bytes of a fuzzer's input, so that a changed byte changes one choice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace osc::test {

class Bytes {
  public:
    Bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

    bool done() const { return at_ == end_; }
    /// A number in a closed range of at most 65,536; behind the end of the input the lowest.
    int operator()(int low, int high) {
        const int range = high - low + 1;
        int value = next();
        if (range > 256) value = value << 8 | next();
        return low + value % range;
    }
    bool chance(int of, int among) { return (*this)(0, among - 1) < of; }
    /// A text of at most `most` characters, none of which is zero.
    std::string text(int most) {
        std::string made(static_cast<std::size_t>((*this)(0, most)), ' ');
        for (char& letter : made)
            letter = static_cast<char>((*this)(1, 255));
        return made;
    }

  private:
    int next() { return at_ == end_ ? 0 : *at_++; }

    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

}  // namespace osc::test
