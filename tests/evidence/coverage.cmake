# For coverage.py, as CMAKE_PROJECT_INCLUDE: the libraries, and the programs that contain their code, count executed lines.
# Programs that only preload or call libosc stay as they are, and a compiler cache knows them.
function(osc_count_lines)
  foreach(target IN ITEMS osc_core osc osc_ofi osc_heap osc_fake)
    if(TARGET ${target})
      target_compile_options(${target} PUBLIC --coverage -fprofile-update=atomic)
      target_link_options(${target} PUBLIC --coverage)
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL osc_count_lines)
