# The same programs with each kind of synchronisation forced to be immediate (I) or deferred (D): OSC_FENCE, OSC_PSCW,
# OSC_LOCK, in this order, in their short variants. Each program meets one of four combinations, in which every pair of
# modes of two kinds occurs, on one node or on two made-up nodes in turn; configured with OSC_TEST_FULL in the
# environment, all eight on both. Two hosts differ from made-up nodes by their network, not by their strategies: there only
# each kind's own program runs, in the mode that auto does not choose, and with OSC_TEST_FULL all of them, with all kinds
# immediate by one provider and all deferred by the other.
set(modes_pairs III IDD DID DDI)
set(modes_rest IID IDI DII DDD)
set(modes_worlds node nodes)
set(modes_hosts_fence III)
set(modes_hosts_pscw IDD)
set(modes_hosts_locks DDI)

# osc_forced_modes(VARIABLE MODES): the settings that force three letters.
function(osc_forced_modes result modes)
  set(settings "")
  set(place 0)
  foreach(variable OSC_FENCE OSC_PSCW OSC_LOCK)
    string(SUBSTRING ${modes} ${place} 1 letter)
    math(EXPR place "${place} + 1")
    if(letter STREQUAL "D")
      list(APPEND settings ${variable}=deferred)
    else()
      list(APPEND settings ${variable}=immediate)
    endif()
  endforeach()
  set(${result} ${settings} PARENT_SCOPE)
endfunction()

# Not here: what creates windows and no more, what is about room (large_counts, limits), and what is about one mode
# (open_requests about locks that are not awaited, message_counts and two_level).
set(runs
    put_get:3 fence:4 fence_epochs:4 strategies:3 pscw:4 locks:4 lock_all:4 atomicity:4 alignment:2 requests:4 threads:4 deadlock:4 lock_order:3
    blocking:4 adjacent_access:4 reductions:2 compare_and_swap:4 datatypes:3 shared:3 progress:3 communicators:4 errors:3
    error_classes:3 operands:2 attributes:3 create:4 dynamic:4 regions:4 region_cache:4 region_detach:4 notify:3 info_keys:4 lifetimes:4)
if(DEFINED ENV{OSC_TEST_FULL})
  list(APPEND runs streams:3 checked:3:OSC_CHECK=1)
endif()
set(index 0)
set(providers tcp net)
foreach(run IN LISTS runs)
  string(REGEX MATCH "^([^:]*):([0-9]*):?(.*)$" _ ${run})
  set(name ${CMAKE_MATCH_1})
  set(ranks ${CMAKE_MATCH_2})
  set(setting ${CMAKE_MATCH_3})
  # Every second program on one node, the others on two; both groups go through all four combinations.
  math(EXPR world "${index} % 2")
  math(EXPR pair "(${index} + ${index} / 2) % 4")
  math(EXPR index "${index} + 1")
  list(GET modes_worlds ${world} worlds)
  list(GET modes_pairs ${pair} chosen)
  if(DEFINED ENV{OSC_TEST_FULL})
    set(worlds ${modes_worlds})
    set(chosen ${modes_pairs} ${modes_rest})
  endif()
  foreach(world IN LISTS worlds)
    foreach(modes IN LISTS chosen)
      osc_forced_modes(environment ${modes})
      list(APPEND environment OSC_TEST_FULL=0 ${setting})
      if(world STREQUAL "nodes")
        list(APPEND environment OSC_DEBUG=fake_nodes=2)
      endif()
      osc_mpi_add_run(${name}.${world}.${modes}.n${ranks} test_${name} ${ranks} TIMEOUT 120 ENV ${environment})
    endforeach()
  endforeach()

  # One by one provider, one by the other, in turn.
  set(chosen ${modes_hosts_${name}})
  if(DEFINED ENV{OSC_TEST_FULL})
    set(chosen III DDD)
  endif()
  foreach(modes IN LISTS chosen)
    list(GET providers 0 provider)
    if(modes STREQUAL "DDD")
      list(GET providers 1 provider)
    endif()
    osc_forced_modes(environment ${modes})
    list(APPEND environment OSC_TEST_FULL=0 ${setting})
    osc_multihost_test(${name}.hosts.${modes}.n${ranks} PROGRAM test_${name} HOSTS 2 RANKS ${ranks} PROVIDER ${provider}
      TIMEOUT 240 ENV ${environment})
  endforeach()
  list(REVERSE providers)
endforeach()
