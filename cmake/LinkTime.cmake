# OSC_LINK_TIME: whether the library is compiled for link-time optimisation, in a release build where a program links with an
# archive of such objects without it. check_ipo_supported does not ask that: it optimises its program, too. Objects of clang
# 14 are bitcode alone, which the system's linker does not read.
set(OSC_LINK_TIME OFF)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR OSC_SANITIZE)
  return()
endif()
set(probe ${CMAKE_CURRENT_BINARY_DIR}/link_time)
file(CONFIGURE OUTPUT ${probe}/part.cpp CONTENT "int part() { return 0; }\n")
file(CONFIGURE OUTPUT ${probe}/main.cpp CONTENT "int part();\nint main() { return part(); }\n")
file(CONFIGURE OUTPUT ${probe}/CMakeLists.txt @ONLY CONTENT [[
cmake_minimum_required(VERSION 3.25)
project(link_time LANGUAGES CXX)
add_library(part STATIC part.cpp)
set_target_properties(part PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
add_executable(program main.cpp)
target_link_libraries(program PRIVATE part)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(part PRIVATE -ffat-lto-objects)
  target_link_options(program PRIVATE -fno-lto)
endif()
]])
try_compile(OSC_LINKS_LINK_TIME_OBJECTS ${probe}/build ${probe} link_time CMAKE_FLAGS
  -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}"
  "-DCMAKE_EXE_LINKER_FLAGS=${CMAKE_EXE_LINKER_FLAGS}")
if(OSC_LINKS_LINK_TIME_OBJECTS)
  set(OSC_LINK_TIME ON)
else()
  message(STATUS "Programs do not link with objects for link-time optimisation: libosc.so is not optimised as a whole")
endif()
