# Warnings for everything that is ours. They are errors in the gate only: a user's compiler may know others.
set(OSC_WERROR "")
if(OSC_WARNINGS_ARE_ERRORS)
  set(OSC_WERROR -Werror)
endif()
set(OSC_WARNINGS -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wundef ${OSC_WERROR})
set(OSC_CXX_WARNINGS ${OSC_WARNINGS} -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi)
# GCC 12 warns falsely about "text" + std::string with -O3 (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND OSC_CXX_WARNINGS -Wno-restrict)
endif()

# osc_warnings(TARGET): applies them by language.
function(osc_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${OSC_CXX_WARNINGS}>
    $<$<COMPILE_LANGUAGE:C>:${OSC_WARNINGS}>)
endfunction()
