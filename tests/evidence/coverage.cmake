# For coverage.py, as CMAKE_PROJECT_INCLUDE: the libraries, and the programs that contain their code, count executed lines.
# Programs that only preload or call libosc stay as they are, and a compiler cache knows them.
function(osc_count_lines)
  get_property(targets DIRECTORY ${CMAKE_SOURCE_DIR}/src PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets ITEMS osc_fake)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC|SHARED|MODULE|OBJECT)_LIBRARY$")
      target_compile_options(${target} PUBLIC --coverage -fprofile-update=atomic)
      target_link_options(${target} PUBLIC --coverage)
    endif()
  endforeach()
  # Its jump to the loader's function must be the last instruction: a counter behind it makes it a call.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/api/dlsym.cpp TARGET_DIRECTORY osc PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS "-fprofile-exclude-files=dlsym\\.cpp")
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL osc_count_lines)
