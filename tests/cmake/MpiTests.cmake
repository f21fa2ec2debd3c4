# osc_mpi_test(NAME SOURCES file... RANKS n... [GATE_RANKS n...] [FULL_RANKS n...] [TIMEOUT s] [ENV k=v...] [ARGS ...]
#              [TAG word] [HOST_ONLY|NO_PRELOAD|NO_HOST|GATE_HOST])
#   builds an MPI program and adds one ctest per number of ranks that runs it with libosc preloaded, the spy below it.
#   Programs that are declared while OSC_AREA is set share the executable mpi_AREA; the others have their own, test_NAME.
#   OF program THREADS level: no program of its own, but another one at another thread level.
#   Runs with RANKS are of the short level, with GATE_RANKS of the gate, with FULL_RANKS of the full level (Level.cmake).
#   NAME.host.nN, once per program, runs it on the host MPI alone, which must agree wherever it is right: of the full level,
#   with GATE_HOST of the gate. NO_HOST leaves it out; HOST_ONLY adds it alone, to the gate.
#   NO_PRELOAD only builds (for programs that a script launches).
#   TAG names further runs of a program that is already built (other ENV or ARGS).
# osc_program(VARIABLE test_NAME): the words that start a program, as a list, and osc_program_target(VARIABLE test_NAME): the
#   target that builds it.
# osc_mpi_fortran_test: the same for Fortran sources.
# osc_mpi_add_run(NAME PROGRAM RANKS [LEVEL short|gate|full] [HOST] [TIMEOUT s] [BIND core...] [BELOW library...] [ENV k=v...]
#                 [ARGS ...])
#   adds one run, to the gate if no level is said; the launcher binds one rank after the other to a core; the libraries stand
#   between libosc and the host.
# Runs have the label mpi; the target mpi_tests builds all that those with libosc need and nothing else, for builds with
# sanitizers.
if(POLICY CMP0174)  # a TIMEOUT that is passed on without a value is not given
  cmake_policy(SET CMP0174 NEW)
endif()
set(OSC_SPY_MAX_PROCESSORS 2)
add_custom_target(mpi_tests)

function(osc_program result program)
  get_property(area GLOBAL PROPERTY osc_area_of_${program})
  get_property(word GLOBAL PROPERTY osc_word_of_${program})
  if(area)
    set(${result} $<TARGET_FILE:mpi_${area}> ${word} PARENT_SCOPE)
  else()
    set(${result} $<TARGET_FILE:${program}> PARENT_SCOPE)
  endif()
endfunction()

function(osc_program_target result program)
  get_property(area GLOBAL PROPERTY osc_area_of_${program})
  if(area)
    set(${result} mpi_${area} PARENT_SCOPE)
  else()
    set(${result} ${program} PARENT_SCOPE)
  endif()
endfunction()

function(osc_mpi_add_run name program ranks)
  cmake_parse_arguments(PARSE_ARGV 3 T "HOST" "LEVEL;TIMEOUT" "BIND;BELOW;ENV;ARGS")
  osc_take_level(gate)
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  if(DEFINED ENV{OSC_TEST_FULL} OR CMAKE_CROSSCOMPILING_EMULATOR)
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 4")  # long variants, slow processors; the limit is for hangs
  endif()
  set(command timeout -k 5 ${T_TIMEOUT} ${OSC_MPIEXEC} -n ${ranks} -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1)
  if(T_BIND)
    list(JOIN T_BIND "," cores)
    list(APPEND command -bind-to user:${cores})
  endif()
  set(preload ${OSC_ASAN_RUNTIME})
  if(NOT T_HOST)
    list(APPEND preload $<TARGET_LINKER_FILE:osc> $<TARGET_FILE:osc_spy>)
    list(APPEND command -genv OSC_FALLBACK error)
  endif()
  foreach(library IN LISTS T_BELOW)
    list(APPEND preload $<TARGET_FILE:${library}>)
    add_dependencies(mpi_tests ${library})
  endforeach()
  if(preload)
    list(JOIN preload ":" preload)
    list(APPEND command -genv LD_PRELOAD ${preload})
  endif()
  foreach(setting IN LISTS T_ENV)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${setting}")
    list(APPEND command -genv ${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  osc_program(words ${program})
  add_test(NAME ${name} COMMAND ${command} ${words} ${T_ARGS})
  # timeout -k 5 has the first word; ctest's own limit only catches what it cannot.
  math(EXPR limit "${T_TIMEOUT} + 30")
  set(processors ${ranks})
  if(processors GREATER OSC_SPY_MAX_PROCESSORS)
    set(processors ${OSC_SPY_MAX_PROCESSORS})
  endif()
  get_property(labels GLOBAL PROPERTY osc_area_of_${program})
  if(name MATCHES "[.]nodes[.]")
    list(APPEND labels net)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit} PROCESSORS ${processors} LABELS "mpi;${labels};${T_LEVEL}")
  osc_program_target(target ${program})
  add_dependencies(mpi_tests ${target})
endfunction()

function(osc_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 T "HOST_ONLY;NO_PRELOAD;NO_HOST;GATE_HOST" "TIMEOUT;TAG;OF;THREADS"
    "SOURCES;RANKS;GATE_RANKS;FULL_RANKS;ENV;ARGS")
  osc_program_target(target test_${name})
  if(T_OF)
    set_property(GLOBAL PROPERTY osc_area_of_test_${name} ${OSC_AREA})
    set_property(GLOBAL PROPERTY osc_word_of_test_${name} ${T_OF}:${T_THREADS})
  elseif(NOT TARGET ${target})
    if(OSC_AREA)
      set(target mpi_${OSC_AREA})
      set_property(GLOBAL PROPERTY osc_area_of_test_${name} ${OSC_AREA})
      set_property(GLOBAL PROPERTY osc_word_of_test_${name} ${name})
      set_property(SOURCE ${T_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS OSCT_NAME="${name}")
    endif()
    if(NOT TARGET ${target})
      add_executable(${target})
      osc_warnings(${target})
      target_link_libraries(${target} PRIVATE osc_test_harness osc_host_mpi_program ${CMAKE_DL_LIBS})
    endif()
    target_sources(${target} PRIVATE ${T_SOURCES})
  endif()
  osc_mpi_runs()
endfunction()

function(osc_mpi_fortran_test name)
  cmake_parse_arguments(PARSE_ARGV 1 T "HOST_ONLY;NO_PRELOAD;NO_HOST;GATE_HOST" "TIMEOUT;TAG"
    "SOURCES;RANKS;GATE_RANKS;FULL_RANKS;ENV;ARGS")
  if(NOT TARGET test_${name})
    add_executable(test_${name} ${T_SOURCES})
    set_target_properties(test_${name} PROPERTIES LINKER_LANGUAGE Fortran
      Fortran_MODULE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/modules_${name})
    target_include_directories(test_${name} PRIVATE ${OSC_MPIFORT_INCLUDES})
    target_compile_options(test_${name} PRIVATE -fallow-invalid-boz -fallow-argument-mismatch)
    target_link_libraries(test_${name} PRIVATE ${OSC_MPIFORT_LINK})
  endif()
  osc_mpi_runs()
endfunction()

# The runs that the caller's T_* ask for.
macro(osc_mpi_runs)
  if(T_TAG)
    set(label ${name}.${T_TAG})
  else()
    set(label ${name})
  endif()
  if(NOT T_NO_PRELOAD)
    # Two ranks show most on the host; one launch is enough there.
    set(host_ranks ${T_RANKS} ${T_GATE_RANKS} ${T_FULL_RANKS})
    if(2 IN_LIST host_ranks)
      set(host_ranks 2)
    endif()
    set(host_level full)
    if(T_GATE_HOST OR T_HOST_ONLY)
      set(host_level gate)
    endif()
    if(NOT T_NO_HOST)
      list(GET host_ranks 0 host_ranks)
      osc_mpi_add_run(${label}.host.n${host_ranks} test_${name} ${host_ranks} LEVEL ${host_level}
        HOST TIMEOUT ${T_TIMEOUT} ENV ${T_ENV} ARGS ${T_ARGS})
    endif()
    if(TARGET osc AND NOT T_HOST_ONLY)
      set(ranks_short ${T_RANKS})
      set(ranks_gate ${T_GATE_RANKS})
      set(ranks_full ${T_FULL_RANKS})
      foreach(level IN ITEMS short gate full)
        foreach(ranks IN LISTS ranks_${level})
          osc_mpi_add_run(${label}.n${ranks} test_${name} ${ranks} LEVEL ${level} TIMEOUT ${T_TIMEOUT} ENV ${T_ENV}
            ARGS ${T_ARGS})
        endforeach()
      endforeach()
    endif()
  endif()
endmacro()
