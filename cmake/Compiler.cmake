# Warnings, ccache and the linker, for every room alike.
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
find_program(RIDGELINE_CCACHE ccache)
if(RIDGELINE_CCACHE)
  # Sloppiness is what lets ccache serve objects that were compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${RIDGELINE_CCACHE})
  add_compile_options(-fpch-preprocess)
endif()
find_program(RIDGELINE_MOLD mold)
if(RIDGELINE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
# Initial values and dropout must have the same bits on every machine: no fused multiply-add where a machine has one.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/core/random.cpp ${CMAKE_SOURCE_DIR}/src/nn/kernels/dropout.cpp
  PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
