# The modules of the GPU's tables, which share every kernel: `_emulated` runs them on the processor,
# for tests, and `_cuda` on NVIDIA GPUs.

if(NESCIO_EMULATED)
  nanobind_add_module(_emulated NB_STATIC
    core/bindings/gpu_emulated.cc core/bindings/errors.cc)
  target_link_libraries(_emulated PRIVATE nescio_emulated)
  install(TARGETS _emulated LIBRARY DESTINATION nescio)
endif()

set(NESCIO_OLDEST_CUDA 12.4)
if(NOT NESCIO_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # For the cards of this machine; where there are none, for all kinds that the kernels know.
      execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE nvidia_smi OUTPUT_QUIET ERROR_QUIET)
      if(nvidia_smi STREQUAL "0")
        set(CMAKE_CUDA_ARCHITECTURES native)
      else()
        set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
      endif()
    endif()
    enable_language(CUDA)
  endif()
  if(CMAKE_CUDA_COMPILER AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL ${NESCIO_OLDEST_CUDA})
    set(cuda ON)
    message(STATUS "GPU: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, building nescio._cuda "
      "for ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(NESCIO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "NESCIO_CUDA is ON, and no nvcc ${NESCIO_OLDEST_CUDA} or newer was found")
  else()
    message(STATUS "GPU: no nvcc ${NESCIO_OLDEST_CUDA} or newer, leaving nescio._cuda out")
  endif()
endif()

if(cuda)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  nanobind_add_module(_cuda NB_STATIC NOMINSIZE
    core/bindings/gpu_cuda.cu core/bindings/errors.cc
    core/pir/answer_cuda.cu core/gpu/cuda_device.cu)
  target_link_libraries(_cuda PRIVATE nescio_core CUDA::cudart_static)
  # Each architecture of a file is compiled on a processor of its own.
  target_compile_options(_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --threads=0>)
  if(NESCIO_STRICT)
    target_compile_options(_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  # Nanobind's headers compare unsigned numbers with zero.
  set_source_files_properties(core/bindings/gpu_cuda.cu PROPERTIES COMPILE_OPTIONS --diag-suppress=186)
  install(TARGETS _cuda LIBRARY DESTINATION nescio)
endif()
