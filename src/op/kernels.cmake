# Adds the reduction kernels to osc_core. One source file per instruction set, with the flags that it needs; kernels.cpp
# asks the processor which of them to use.
target_sources(osc_core PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/kernels.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_names.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernels_baseline.cpp)

# The loops are written to be vectorised, which takes -O3 also where the rest is built with -O2. A fused multiply-add
# would make results depend on the processor, and ranks may run on different ones. The loops are so short that one that
# straddles two cache lines takes up to half as long again.
set(kernel_options $<$<NOT:$<CONFIG:Debug>>:-O3> -falign-loops=64 -ffp-contract=off)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_baseline.cpp
  TARGET_DIRECTORY osc_core PROPERTIES COMPILE_OPTIONS "${kernel_options}")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  target_sources(osc_core PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/kernels_avx2.cpp
    ${CMAKE_CURRENT_LIST_DIR}/kernels_avx512.cpp)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_avx2.cpp
    TARGET_DIRECTORY osc_core PROPERTIES COMPILE_OPTIONS "${kernel_options};-mavx2;-mf16c")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_avx512.cpp
    TARGET_DIRECTORY osc_core PROPERTIES COMPILE_OPTIONS
    "${kernel_options};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()
