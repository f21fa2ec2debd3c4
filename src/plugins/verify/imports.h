// The table of what the checker may call of libosc.so. imports.cpp defines the functions' own names on top of it, so
// that code of the checker calls base::say() as all code does.
#pragma once

#include "interpose/checker_imports.h"

namespace osc::check {

/// Constant from osc_verify_open() on.
extern Imports g_libosc;

}  // namespace osc::check
