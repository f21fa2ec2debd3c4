# Warnings are errors for everything that is ours.
set(OSC_WARNINGS -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wundef -Werror)
set(OSC_CXX_WARNINGS ${OSC_WARNINGS} -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi)

# osc_warnings(TARGET): applies them by language.
function(osc_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${OSC_CXX_WARNINGS}>
    $<$<COMPILE_LANGUAGE:C>:${OSC_WARNINGS}>)
endfunction()
