# The level of src/base/assert.h: none in Release, the cheap tier in other build types, both in debug and sanitizer builds.
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR OSC_SANITIZE)
  add_compile_definitions(OSC_ASSERTS=2)
elseif(NOT CMAKE_BUILD_TYPE MATCHES "^(Release|MinSizeRel)$")
  add_compile_definitions(OSC_ASSERTS=1)
endif()
