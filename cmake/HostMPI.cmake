# The host MPIs, each taken from its compiler wrapper. libosc.so itself is for MPICH's ABI (mpicc.mpich unless OSC_MPICC says
# otherwise), and libosc_ompi.so for Open MPI, where its wrapper is found (mpicc.openmpi, or OSC_OPENMPI_MPICC).
#   osc_host_mpi          headers only: what the library itself uses (it finds the host's functions at run time)
#   osc_host_mpi_program  headers and library: what tests, benchmarks and examples use
#   OSC_MPIEXEC           the launcher
#   osc_openmpi, osc_openmpi_program, OSC_OPENMPI_MPIEXEC   the same of Open MPI
find_program(OSC_MPICC NAMES mpicc.mpich mpicc REQUIRED)
find_program(OSC_MPIEXEC NAMES mpiexec.mpich mpiexec REQUIRED)

# A compiler wrapper's folders of headers, its words for the linker and, if asked for, its definitions.
function(osc_parse_wrapper wrapper includes links)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE line OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${line}")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)$")
      list(APPEND inc ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-D(.+)$")
      list(APPEND definitions ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L|^-l|^-Wl,")
      list(APPEND lib ${word})
    endif()
  endforeach()
  set(${includes} "${inc}" PARENT_SCOPE)
  set(${links} "${lib}" PARENT_SCOPE)
  if(ARGC GREATER 3)
    set(${ARGV3} "${definitions}" PARENT_SCOPE)
  endif()
endfunction()

osc_parse_wrapper(${OSC_MPICC} OSC_MPI_INCLUDES OSC_MPI_LINK definitions)
add_library(osc_host_mpi INTERFACE)
target_include_directories(osc_host_mpi SYSTEM INTERFACE ${OSC_MPI_INCLUDES})
target_compile_definitions(osc_host_mpi INTERFACE ${definitions} MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)
add_library(osc_host_mpi_program INTERFACE)
target_link_libraries(osc_host_mpi_program INTERFACE osc_host_mpi ${OSC_MPI_LINK})

find_program(OSC_OPENMPI_MPICC NAMES mpicc.openmpi)
find_program(OSC_OPENMPI_MPIEXEC NAMES mpiexec.openmpi)
if(OSC_OPENMPI_MPICC)
  osc_parse_wrapper(${OSC_OPENMPI_MPICC} OSC_OPENMPI_INCLUDES OSC_OPENMPI_LINK)
  add_library(osc_openmpi INTERFACE)
  target_include_directories(osc_openmpi SYSTEM INTERFACE ${OSC_OPENMPI_INCLUDES})
  target_compile_definitions(osc_openmpi INTERFACE OMPI_SKIP_MPICXX)
  add_library(osc_openmpi_program INTERFACE)
  target_link_libraries(osc_openmpi_program INTERFACE osc_openmpi ${OSC_OPENMPI_LINK})
endif()
