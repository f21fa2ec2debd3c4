// abi_library.cpp's record of the last call.
#pragma once

#include <string>
#include <vector>

#include "api/route_table.h"

struct Recorded {
    std::string function;
    std::vector<osc::Word> arguments;
};

constexpr int kRecordedResult = 17;

extern "C" const Recorded* recorded_call();
