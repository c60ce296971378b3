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
target_include_directories(ridgeline_torch SYSTEM INTERFACE
  ${RIDGELINE_TORCH}/include ${RIDGELINE_TORCH}/include/torch/csrc/api/include)
target_compile_definitions(ridgeline_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
# The wheel's own OpenMP runtime: a second one in the process would double the threads.
file(GLOB torch_openmp ${RIDGELINE_TORCH}/lib/libgomp*.so* ${RIDGELINE_TORCH}/../torch.libs/libgomp*.so*)
target_compile_options(ridgeline_torch INTERFACE -fopenmp)
target_link_options(ridgeline_torch INTERFACE -Wl,-rpath,${RIDGELINE_TORCH}/lib -Wl,--disable-new-dtags)
target_link_libraries(ridgeline_torch INTERFACE
  ${RIDGELINE_TORCH}/lib/libtorch.so ${RIDGELINE_TORCH}/lib/libtorch_cpu.so ${RIDGELINE_TORCH}/lib/libc10.so)
if(torch_openmp)
  list(GET torch_openmp 0 torch_openmp)
  target_link_libraries(ridgeline_torch INTERFACE ${torch_openmp})
endif()

# One precompiled header for all rooms that use libtorch: ATen alone costs about 10 s a file without it.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cpp "// Carries the precompiled header that the torch rooms share.\n")
add_library(ridgeline_torch_pch STATIC ${CMAKE_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(ridgeline_torch_pch PUBLIC ridgeline_torch)
target_precompile_headers(ridgeline_torch_pch PRIVATE <ATen/ATen.h> <string> <vector> <memory> <map> <functional>)
