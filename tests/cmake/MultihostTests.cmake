# osc_multihost_test(NAME PROGRAM target HOSTS n RANKS n [LEVEL short|gate|full] [PER_HOST n] [LINK bridge|tap]
#                    [PROVIDER tcp|net] [TIMEOUT s] [BELOW library...] [ENV k=v...] [EXPECT regex...] [ARGS ...])
#   adds the test multihost.NAME, to the gate if no level is said: runs an MPI program that another call builds (test_put_get) with its ranks spread over
#   several hosts on this machine (tests/multihost/hosts.sh). Preloaded are libosc, the spy below it, and what lets the
#   host's MPI_Finalize end.
#   Ranks go to the hosts in turn, or in blocks of PER_HOST. LINK tap: through the forwarder, which can delay, drop and cut;
#   what it does from the start (DELAY_US, DROP_PERCENT, SEED) is in ENV too. PROVIDER: libfabric's, for the windows.
#   EXPECT: what a line of the output must match, as Python's regular expressions.
#   One test at a time (RESOURCE_LOCK): there are no cores for more.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(OSC_MULTIHOST_DIR ${CMAKE_CURRENT_LIST_DIR}/../multihost)

function(osc_multihost_test name)
  cmake_parse_arguments(PARSE_ARGV 1 T "" "PROGRAM;LEVEL;HOSTS;RANKS;PER_HOST;LINK;PROVIDER;TIMEOUT" "BELOW;ENV;EXPECT;ARGS")
  if(T_UNPARSED_ARGUMENTS OR NOT T_PROGRAM OR NOT T_HOSTS OR NOT T_RANKS)
    message(FATAL_ERROR "osc_multihost_test(${name}): wrong arguments: ${T_UNPARSED_ARGUMENTS}")
  endif()
  osc_take_level(gate)
  if(NOT TARGET osc)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 50)
    if(DEFINED ENV{OSC_TEST_FULL})
      set(T_TIMEOUT 200)  # long variants; the limit is for hangs
    endif()
  endif()
  set(preload ${OSC_ASAN_RUNTIME} $<TARGET_LINKER_FILE:osc> $<TARGET_FILE:osc_spy> $<TARGET_FILE:multihost_finalize>)
  foreach(library IN LISTS T_BELOW)
    list(APPEND preload $<TARGET_FILE:${library}>)
  endforeach()
  list(JOIN preload ":" preload)
  # What hosts.sh reads, and what the ranks get; mpiexec itself gets no LD_PRELOAD.
  list(JOIN OSC_MPIEXEC " " launcher)
  set(outside "MPIEXEC=${launcher}" FORWARDER=$<TARGET_FILE:multihost_forwarder>)
  set(inside MPIR_CVAR_POLLS_BEFORE_YIELD=1 OSC_FALLBACK=error LD_PRELOAD=${preload})
  foreach(setting IN LISTS T_ENV)
    if(setting MATCHES "^(DELAY_US|DROP_PERCENT|SEED|RATE)=")
      list(APPEND outside ${setting})
    else()
      list(APPEND inside ${setting})
    endif()
  endforeach()
  set(options --hosts ${T_HOSTS} --ranks ${T_RANKS} --seconds ${T_TIMEOUT})
  if(T_PER_HOST)
    list(APPEND options --per-host ${T_PER_HOST})
  endif()
  if(T_LINK)
    list(APPEND options --link ${T_LINK})
  endif()
  if(T_PROVIDER)
    list(APPEND options --provider ${T_PROVIDER})
  endif()
  list(TRANSFORM inside PREPEND "--env=")
  list(TRANSFORM T_EXPECT PREPEND "--expect=")
  osc_program(words ${T_PROGRAM})
  add_test(NAME multihost.${name}
    COMMAND ${CMAKE_COMMAND} -E env ${outside} ${Python3_EXECUTABLE} ${OSC_MULTIHOST_DIR}/run_program.py ${options}
      ${inside} ${T_EXPECT} -- ${words} ${T_ARGS})
  # run_program.py keeps the time; ctest's own limit only catches what it cannot.
  math(EXPR limit "${T_TIMEOUT} + 30")
  set_tests_properties(multihost.${name} PROPERTIES TIMEOUT ${limit} PROCESSORS 2 COST 20 LABELS "multihost;${T_LEVEL}"
    RESOURCE_LOCK multihost SKIP_RETURN_CODE 77)
endfunction()
