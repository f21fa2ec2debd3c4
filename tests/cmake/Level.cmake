# The level of a test stands where the test is declared: LEVEL of the functions that declare tests, each with a default that
# suits most of its tests.
#   short  what proves that libosc works on a machine
#   gate   what else continuous integration runs
#   full   what takes long while a cheaper test shows the same, as tests/evidence measures. Only --full declares it (it
#          configures with OSC_TEST_FULL in the environment), and sanitizer builds, whose script chooses for itself.
# The level is one of the test's labels. A test without one is of the gate.

# osc_leaves_out(VARIABLE LEVEL): whether a test of LEVEL is not to be declared in this build.
function(osc_leaves_out result level)
  if(NOT level MATCHES "^(short|gate|full)$")
    message(FATAL_ERROR "a test's LEVEL is short, gate or full, not '${level}'")
  endif()
  set(left_out FALSE)
  if(level STREQUAL "full" AND NOT OSC_SANITIZE AND NOT DEFINED ENV{OSC_TEST_FULL})
    set(left_out TRUE)
  endif()
  set(${result} ${left_out} PARENT_SCOPE)
endfunction()
