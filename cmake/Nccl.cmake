# RIDGELINE_NCCL: whether c10d's NCCL class (RCCL on ROCm) can be compiled. A torch with an accelerator does not suffice:
# its header includes nccl.h and the vendor's runtime headers. Beside a CUDA wheel they lie in the packages nvidia-nccl,
# nvidia-cuda-runtime, nvidia-cuda-crt and nvidia-cuda-cccl; a CUDA or ROCm toolkit has them too.
#
# Included by Torch.cmake, which sets torch_accelerator.
set(RIDGELINE_NCCL OFF)
if(torch_accelerator STREQUAL "cuda")
  file(GLOB wheel_cuda ${RIDGELINE_TORCH}/../nvidia/cu[0-9]*/include ${RIDGELINE_TORCH}/../nvidia/*/include)
  find_path(RIDGELINE_NCCL_INCLUDE nccl.h HINTS ${wheel_cuda})
  find_path(RIDGELINE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${wheel_cuda} PATHS /usr/local/cuda/include)
  find_path(RIDGELINE_CRT_INCLUDE crt/host_config.h HINTS ${wheel_cuda} PATHS /usr/local/cuda/include)
  file(GLOB cuda_runtime ${RIDGELINE_TORCH}/../nvidia/cu[0-9]*/lib/libcudart.so.*
    ${RIDGELINE_TORCH}/../nvidia/cuda_runtime/lib/libcudart.so.* ${RIDGELINE_CUDA_INCLUDE}/../lib64/libcudart.so
    ${RIDGELINE_CUDA_INCLUDE}/../targets/x86_64-linux/lib/libcudart.so)
  if(RIDGELINE_NCCL_INCLUDE AND RIDGELINE_CUDA_INCLUDE AND RIDGELINE_CRT_INCLUDE AND cuda_runtime)
    set(RIDGELINE_NCCL ON)
    list(GET cuda_runtime 0 cuda_runtime)
    target_include_directories(ridgeline_torch SYSTEM INTERFACE ${RIDGELINE_NCCL_INCLUDE} ${RIDGELINE_CUDA_INCLUDE}
      ${RIDGELINE_CRT_INCLUDE} ${RIDGELINE_CUDA_INCLUDE}/cccl ${wheel_cuda})
    target_link_libraries(ridgeline_torch INTERFACE ${cuda_runtime})
    get_filename_component(cuda_runtime_folder ${cuda_runtime} DIRECTORY)
    target_link_options(ridgeline_torch INTERFACE -Wl,-rpath,${cuda_runtime_folder})
  endif()
elseif(torch_accelerator STREQUAL "hip")
  find_path(RIDGELINE_NCCL_INCLUDE rccl/rccl.h HINTS $ENV{ROCM_PATH}/include PATHS /opt/rocm/include)
  find_path(RIDGELINE_HIP_INCLUDE hip/hip_runtime_api.h HINTS $ENV{ROCM_PATH}/include PATHS /opt/rocm/include)
  if(RIDGELINE_NCCL_INCLUDE AND RIDGELINE_HIP_INCLUDE)
    set(RIDGELINE_NCCL ON)
    target_include_directories(ridgeline_torch SYSTEM INTERFACE ${RIDGELINE_NCCL_INCLUDE}
      ${RIDGELINE_NCCL_INCLUDE}/rccl ${RIDGELINE_HIP_INCLUDE})
    target_compile_definitions(ridgeline_torch INTERFACE USE_ROCM __HIP_PLATFORM_AMD__)
  endif()
endif()
if(RIDGELINE_NCCL)
  target_compile_definitions(ridgeline_torch INTERFACE RIDGELINE_NCCL USE_C10D_NCCL)
elseif(torch_accelerator)
  message(WARNING "This torch has an accelerator (${torch_accelerator}), but the headers of NCCL and of its runtime were "
    "not found, so ranks cannot talk over it. For a CUDA wheel install nvidia-cuda-crt and nvidia-cuda-cccl of the same "
    "version as nvidia-cuda-runtime beside it; for ROCm set ROCM_PATH.")
endif()
