# How programs find an installed libosc: pkg-config and find_package(osc); and its documents. The library itself and the header are
# installed where they are built (src/CMakeLists.txt).
include(CMakePackageConfigHelpers)

# Relative install directories (the default) stay below a prefix that can be moved; absolute ones are taken as they are.
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(OSC_PC_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(OSC_PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
# Configured at install time, because cmake --install --prefix may name another prefix than the build did.
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/osc.pc.in ${CMAKE_CURRENT_BINARY_DIR}/osc.pc.staged @ONLY)
install(CODE "
  file(READ \"${CMAKE_CURRENT_BINARY_DIR}/osc.pc.staged\" text)
  string(REGEX REPLACE \"^prefix=[^\\n]*\" \"prefix=\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
  file(WRITE \"${CMAKE_CURRENT_BINARY_DIR}/osc.pc\" \"\${text}\")")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/osc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(OSC_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/osc)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/osc-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/osc-config.cmake INSTALL_DESTINATION ${OSC_CONFIG_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/osc-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY AnyNewerVersion)
install(EXPORT osc NAMESPACE osc:: FILE osc-targets.cmake DESTINATION ${OSC_CONFIG_DIR})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/osc-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/osc-config-version.cmake
  DESTINATION ${OSC_CONFIG_DIR})

# The documents that users need, in the folders that messages and links name.
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/osc)
install(FILES ${CMAKE_SOURCE_DIR}/docs/GUIDE.md ${CMAKE_SOURCE_DIR}/docs/TROUBLESHOOTING.md
  ${CMAKE_SOURCE_DIR}/docs/CHECKING.md ${CMAKE_SOURCE_DIR}/docs/timeline.png
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/osc/docs)
