# How programs find an installed libosc: pkg-config and find_package(osc); and its documents. The library itself and the header are
# installed where they are built (src/CMakeLists.txt).
include(CMakePackageConfigHelpers)

# With relative install directories, the default, the prefix can be moved: osc.pc finds it from its own folder, as osc_info,
# oscrun and osc-config.cmake do. Absolute ones are taken as they are.
set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(OSC_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH OSC_PC_PREFIX "/${pc_folder}" /)
  string(REGEX REPLACE "/$" "" OSC_PC_PREFIX "\${pcfiledir}/${OSC_PC_PREFIX}")
endif()
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(OSC_PC_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(OSC_PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
# The loader searches the system's folders by itself.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(OSC_PC_RPATH " -Wl,-rpath,\${libdir}")
endif()
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/osc.pc.in ${CMAKE_CURRENT_BINARY_DIR}/osc.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/osc.pc DESTINATION ${pc_folder})

set(OSC_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/osc)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/osc-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/osc-config.cmake INSTALL_DESTINATION ${OSC_CONFIG_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/osc-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY AnyNewerVersion)
install(EXPORT osc NAMESPACE osc:: FILE osc-targets.cmake DESTINATION ${OSC_CONFIG_DIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/osc-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/osc-config-version.cmake
  DESTINATION ${OSC_CONFIG_DIR})

# The documents, and what their links lead to. tests/packages/installed.py follows the links.
set(doc_folder ${CMAKE_INSTALL_DATADIR}/doc/osc)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${doc_folder})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/examples DESTINATION ${doc_folder}
  PATTERN CMakeLists.txt EXCLUDE)

# The target uninstall removes what the last installation from this build folder has installed.
add_custom_target(uninstall COMMAND sh ${CMAKE_SOURCE_DIR}/cmake/uninstall.sh ${CMAKE_BINARY_DIR})
