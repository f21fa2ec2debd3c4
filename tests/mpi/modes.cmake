# The same programs with each kind of synchronisation forced to be immediate (I) or deferred (D): OSC_FENCE, OSC_PSCW,
# OSC_LOCK, in this order, in their short variants; all eight combinations on one node and on two made-up nodes. Two hosts
# differ from made-up nodes by their network, not by their strategies: there all kinds are immediate by one provider and
# deferred by the other. Only --full runs them, but for a few that find what no cheaper
# test finds.
set(level_dynamic.node.DDI short)
set(level_errors.nodes.DDI short)
set(level_pscw.node.DID gate)
set(level_shared.node.DDI gate)

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
    error_classes:3 operands:2 attributes:3 create:4 dynamic:4 regions:4 region_cache:4 region_detach:4 notify:3 info_keys:4 lifetimes:4 streams:3
    checked:3:OSC_CHECK=1)
set(providers tcp net)
foreach(run IN LISTS runs)
  string(REGEX MATCH "^([^:]*):([0-9]*):?(.*)$" _ ${run})
  set(name ${CMAKE_MATCH_1})
  set(ranks ${CMAKE_MATCH_2})
  set(setting ${CMAKE_MATCH_3})
  list(GET providers 0 provider_III)
  list(GET providers 1 provider_DDD)
  list(REVERSE providers)
  foreach(modes III IDD DID DDI IID IDI DII DDD)
    osc_forced_modes(environment ${modes})
    list(APPEND environment OSC_TEST_FULL=0 ${setting})
    if(provider_${modes})
      osc_multihost_test(${name}.hosts.${modes}.n${ranks} PROGRAM test_${name} HOSTS 2 RANKS ${ranks} LEVEL full
        PROVIDER ${provider_${modes}} TIMEOUT 240 ENV ${environment})
    endif()
    foreach(world node nodes)
      set(level full)
      if(level_${name}.${world}.${modes})
        set(level ${level_${name}.${world}.${modes}})
      endif()
      if(world STREQUAL "nodes")
        list(APPEND environment OSC_DEBUG=fake_nodes=2)
      endif()
      osc_mpi_add_run(${name}.${world}.${modes}.n${ranks} test_${name} ${ranks} LEVEL ${level} TIMEOUT 120 ENV ${environment})
    endforeach()
  endforeach()
endforeach()
