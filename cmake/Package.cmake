# The Debian package: `cpack -G DEB` in the build folder. Configured with -DCMAKE_INSTALL_PREFIX=/usr, so that the libraries lie
# where Debian has its own; without tests and benchmarks it has no more than README's lines install.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libosc)
set(CPACK_PACKAGE_VENDOR "the libosc developers")
set(CPACK_PACKAGE_CONTACT "the libosc developers <libosc@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "MPI one-sided communication over an existing MPI")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "libosc.so gives existing MPI programs faster one-sided communication (RMA), without
recompiling them: over MPICH, Intel MPI, Open MPI and libraries of the ABI of MPI 5.")
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "mpich | openmpi-bin")
# osc_report draws with matplotlib.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libmpich-dev | libopenmpi-dev, python3-matplotlib")
# The file shlibs, and the trigger of ldconfig.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY >=)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/PackageDepends.cmake)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libosc RENAME copyright)
endif()

# Only what every job needs is a dependency. libosc_ompi.so and its plugins are loaded over Open MPI alone, and libosc_check*.so
# by `osc_info --check`: what these need besides is the host's library, which each job has.
get_property(libraries GLOBAL PROPERTY OSC_LIBRARIES)
list(FILTER libraries EXCLUDE REGEX "^osc_ompi")
set(needing "")
foreach(target IN ITEMS ${libraries} osc_ofi osc_heap osc_info oscrun)
  list(APPEND needing $<TARGET_FILE:${target}>)
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/PackageDepends.cmake CONTENT "
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
set(folder \"${CMAKE_BINARY_DIR}/package\")
file(WRITE \"\${folder}/debian/control\" \"Source: libosc\\n\\nPackage: libosc\\nArchitecture: any\\n\")
execute_process(COMMAND dpkg-shlibdeps --ignore-missing-info -O ${needing} WORKING_DIRECTORY \"\${folder}\"
  OUTPUT_VARIABLE depends COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE \"^shlibs:Depends=|\\n\" \"\" CPACK_DEBIAN_PACKAGE_DEPENDS \"\${depends}\")
")
include(CPack)
