# The host takes every rank, or every two, for a node of its own: libosc finds out for itself that they share memory.
add_library(narrow_host SHARED narrow_host.cpp)
osc_warnings(narrow_host)
target_link_libraries(narrow_host PRIVATE osc_host_mpi ${CMAKE_DL_LIBS})
foreach(run put_get:4 locks:4 shared:3 dynamic:2 communicators:4 split_type:1 split_type:2 split_type:3 split_type:4)
  string(REGEX MATCH "^(.*):(.*)$" _ ${run})
  osc_mpi_add_run(${CMAKE_MATCH_1}.narrow.n${CMAKE_MATCH_2} test_${CMAKE_MATCH_1} ${CMAKE_MATCH_2} TIMEOUT 120
    BELOW narrow_host)
endforeach()
osc_mpi_add_run(split_type.narrow.n8 test_split_type 8 LEVEL full TIMEOUT 120 BELOW narrow_host)
osc_mpi_add_run(split_type.narrow.many.n2 test_split_type 2 TIMEOUT 120 BELOW narrow_host ENV OSC_TEST_ROUNDS=many
  ARGS many_splits_leave_nothing)
osc_mpi_add_run(split_type.narrow.pairs.n5 test_split_type 5 LEVEL full BELOW narrow_host ENV OSC_TEST_NODE_RANKS=2)
osc_mpi_add_run(split_type.narrow.left.n4 test_split_type 4 BELOW narrow_host ENV OSC_DEBUG=split_type=host)
osc_mpi_add_run(split_type.narrow.left_pairs.n5 test_split_type 5 BELOW narrow_host
  ENV OSC_DEBUG=split_type=host OSC_TEST_NODE_RANKS=2)
# Made-up nodes stay what they are.
osc_mpi_add_run(strategies.narrow.nodes.n4 test_strategies 4 LEVEL full TIMEOUT 120 BELOW narrow_host ENV OSC_DEBUG=fake_nodes=2)
