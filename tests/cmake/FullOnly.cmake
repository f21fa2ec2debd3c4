# Runs that only --full makes (configured with OSC_TEST_FULL in the environment), because each takes long and other runs of
# the same program show the same in less time. Sanitizer builds have them: their script chooses for itself.
set(OSC_FULL_ONLY
    # More ranks than the other runs; the protocols meet them in the runs with 8 ranks that stay.
    "differential\\.(n[48]|nodes\\.net\\.n4)" "limits\\.n3" "two_level\\.nodes\\.n8" "split_type\\.narrow\\.n8" "atomicity\\.nodes\\.DID\\.n4"
    "fence_epochs\\.nodes\\.deferred\\.n8" "region_cache\\.(nodes\\.net\\.n4|node\\.DID\\.n4)" "progress\\.(n3|nodes\\.III\\.n3)"
    # Each operation in a message of its own: open_requests, dynamic and waits take this way too.
    "(put_get|datatypes)\\.nodes\\.messages\\.n2"
    # Forced modes of programs that test no synchronisation.
    "(alignment|reductions|compare_and_swap|datatypes|operands|attributes|error_classes|create|regions|info_keys|communicators)\\.nodes?\\.[ID]+\\.n[0-9]"
    # Forced modes between hosts: made-up nodes have them, and hosts the modes that auto chooses.
    "multihost\\.[a-z_]+\\.hosts\\.[ID]+\\.n4"
    # Most of their windows have no whole page; adopt tests those that have.
    "[a-z_]+\\.adopted\\.n[0-9]"
    # The counts are those of the other provider.
    "message_counts\\.nodes\\.tcp\\.n4"
    # More processes than cores, which wait for each other in 141 cases; a combination of two other runs.
    "races\\.(three|nodes_deferred)"
    # By tests/evidence these kill no mutant that a cheaper test does not kill. More ranks:
    "atomicity\\.n3" "blocking\\.n4" "cma_forbidden\\.n4" "communicators\\.n8" "compare_and_swap\\.n4" "create\\.n8" "deadlock\\.n4"
    "fence\\.n3" "fence_epochs\\.n4" "limits\\.growth\\.n64" "lock_order_multiple\\.n3" "locks\\.n3" "message_counts\\.nodes\\.net\\.n8"
    "pscw\\.n4" "put_get\\.n3" "reductions\\.n3" "requests\\.n4" "split_type\\.narrow\\.pairs\\.n5" "strategies\\.n[34]" "alignment\\.n3"
    "adjacent_access\\.n4" "attributes\\.n3" "lock_order\\.n3" "win_test\\.nodes\\.net\\.n3"
    # Made-up nodes with the other provider, or with more ranks:
    "(closed_streams\\.nodes\\.tcp\\.n5|fence_epochs\\.nodes\\.deferred\\.n5|lock_order\\.nodes\\.net\\.n4)"
    "(lock_order_multiple\\.nodes\\.tcp\\.n3|locks\\.nodes\\.thread_only\\.n4|open_requests\\.nodes\\.(buffered\\.n3|tcp\\.n4))"
    "(progress\\.nodes\\.tcp\\.n3|put_get\\.nodes\\.tcp\\.n4|region_cache\\.nodes\\.tcp\\.n4|region_detach\\.nodes\\.(net|tcp)\\.n4)"
    "(requests\\.nodes\\.net\\.n2|strategies\\.(narrow\\.nodes|nodes\\.tcp)\\.n4|threads\\.nodes\\.tcp\\.n3|win_test\\.nodes\\.tcp\\.n4)"
    # Forced modes:
    "(adjacent_access|deadlock|lifetimes|lock_all|lock_order|notify|put_get|strategies|threads|fence_epochs)\\.nodes?\\.[ID]+\\.n[0-9]"
    "(blocking|fence|locks|region_detach|requests)\\.nodes\\.[ID]+\\.n4"
    "fence\\.nodes\\.(immediate|deferred|checked)\\.n[34]" "fence_epochs\\.nodes\\.immediate\\.n4")

# osc_is_full_only(VARIABLE NAME): whether the run NAME is not to be made here.
function(osc_is_full_only result name)
  set(${result} FALSE PARENT_SCOPE)
  if(OSC_SANITIZE OR DEFINED ENV{OSC_TEST_FULL})
    return()
  endif()
  foreach(some IN LISTS OSC_FULL_ONLY)
    if(name MATCHES "^(${some})$")
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
