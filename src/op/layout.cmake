target_sources(osc_core PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cursor.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pack.cpp
  ${CMAKE_CURRENT_LIST_DIR}/queue.cpp)
