# ridgeline_torch: libtorch of the user's own PyTorch, by imported targets of our own.
#
# find_package(Torch) is not used: on a CUDA wheel it insists on a full CUDA toolkit (reading the wheel's own headers and
# libraries is enough). Works for CPU, CUDA, ROCm and XPU wheels and for a libtorch folder.
if(NOT RIDGELINE_TORCH)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c
    "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE RIDGELINE_TORCH OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_missing ERROR_QUIET)
  if(torch_missing)
    message(FATAL_ERROR "No torch package: ${Python3_EXECUTABLE} cannot import torch. "
      "Run ./quickstart, or pass -DRIDGELINE_TORCH=FOLDER (the folder that holds torch's include/ and lib/).")
  endif()
  set(RIDGELINE_TORCH ${RIDGELINE_TORCH} CACHE PATH "" FORCE)
endif()
if(NOT EXISTS ${RIDGELINE_TORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "RIDGELINE_TORCH=${RIDGELINE_TORCH} holds no lib/libtorch_cpu.so: expected the folder of a torch "
    "package (site-packages/torch) or of an unpacked libtorch.")
endif()

add_library(ridgeline_torch INTERFACE)

# torch's include folder carries a fmt of its own, newer than the system's and not linked to anything: without this link
# in front of it, our files would be compiled against that one and linked to the system's.
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
list(GET fmt_include 0 fmt_include)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/before_torch)
file(CREATE_LINK ${fmt_include}/fmt ${CMAKE_BINARY_DIR}/before_torch/fmt SYMBOLIC)
target_include_directories(ridgeline_torch SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/before_torch
  ${RIDGELINE_TORCH}/include ${RIDGELINE_TORCH}/include/torch/csrc/api/include)
target_compile_definitions(ridgeline_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
target_link_options(ridgeline_torch INTERFACE -Wl,-rpath,${RIDGELINE_TORCH}/lib -Wl,--disable-new-dtags)
target_link_libraries(ridgeline_torch INTERFACE
  ${RIDGELINE_TORCH}/lib/libtorch.so ${RIDGELINE_TORCH}/lib/libtorch_cpu.so ${RIDGELINE_TORCH}/lib/libc10.so)
# The wheel's own OpenMP runtime: a second one in the process would double the threads.
file(GLOB torch_openmp ${RIDGELINE_TORCH}/lib/libgomp*.so* ${RIDGELINE_TORCH}/../torch.libs/libgomp*.so*)
target_compile_options(ridgeline_torch INTERFACE -fopenmp)
if(torch_openmp)
  list(GET torch_openmp 0 torch_openmp)
  target_link_libraries(ridgeline_torch INTERFACE ${torch_openmp})
endif()
# The libraries of an accelerator register its kernels when they are loaded; none of our symbols asks for them, so the
# linker has to be told to keep them.
foreach(accelerator cuda hip xpu)
  if(EXISTS ${RIDGELINE_TORCH}/lib/libtorch_${accelerator}.so)
    set(torch_accelerator ${accelerator})
    target_link_libraries(ridgeline_torch INTERFACE -Wl,--push-state,--no-as-needed
      ${RIDGELINE_TORCH}/lib/libtorch_${accelerator}.so ${RIDGELINE_TORCH}/lib/libc10_${accelerator}.so
      -Wl,--pop-state)
  endif()
endforeach()
include(Nccl)

# Code that fills the same precompiled header must agree on -fPIC; programs would otherwise be compiled with -fPIE.
target_compile_options(ridgeline_torch INTERFACE -fPIC)
# One precompiled header for all rooms that use libtorch: ATen alone costs about 10 s a file without it.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cpp "// Carries the precompiled header that the torch rooms share.\n")
add_library(ridgeline_torch_pch STATIC ${CMAKE_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(ridgeline_torch_pch PUBLIC ridgeline_torch)
target_precompile_headers(ridgeline_torch_pch PRIVATE <ATen/ATen.h> <string> <vector> <memory> <map> <functional>)

# c10d's Gloo class includes headers of gloo that no torch package ships: declarations of our own stand in for them.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mesh/gloo.cpp PROPERTIES
  INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/src/mesh/gloo_stubs)
