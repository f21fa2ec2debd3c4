# The cases of the emulated machine. CMake writes them to the file cases in the build folder, from which run.sh chooses:
# name, seconds, the files that the case needs, and its command, separated by tabs. Paths are relative to the build folder.
#
# The groups measure and smoke run when a selection names them.
#
# osc_rdma_case(NAME SECONDS s [FILES target...] COMMAND word...): any command. Words of the form $<TARGET_FILE:...> become
#   paths in the machine.
# osc_rdma_mpi(NAME PROGRAM target RANKS n [SECONDS s] [BELOW library...] [ENV k=v...] [ARGS word...]): an MPI program with
#   libosc and the spy preloaded, as osc_mpi_add_run launches it here. inside.sh sets the environment of all.
add_custom_target(rdma_programs DEPENDS osc osc_ofi osc_info osc_check osc_spy)
set_property(GLOBAL PROPERTY osc_rdma_cases "")

function(osc_rdma_case name)
  cmake_parse_arguments(PARSE_ARGV 1 T "" "SECONDS" "FILES;COMMAND")
  set(files "-")
  foreach(program IN LISTS T_FILES)
    osc_program_target(target ${program})
    string(APPEND files " $<PATH:RELATIVE_PATH,$<TARGET_FILE:${target}>,${CMAKE_BINARY_DIR}>")
    add_dependencies(rdma_programs ${target})
  endforeach()
  set(command "")
  foreach(word IN LISTS T_COMMAND)
    string(REGEX REPLACE "\\$<(TARGET_[A-Z_]+):([^>]*)>" "$<PATH:RELATIVE_PATH,$<\\1:\\2>,${CMAKE_BINARY_DIR}>" word "${word}")
    string(APPEND command " '${word}'")
  endforeach()
  set_property(GLOBAL APPEND_STRING PROPERTY osc_rdma_cases "${name}\t${T_SECONDS}\t${files}\t${command}\n")
endfunction()

function(osc_rdma_mpi name)
  cmake_parse_arguments(PARSE_ARGV 1 T "" "PROGRAM;RANKS;SECONDS" "BELOW;ENV;ARGS")
  if(NOT T_SECONDS)
    set(T_SECONDS 300)
  endif()
  set(preload $<TARGET_LINKER_FILE:osc> $<TARGET_FILE:osc_spy>)
  foreach(library IN LISTS T_BELOW)
    list(APPEND preload $<TARGET_FILE:${library}>)
  endforeach()
  list(JOIN preload ":" preload)
  set(command mpiexec.mpich -n ${T_RANKS} -genv LD_PRELOAD ${preload})
  foreach(setting IN LISTS T_ENV)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${setting}")
    list(APPEND command -genv ${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  osc_program(words ${T_PROGRAM})
  osc_rdma_case(${name} SECONDS ${T_SECONDS} FILES ${T_PROGRAM} ${T_BELOW}
    COMMAND ${command} ${words} ${T_ARGS})
endfunction()

# What the machine offers, and libosc's verdict.
osc_rdma_case(info.providers SECONDS 120 COMMAND $<TARGET_FILE:osc_info> --providers)
osc_rdma_case(info.check SECONDS 300 COMMAND env LD_LIBRARY_PATH=src
  mpiexec.mpich -n 2 $<TARGET_FILE:osc_info> --check)
osc_rdma_case(info.check.adapter SECONDS 300 COMMAND env LD_LIBRARY_PATH=src OSC_OFI_IFACE=rxe0
  $<TARGET_FILE:osc_info> --check)

# The fabric alone, over the real libfabric. What a message costs in the emulator has no bounds that a test could hold.
foreach(test fabric_choice_test fabric_provider_rows_test)
  osc_rdma_case(unit.${test} SECONDS 300 FILES unit_provider COMMAND $<TARGET_FILE:unit_provider> --sources=${test})
endforeach()
osc_rdma_case(unit.messenger_test SECONDS 300 FILES unit_provider
  COMMAND $<TARGET_FILE:unit_provider> --sources=messenger_test --gtest_filter=-*.MessagesAreMeasuredOnce)

# Few cases of the programs below, for a short run.
set(settings ENV OSC_DEBUG=fake_nodes=2,net_protocol=auto)
osc_rdma_mpi(smoke.stale_memory PROGRAM test_stale_memory RANKS 2 ${settings} ARGS munmap_and_mmap counters_under_a_lock)
osc_rdma_mpi(smoke.put_get PROGRAM test_put_get RANKS 2 ${settings} ARGS words_on_create)
osc_rdma_mpi(smoke.locks PROGRAM test_locks RANKS 2 ${settings} ARGS several_targets_at_once)

# The network path, with data by messages where they are faster, and by the adapter's writes and reads alone.
foreach(protocol auto direct)
  foreach(ranks 2 3)
    foreach(name stale_memory put_get locks fence pscw dynamic region_detach region_cache requests datatypes notify threads)
      osc_rdma_mpi(mpi.${name}.${protocol}.n${ranks} PROGRAM test_${name} RANKS ${ranks}
        ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol})
    endforeach()
    # Two million operations; the window of three ranks has the same two nodes.
    if(ranks EQUAL 2)
      osc_rdma_mpi(mpi.streams.${protocol}.n2 PROGRAM test_streams RANKS 2 SECONDS 1200
        ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol})
    endif()
    osc_rdma_mpi(mpi.progress.${protocol}.n${ranks} PROGRAM test_progress RANKS ${ranks} SECONDS 600
      ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol})
    # Not aligned_words_do_not_tear: soft-RoCE copies bytes as the processor's `rep movsb` does, one by one in an emulator.
    osc_rdma_mpi(mpi.atomicity.${protocol}.n${ranks} PROGRAM test_atomicity RANKS ${ranks}
      ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol} ARGS all_processes_add_to_one_double every_form_on_the_same_elements
        tickets_are_unique small_and_large_keep_their_order)
    osc_rdma_mpi(mpi.differential.${protocol}.n${ranks} PROGRAM test_differential RANKS ${ranks}
      ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol} ARGS --seconds 30)
    osc_rdma_mpi(mpi.two_level.${protocol}.n${ranks} PROGRAM test_two_level RANKS ${ranks}
      ENV OSC_DEBUG=fake_nodes=${ranks},lock_scheme=two_level,net_protocol=${protocol})
    osc_rdma_mpi(mpi.locks.two_level.${protocol}.n${ranks} PROGRAM test_locks RANKS ${ranks}
      ENV OSC_DEBUG=fake_nodes=${ranks},lock_scheme=two_level,net_protocol=${protocol})
    osc_rdma_mpi(mpi.provider_atomics.${protocol}.n${ranks} PROGRAM test_provider_atomics RANKS ${ranks}
      ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol})
  endforeach()
endforeach()
osc_rdma_mpi(mpi.reductions.provider_atomics.n2 PROGRAM test_reductions RANKS 2 ENV OSC_DEBUG=fake_nodes=2,atomics=provider)
osc_rdma_mpi(mpi.large_counts.n2 PROGRAM test_large_counts RANKS 2 SECONDS 600 ENV OSC_DEBUG=fake_nodes=2)

# What an operation asks of the device.
if(TARGET rdma_count_work)
  osc_rdma_mpi(counts.n2 PROGRAM test_work_counts RANKS 2 SECONDS 300 BELOW rdma_count_work ENV OSC_DEBUG=fake_nodes=2)
endif()

# Its time beside perftest's.
set(programs osc_put_latency osc_get_latency osc_acc_latency)
if(OSC_BUILD_BENCHMARKS)
  osc_rdma_case(measure.ratios SECONDS 1800 FILES ${programs}
    COMMAND sh ../source/tests/rdma/ratios.sh benchmarks/osu $<TARGET_LINKER_FILE:osc>)
endif()

# Hosts: MPICH over UCX as it is, without UCX's memory events, and a host whose own verbs domain is open. libosc
# takes verbs unasked and says how its registrations follow the memory.
foreach(host events events_off own_domain)
  set(environment OSC_DEBUG=fake_nodes=2)
  set(library "")
  set(below)
  set(registrations "cached, by UCX")
  if(host STREQUAL "events_off")
    list(APPEND environment UCX_MEM_EVENTS=n)
    set(registrations "each transfer by itself")
  elseif(host STREQUAL "own_domain")
    set(library :$<TARGET_FILE:rdma_host_domain>)
    set(below BELOW rdma_host_domain)
    set(registrations "each transfer by itself")
  endif()
  osc_program(put_get test_put_get)
  osc_rdma_case(${host}.registrations SECONDS 300 FILES test_put_get rdma_host_domain
    COMMAND sh ../source/tests/rdma/expects.sh "^libosc: rank 0: verbs.ofi_rxm. registrations of transfers: ${registrations}"
      env -u OSC_OFI_PROVIDER OSC_VERBOSE=windows ${environment}
      mpiexec.mpich -n 2 -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc>${library} ${put_get} many_puts_then_one_flush)
  if(host STREQUAL "events")
    continue()  # as in the cases above
  endif()
  foreach(name stale_memory put_get dynamic region_detach)
    osc_rdma_mpi(${host}.${name}.n2 PROGRAM test_${name} RANKS 2 ${below} ENV ${environment})
  endforeach()
  osc_rdma_mpi(${host}.differential.n2 PROGRAM test_differential RANKS 2 ${below} ENV ${environment} ARGS --seconds 30)
endforeach()

# Open MPI, whose patches of the memory calls stand beside the registrations.
if(TARGET osc_openmpi_program)
  add_executable(test_stale_memory_openmpi stale_memory.cpp ../mpi/harness.cpp ../mpi/windows.cpp)
  osc_warnings(test_stale_memory_openmpi)
  target_include_directories(test_stale_memory_openmpi PRIVATE ${CMAKE_SOURCE_DIR}/tests/mpi ${CMAKE_SOURCE_DIR}/src
    ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/tests/support)
  target_link_libraries(test_stale_memory_openmpi PRIVATE osc_openmpi_program Threads::Threads ${CMAKE_DL_LIBS})
  foreach(protocol auto direct)
    osc_rdma_case(openmpi.stale_memory.${protocol}.n2 SECONDS 900 FILES test_stale_memory_openmpi osc_ompi
      COMMAND sh ../source/tests/rdma/expects.sh "^libosc: rank 0: .*over Open MPI"
        mpiexec.openmpi --allow-run-as-root --oversubscribe --bind-to none -n 2 -x LD_PRELOAD=$<TARGET_LINKER_FILE:osc> -x OSC_VERBOSE=1
        -x OSC_DEBUG=fake_nodes=2,net_protocol=${protocol} $<TARGET_FILE:test_stale_memory_openmpi>)
  endforeach()
endif()

# A device that refuses: locked memory, registrations, queue pairs, entries of a completion queue. libosc serves the windows
# or leaves them to the host with a line; the data is right.
set(mpi mpiexec.mpich -n 3 -genv OSC_DEBUG fake_nodes=2)
foreach(kilobytes 64 1024 16384)
  osc_rdma_case(refused.locked_memory.${kilobytes} SECONDS 300 FILES fault_fabric_faults
    COMMAND sh ../source/tests/rdma/refused.sh sh ../source/tests/rdma/confined.sh ${kilobytes}
      ${mpi} -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc> $<TARGET_FILE:fault_fabric_faults> any)
endforeach()
if(TARGET rdma_small_device)
  foreach(limit MAX_MR=2 MAX_MR=8 MAX_MR=16 MAX_MR=40 MAX_QP=1 MAX_QP=2 MAX_QP=4 MAX_CQE=64 MAX_CQE=1024 MAX_CQE=4096)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ ${limit})
    set(variable RDMA_${CMAKE_MATCH_1})
    set(value ${CMAKE_MATCH_2})
    string(TOLOWER ${CMAKE_MATCH_1}.${value} what)
    osc_rdma_case(refused.${what} SECONDS 300 FILES fault_fabric_faults rdma_small_device
      COMMAND sh ../source/tests/rdma/refused.sh ${mpi} -genv ${variable} ${value}
        -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc>:$<TARGET_FILE:rdma_small_device> $<TARGET_FILE:fault_fabric_faults> any)
  endforeach()
  # Enough for the job: libosc serves the windows.
  osc_rdma_mpi(served.max_cqe.8192 PROGRAM test_put_get RANKS 3 BELOW rdma_small_device ENV OSC_DEBUG=fake_nodes=3 RDMA_MAX_CQE=8192)

  # Two devices on one link, and the link that goes down.
  set(ends mpiexec.mpich -genv OSC_DEBUG fake_nodes=2 -genv RDMA_RETRIES 5
    -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc>:$<TARGET_FILE:rdma_small_device>)
  foreach(program test_put_get:-:put_get rdma_link_down:put:down.put rdma_link_down:get:down.get)
    string(REGEX MATCH "^(.*):(.*):(.*)$" _ ${program})
    osc_program(command ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_3})
    if(NOT CMAKE_MATCH_2 STREQUAL "-")
      list(APPEND command ${CMAKE_MATCH_2})
    endif()
    osc_rdma_case(link.${name} SECONDS 300 FILES ${CMAKE_MATCH_1} rdma_small_device
      COMMAND sh ../source/tests/rdma/two_devices.sh
        ${ends} -n 1 -env FI_VERBS_IFACE ve0 ${command} : -n 1 -env FI_VERBS_IFACE ve1 ${command})
  endforeach()
endif()

# A peer is killed.
set(dies --mpiexec mpiexec.mpich --env LD_PRELOAD=$<TARGET_LINKER_FILE:osc>)
osc_rdma_case(killed.holder SECONDS 400 FILES fault_dead_holder COMMAND python3 ../source/tests/fault/run_fault.py ${dies}
  --ranks 4 --seconds 360 --env OSC_DEBUG=fake_nodes=2 -- $<TARGET_FILE:fault_dead_holder>
  locks epochs test notify memory run collectives create)
osc_rdma_case(killed.region SECONDS 400 FILES fault_dead_region COMMAND python3 ../source/tests/fault/run_fault.py ${dies}
  --ranks 4 --seconds 360 --env OSC_DEBUG=fake_nodes=2 -- $<TARGET_FILE:fault_dead_region>)
foreach(death fence:target.verbs.1 exclusive:origin.verbs.0 lock_all:target.verbs.2 request:target.verbs.0 create:third.verbs.1)
  string(REGEX MATCH "^(.*):(.*)$" _ ${death})
  osc_rdma_case(killed.${CMAKE_MATCH_1} SECONDS 300 FILES fault_killed COMMAND python3 ../source/tests/fault/killed.py ${dies}
    --kind ${CMAKE_MATCH_1} --only ${CMAKE_MATCH_2} --seconds 240 -- $<TARGET_FILE:fault_killed>)
endforeach()

# Private memory by XPMEM's module, on one node: see machine.sh for its source.
set(with_xpmem COMMAND sh ../source/tests/rdma/with_xpmem.sh)
osc_program(words test_xpmem)
foreach(ranks 2 3)
  osc_rdma_case(xpmem.own.n${ranks} SECONDS 300 FILES test_xpmem ${with_xpmem} mpiexec.mpich -n ${ranks} -genv OSC_TEST_XPMEM 1
    -genv OSC_STATS 1 -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc>:$<TARGET_FILE:osc_spy> ${words})
endforeach()
foreach(run put_get:3 atomicity:3 reductions:2 compare_and_swap:2 datatypes:2 datatype_forms:2 create:3 dynamic:3 regions:2
    lifetimes:3 threads:2 fork:2 errors:3 fence:4 pscw:3 stale_memory:2)
  string(REGEX MATCH "^(.*):(.*)$" _ ${run})
  set(name ${CMAKE_MATCH_1})
  set(ranks ${CMAKE_MATCH_2})
  osc_program(words test_${name})
  osc_rdma_case(xpmem.${name}.n${ranks} SECONDS 600 FILES test_${name} ${with_xpmem} mpiexec.mpich -n ${ranks}
    -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc>:$<TARGET_FILE:osc_spy> ${words})
endforeach()
osc_rdma_case(xpmem.check SECONDS 300 ${with_xpmem} sh ../source/tests/rdma/expects.sh "ok +xpmem +XPMEM attaches"
  $<TARGET_FILE:osc_info> --check)
foreach(kind fence pscw exclusive shared lock_all request)
  osc_rdma_case(xpmem.killed.${kind} SECONDS 300 FILES fault_killed ${with_xpmem} python3 ../source/tests/fault/killed.py ${dies}
    --xpmem module --kind ${kind} --only target.xpmem.1 --only target.xpmem.2 --seconds 120 -- $<TARGET_FILE:fault_killed>)
endforeach()
osc_rdma_case(xpmem.dead_region SECONDS 400 FILES fault_dead_region ${with_xpmem} python3 ../source/tests/fault/run_fault.py ${dies}
  --ranks 4 --seconds 360 -- $<TARGET_FILE:fault_dead_region>)

get_property(cases GLOBAL PROPERTY osc_rdma_cases)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests/rdma/cases CONTENT "${cases}")
