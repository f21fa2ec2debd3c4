# The level of a test stands where the test is declared: LEVEL of the functions that declare tests, each with a default that
# suits most of its tests.
#   short  what proves that libosc works on a machine
#   gate   what else continuous integration runs
#   full   what takes long while a cheaper test shows the same, as tests/evidence measures. Only --full declares it (it
#          configures with OSC_TEST_FULL in the environment), and sanitizer builds, whose script chooses for itself.
# The level is one of the test's labels. A test without one is of the gate.

# osc_take_level(DEFAULT) in a function that declares a test: T_LEVEL, DEFAULT if none is said. The function returns where this
# build leaves the level out.
macro(osc_take_level default)
  if(NOT T_LEVEL)
    set(T_LEVEL ${default})
  endif()
  if(NOT T_LEVEL MATCHES "^(short|gate|full)$")
    message(FATAL_ERROR "a test's LEVEL is short, gate or full, not '${T_LEVEL}'")
  endif()
  if(T_LEVEL STREQUAL "full" AND NOT OSC_SANITIZE AND NOT DEFINED ENV{OSC_TEST_FULL})
    return()
  endif()
endmacro()
