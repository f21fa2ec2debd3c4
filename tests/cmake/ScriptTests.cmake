# osc_script_test(NAME SCRIPT [LEVEL short|gate|full] ARGUMENT...) adds a test, of the short level if none is said: a Python
# script launches MPI programs with libosc preloaded and judges what they print or write. The script takes --mpiexec and
# --env K=V; the arguments follow these.
function(osc_script_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 T "" "LEVEL" "")
  osc_take_level(short)
  set(preload ${OSC_ASAN_RUNTIME} $<TARGET_LINKER_FILE:osc>)
  list(JOIN preload ":" preload)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${script} --mpiexec ${OSC_MPIEXEC}
    --env LD_PRELOAD=${preload} --env MPIR_CVAR_POLLS_BEFORE_YIELD=1 ${T_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 PROCESSORS 2 LABELS "mpi;${T_LEVEL}")
endfunction()
