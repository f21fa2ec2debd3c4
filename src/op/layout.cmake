target_sources(osc_core PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cursor.cpp
  ${CMAKE_CURRENT_LIST_DIR}/copy.cpp
  ${CMAKE_CURRENT_LIST_DIR}/queue.cpp)
# Loops over the blocks of layouts.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cursor.cpp ${CMAKE_CURRENT_LIST_DIR}/copy.cpp
  TARGET_DIRECTORY osc_core PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
