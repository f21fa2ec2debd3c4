# Runs that only --full makes (configured with OSC_TEST_FULL in the environment), because each takes long and other runs of
# the same program show the same in less time. Sanitizer builds have them: their script chooses for itself.
set(OSC_FULL_ONLY
    # More ranks than the other runs; the protocols meet them in the runs with 8 ranks that stay.
    "differential\\.n[48]" "limits\\.n3" "two_level\\.nodes\\.n8" "split_type\\.narrow\\.n8" "atomicity\\.nodes\\.DID\\.n4"
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
    "races\\.(three|nodes_deferred)")

# osc_is_full_only(VARIABLE NAME): whether the run NAME is not to be made here.
function(osc_is_full_only result name)
  set(${result} FALSE PARENT_SCOPE)
  if(OSC_SANITIZE OR DEFINED ENV{OSC_TEST_FULL})
    return()
  endif()
  list(JOIN OSC_FULL_ONLY "|" any)
  if(name MATCHES "^(${any})$")
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()
