target_sources(osc PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/datatype.cpp
  ${CMAKE_CURRENT_LIST_DIR}/datatype_contents.cpp
  ${CMAKE_CURRENT_LIST_DIR}/datatype_flatten.cpp
  ${CMAKE_CURRENT_LIST_DIR}/datatype_predefined.cpp
  ${CMAKE_CURRENT_LIST_DIR}/signature.cpp)
