# The same programs with their ranks on made-up nodes (OSC_DEBUG=fake_nodes): libosc's network path without a second host.
# tests/multihost has real hosts. NAME:RANKS:WORLD, in which WORLD is
#   net, tcp                   one of the software providers (net is the default), so that every room of the code meets both
#   messages, buffered, direct the way in which operations travel, forced
#   two_level                  two-level locks, each process on a node of its own
#   provider_atomics           accumulates by the provider's atomics
set(runs_short
    put_get:2:net lock_all:4:tcp pscw:4:net win_test:2:net requests:4:tcp open_requests:3:net threads:2:tcp
    deadlock:4:tcp lock_order:2:tcp lock_order_multiple:2:net reductions:2:net datatypes:3:net shared:4:tcp
    progress:2:net communicators:4:net errors:3:tcp error_classes:3:net operands:2:tcp null_buffers:2:net
    unnamed_types:2:tcp create:4:tcp dynamic:4:net dynamic:2:tcp regions:4:tcp region_cache:2:tcp region_detach:2:tcp
    notify:3:tcp notify:2:net notify_threads:2:tcp no_memory:4:net large_counts:2:tcp put_get:2:buffered
    datatypes:2:buffered dynamic:2:buffered dynamic:2:direct locks:2:two_level error_classes:2:two_level
    requests:2:provider_atomics locks:2:provider_atomics errors:3:provider_atomics)
set(runs_gate
    fence:4:net locks:4:tcp locks:3:net atomicity:2:tcp alignment:2:net threads:4:net blocking:4:net
    adjacent_access:4:tcp compare_and_swap:4:tcp attributes:3:net region_cache:3:net region_detach:3:net info_keys:4:net
    lifetimes:4:tcp limits:2:tcp streams:2:tcp streams:3:net dynamic:2:messages open_requests:3:messages
    put_get:2:direct datatypes:2:direct datatype_forms:2:net datatype_forms:2:tcp datatype_forms:2:buffered
    datatype_edges:2:net datatype_edges:3:tcp
    open_requests:3:direct lock_all:4:two_level deadlock:4:two_level blocking:3:two_level
    requests:3:two_level threads:2:two_level dynamic:2:two_level reductions:2:provider_atomics)
set(runs_full
    put_get:4:tcp win_test:4:tcp win_test:3:net requests:2:net open_requests:4:tcp lock_order:4:net
    lock_order_multiple:3:tcp threads:3:tcp progress:3:tcp region_cache:4:tcp region_detach:4:tcp region_cache:4:net
    region_detach:4:net put_get:2:messages datatypes:2:messages open_requests:3:buffered atomicity:2:provider_atomics
    compare_and_swap:4:provider_atomics pscw:3:provider_atomics threads:2:provider_atomics datatypes:3:provider_atomics)
set(setting_tcp OSC_OFI_PROVIDER=tcp)
foreach(protocol messages buffered direct)
  set(debug_${protocol} ,net_protocol=${protocol})
endforeach()
set(debug_two_level ,lock_scheme=two_level)
set(debug_provider_atomics ,atomics=provider)
foreach(level short gate full)
  foreach(run IN LISTS runs_${level})
    string(REGEX MATCH "^(.*):(.*):(.*)$" _ ${run})
    set(name ${CMAKE_MATCH_1})
    set(ranks ${CMAKE_MATCH_2})
    set(world ${CMAKE_MATCH_3})
    set(nodes 2)
    set(timeout 120)
    if(world STREQUAL "provider_atomics")
      set(timeout 300)
    elseif(world STREQUAL "two_level")
      set(nodes ${ranks})
    endif()
    osc_mpi_add_run(${name}.nodes.${world}.n${ranks} test_${name} ${ranks} LEVEL ${level} TIMEOUT ${timeout}
      ENV OSC_DEBUG=fake_nodes=${nodes}${debug_${world}} ${setting_${world}})
  endforeach()
endforeach()

# The network's descriptors, and those of a trace.
set(level_net gate)
set(level_tcp full)
foreach(provider tcp net)
  osc_mpi_add_run(closed_streams.nodes.${provider}.n5 test_closed_streams 5 LEVEL ${level_${provider}} TIMEOUT 60
    ENV OSC_DEBUG=fake_nodes=2 OSC_OFI_PROVIDER=${provider} OSC_TRACE=${CMAKE_CURRENT_BINARY_DIR}/closed_streams.${provider}.json)
endforeach()

# The notification behind a direct transfer, and behind a large put by message.
foreach(protocol messages direct)
  osc_mpi_add_run(notify.nodes.${protocol}.n2 test_notify 2 LEVEL short TIMEOUT 120
    ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol}
    ARGS a_notification_implies_its_data a_notified_get_has_read request_forms)
endforeach()

# When fences have their operations done, chosen and forced; also with a number of nodes that is no power of two, and
# with several processes on each.
foreach(run auto:2:2:tcp:short auto:4:2:net:gate deferred:3:3:tcp:short deferred:8:4:tcp:full deferred:5:5:net:full immediate:4:2:tcp:full)
  string(REGEX MATCH "^(.*):(.*):(.*):(.*):(.*)$" _ ${run})
  set(environment OSC_DEBUG=fake_nodes=${CMAKE_MATCH_3} OSC_FENCE=${CMAKE_MATCH_1})
  if(CMAKE_MATCH_4 STREQUAL "tcp")
    list(APPEND environment OSC_OFI_PROVIDER=tcp)
  endif()
  osc_mpi_add_run(fence_epochs.nodes.${CMAKE_MATCH_1}.n${CMAKE_MATCH_2} test_fence_epochs ${CMAKE_MATCH_2}
    LEVEL ${CMAKE_MATCH_5} TIMEOUT 120
    ENV ${environment})
endforeach()
# What is said comes in one order, the verdict on the other stream anywhere.
osc_mpi_add_run(fence_epochs.nodes.told.n2 test_fence_epochs 2 LEVEL short TIMEOUT 60 ENV OSC_DEBUG=fake_nodes=2 OSC_VERBOSE=strategy
  ARGS each_epoch_is_whole_when_its_fence_returns)
set_tests_properties(fence_epochs.nodes.told.n2 PROPERTIES PASS_REGULAR_EXPRESSION
  "2 processes on several nodes: fences auto .deferred until.*fences are immediate from now on.*fences are deferred from now on"
  FAIL_REGULAR_EXPRESSION "FAILED|BAD TERMINATION")
osc_mpi_add_run(fence_epochs.nodes.stays.n2 test_fence_epochs 2 LEVEL short TIMEOUT 60 ENV OSC_DEBUG=fake_nodes=2 OSC_VERBOSE=strategy
  ARGS empty_epochs_cast_no_vote)
set_tests_properties(fence_epochs.nodes.stays.n2 PROPERTIES
  PASS_REGULAR_EXPRESSION "a message's way [0-9.]+ us.*fence 2 of .*65536 directly would take.*immediate from now on"
  FAIL_REGULAR_EXPRESSION "deferred from now on|FAILED|BAD TERMINATION")
# Large puts by message, the first behind a fence.
foreach(protocol messages buffered)
  osc_mpi_add_run(fence_epochs.nodes.${protocol}.n2 test_fence_epochs 2 LEVEL short TIMEOUT 60
    ENV OSC_DEBUG=fake_nodes=2,net_protocol=${protocol} OSC_FENCE=deferred ARGS empty_epochs_cast_no_vote)
endforeach()
osc_mpi_add_run(strategies.nodes.tcp.n2 test_strategies 2 LEVEL short TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2 OSC_OFI_PROVIDER=tcp)
osc_mpi_add_run(strategies.nodes.tcp.n4 test_strategies 4 LEVEL full TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2)
osc_mpi_add_run(strategies.nodes.net.n3 test_strategies 3 TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=3 OSC_OFI_PROVIDER=net)
foreach(mode immediate deferred)
  osc_mpi_add_run(fence.nodes.${mode}.n4 test_fence 4 LEVEL full TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2 OSC_FENCE=${mode})
endforeach()

# A wait for one process goes on with what is asked of others: each is a node.
foreach(run auto:net:short messages:net:gate buffered:net:gate direct:net:gate auto:tcp:gate)
  string(REGEX MATCH "^(.*):(.*):(.*)$" _ ${run})
  set(environment OSC_DEBUG=fake_nodes=3,net_protocol=${CMAKE_MATCH_1})
  set(provider "")
  if(CMAKE_MATCH_2 STREQUAL "tcp")
    list(APPEND environment OSC_OFI_PROVIDER=tcp)
    set(provider .tcp)
  endif()
  osc_mpi_add_run(waits.nodes.${CMAKE_MATCH_1}${provider}.n3 test_waits 3 LEVEL ${CMAKE_MATCH_3} TIMEOUT 120 ENV ${environment})
endforeach()
osc_mpi_add_run(waits.nodes.two.n4 test_waits 4 TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2)

osc_mpi_add_run(connections.nodes.n8 test_connections 8 LEVEL short TIMEOUT 60 ENV OSC_DEBUG=fake_nodes=2)
# Of four processes that contend for a lock on two cores one often runs alone, so shares say little of the lock then.
osc_mpi_add_run(message_counts.nodes.net.n4 test_message_counts 4 TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=4
  ARGS lock_all_sends_nothing_by_itself an_operation_under_a_lock_is_one_round_trip post_start_complete_wait_costs_three_messages
    a_single_operation_goes_directly adjacent_puts_are_merged)
osc_mpi_add_run(message_counts.nodes.net.n8 test_message_counts 8 LEVEL full TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=8)
# Messages over ofi_rxm are too short for the counts of large puts.
osc_mpi_add_run(message_counts.nodes.tcp.n4 test_message_counts 4 LEVEL full TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2 OSC_OFI_PROVIDER=tcp
  ARGS lock_all_sends_nothing_by_itself an_operation_under_a_lock_is_one_round_trip post_start_complete_wait_costs_three_messages
    a_single_operation_goes_directly)

# Two-level locks where each process is a node, and the fallback and its report where they are not possible.
foreach(run 2:short 4:gate 8:full)
  string(REGEX MATCH "^(.*):(.*)$" _ ${run})
  set(ranks ${CMAKE_MATCH_1})
  osc_mpi_add_run(two_level.nodes.n${ranks} test_two_level ${ranks} LEVEL ${CMAKE_MATCH_2} TIMEOUT 120
    ENV OSC_DEBUG=fake_nodes=${ranks},lock_scheme=two_level)
endforeach()
# The first one of the software providers has no atomics, and the program's first window does not ask for them.
find_path(OSC_LIBFABRIC_INCLUDE rdma/fabric.h REQUIRED)
file(STRINGS ${OSC_LIBFABRIC_INCLUDE}/rdma/fabric.h libfabric REGEX "define FI_MAJOR_VERSION")
set(wish_beside_lock_key atomics=provider)
set(wish_beside_atomics_key lock_scheme=two_level)
osc_mpi_add_run(two_level.nodes.key.n3 test_two_level 3 TIMEOUT 60
  ENV OSC_DEBUG=fake_nodes=3,${wish_beside_lock_key} OSC_VERBOSE=strategy
  ARGS all_agree_on_the_scheme locks_behind_fences)
set_tests_properties(two_level.nodes.key.n3 PROPERTIES PASS_REGULAR_EXPRESSION
  "locks two-level, by the network's atomics.*PASSED: 2 cases|PASSED: 2 cases.*locks two-level, by the network's atomics")
osc_mpi_add_run(two_level.nodes.shared.n4 test_two_level 4 TIMEOUT 60 ENV OSC_DEBUG=fake_nodes=2 OSC_VERBOSE=strategy
  ARGS all_agree_on_the_scheme locks_behind_fences)
set_tests_properties(two_level.nodes.shared.n4 PROPERTIES PASS_REGULAR_EXPRESSION
  "locks queued, because two processes of the window share a node.*PASSED: 2 cases|PASSED: 2 cases.*locks queued, because two processes of the window share a node")
# libfabric 2 has the provider net under the name tcp.
if(libfabric MATCHES " 1$")
  set(net_scheme "locks queued, because net has no atomics on words of 64 bits")
else()
  set(net_scheme "locks queued, because tcp has no atomics")
endif()
osc_mpi_add_run(two_level.nodes.net.n3 test_two_level 3 LEVEL short TIMEOUT 60
  ENV OSC_DEBUG=fake_nodes=3 OSC_OFI_PROVIDER=net OSC_VERBOSE=strategy
  ARGS all_agree_on_the_scheme locks_behind_fences)
set_tests_properties(two_level.nodes.net.n3 PROPERTIES PASS_REGULAR_EXPRESSION
  "${net_scheme}.*PASSED: 2 cases|PASSED: 2 cases.*${net_scheme}")

# Accumulates by the provider's atomics, one process on each node and two, and the fallback and its report.
foreach(run 2:gate 4:short)
  string(REGEX MATCH "^(.*):(.*)$" _ ${run})
  osc_mpi_add_run(provider_atomics.nodes.n${CMAKE_MATCH_1} test_provider_atomics ${CMAKE_MATCH_1} LEVEL ${CMAKE_MATCH_2} TIMEOUT 120
    ENV OSC_DEBUG=fake_nodes=2,${wish_beside_atomics_key})
endforeach()
osc_mpi_add_run(provider_atomics.nodes.shared.n4 test_provider_atomics 4 LEVEL short TIMEOUT 120
  ENV OSC_DEBUG=fake_nodes=2,${wish_beside_atomics_key} OSC_FENCE=deferred OSC_PSCW=deferred OSC_LOCK=deferred)
osc_mpi_add_run(provider_atomics.nodes.net.n2 test_provider_atomics 2 LEVEL short TIMEOUT 60
  ENV OSC_DEBUG=fake_nodes=2 OSC_OFI_PROVIDER=net OSC_VERBOSE=strategy ARGS all_agree calls_keep_their_order)
set(net_accumulates "accumulates by messages, because (net|tcp) has no atomics")
set_tests_properties(provider_atomics.nodes.net.n2 PROPERTIES PASS_REGULAR_EXPRESSION
  "${net_accumulates}.*PASSED: 2 cases|PASSED: 2 cases.*${net_accumulates}")

# Asserts that are checked; and programs whose asserts are true, which notice nothing.
osc_mpi_add_run(checked.nodes.tcp.n4 test_checked 4 LEVEL short TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2 OSC_CHECK=1)
osc_mpi_add_run(checked.deferred.n2 test_checked 2 LEVEL short TIMEOUT 120 ENV OSC_CHECK=1 OSC_FENCE=deferred OSC_PSCW=deferred OSC_LOCK=deferred)
foreach(name fence pscw blocking)
  osc_mpi_add_run(${name}.checked.n3 test_${name} 3 TIMEOUT 120 ENV OSC_CHECK=1)
endforeach()
osc_mpi_add_run(fence.nodes.checked.n3 test_fence 3 LEVEL full TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2 OSC_CHECK=1)

# The thread alone, also while the application waits inside the host.
osc_mpi_add_run(streams.nodes.thread_only.n2 test_streams 2 LEVEL short TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2,host_progress_hook=0)
# The user's buffers hold no whole message: they are made to, or messages would lose their order.
osc_mpi_add_run(streams.nodes.small_buffers.n2 test_streams 2 LEVEL short TIMEOUT 120
  ENV OSC_DEBUG=fake_nodes=2 FI_OFI_RXM_BUFFER_SIZE=4096 FI_OFI_RXM_MSG_RX_SIZE=256)
osc_mpi_add_run(locks.nodes.thread_only.n4 test_locks 4 LEVEL full TIMEOUT 120 ENV OSC_DEBUG=fake_nodes=2,host_progress_hook=0)

# No provider, no interface: all processes agree on the host, or on the error.
osc_mpi_add_run(operands.nodes.no_provider.n2 test_operands 2 LEVEL short TIMEOUT 60
  ENV OSC_DEBUG=fake_nodes=2 OSC_FALLBACK=host OSC_OFI_PROVIDER=none)
set_tests_properties(operands.nodes.no_provider.n2 PROPERTIES PASS_REGULAR_EXPRESSION
  "the host MPI serves this window, because the network cannot be used: none")
# Hydra drops what a job has written in up to one of six jobs that MPI_Abort ends, so the job is run four times. The first
# rank to say it may end the other.
if(TARGET osc AND NOT OSC_SANITIZE)
  add_test(NAME operands.nodes.no_interface.n2 COMMAND sh -c "for job in 1 2 3 4; do timeout -k 5 60 \"$@\"; done" jobs
    ${OSC_MPIEXEC} -n 2 -genv OSC_FALLBACK error -genv OSC_DEBUG fake_nodes=2 -genv OSC_OFI_IFACE nope0
    -genv LD_PRELOAD $<TARGET_LINKER_FILE:osc> $<TARGET_FILE:mpi_data> operands)
  set_tests_properties(operands.nodes.no_interface.n2 PROPERTIES TIMEOUT 300 PROCESSORS 2 LABELS "mpi;data;net;short"
    PASS_REGULAR_EXPRESSION "rank [01]: .*no interface nope0 ")
endif()

# The process's first thread has ended, and another one uses MPI: the system knows the process by the others only.
foreach(program locks put_get)
  osc_mpi_add_run(${program}.first_thread_ends.n2 test_${program} 2 LEVEL short ENV TEST_FIRST_THREAD_ENDS=1)
endforeach()

# Memory of MPI_Win_create becomes shared wherever it has a whole page; most windows of these programs have none, and adopt
# tests those that have.
foreach(run put_get:2 fence:4 locks:4 pscw:4 atomicity:4 alignment:2 requests:4 threads:4 compare_and_swap:4 datatypes:3 reductions:2
    progress:3 errors:3 create:4 lifetimes:4 dynamic:4 regions:4)
  string(REGEX MATCH "^(.*):(.*)$" _ ${run})
  osc_mpi_add_run(${CMAKE_MATCH_1}.adopted.n${CMAKE_MATCH_2} test_${CMAKE_MATCH_1} ${CMAKE_MATCH_2} LEVEL full TIMEOUT 120
    ENV OSC_ADOPT=always)
endforeach()
osc_mpi_add_run(batches.adopted.n2 test_batches 2 LEVEL full TIMEOUT 60 ENV OSC_ADOPT=always
  ARGS memory_of_every_kind runs_of_puts_and_gets runs_at_the_edges_of_adopted_memory)
# Accesses by the target's agent instead of process_vm_*.
osc_mpi_add_run(progress.agents.n2 test_progress 2 LEVEL short TIMEOUT 60 ENV OSC_DEBUG=cma=off
  ARGS a_handler_opens_pages_that_the_target_watches)
foreach(program datatypes datatype_forms datatype_edges regions)
  osc_mpi_add_run(${program}.agents.n2 test_${program} 2 LEVEL short TIMEOUT 60 ENV OSC_DEBUG=cma=off)
endforeach()
# The edges of adopted memory by the target's agent.
osc_mpi_add_run(adopt.agents.n2 test_adopt 2 TIMEOUT 120 ENV OSC_ADOPT=auto OSC_DEBUG=cma=off)
# Peers on the node load and store, those of the other node send messages, to the same memory.
osc_mpi_add_run(adopt.nodes.n4 test_adopt 4 TIMEOUT 120 ENV OSC_ADOPT=auto OSC_DEBUG=fake_nodes=2
  ARGS arrays_of_every_kind_become_shared atomics_are_atomic_on_and_across_edges attached_memory_becomes_shared
    atomics_are_atomic_on_and_across_edges_of_a_region a_region_is_attached_again regions_overlap_other_windows
    operations_in_flight_keep_memory_private)
# The lines that say what became of a window's and of attached memory.
osc_mpi_add_run(adopt.told.n2 test_adopt 2 LEVEL short TIMEOUT 60 ENV OSC_ADOPT=auto OSC_VERBOSE=windows
  ARGS a_small_window_across_the_end_of_adopted_memory neighbours_of_a_region_stay_private
    the_windows_key_and_auto_decide_for_regions)
set_tests_properties(adopt.told.n2 PROPERTIES PASS_REGULAR_EXPRESSION
  "16515072 bytes at 0x[0-9a-f]+, not shared: auto copies large memory only.*MPI_Win_create: window 0x[0-9a-f]+ of 2 processes, 12288 bytes here at 0x[0-9a-f]+, shared but for its first")
