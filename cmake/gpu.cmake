# The modules of the GPU's tables, which share every kernel: `_emulated` runs them on the processor,
# for tests, and `_cuda` on NVIDIA GPUs.

if(NESCIO_EMULATED)
  nanobind_add_module(_emulated NB_STATIC
    core/bindings/device/emulated.cc core/bindings/errors.cc)
  target_link_libraries(_emulated PRIVATE nescio_emulated)
  install(TARGETS _emulated LIBRARY DESTINATION nescio)
endif()

# Whether nvcc is there and new enough is asked before the language is enabled, which would stop the
# build of everything else where it is not. `why_no_cuda` is empty if it is.
set(NESCIO_OLDEST_CUDA 12.4)
set(NESCIO_OLDEST_CMAKE 3.25.2)  # the first that knows CUDA's C++20
if(NESCIO_CUDA STREQUAL "OFF")
  set(why_no_cuda "NESCIO_CUDA is OFF")
elseif(CMAKE_VERSION VERSION_LESS ${NESCIO_OLDEST_CMAKE})
  set(why_no_cuda "CMake is ${CMAKE_VERSION}, and CUDA needs ${NESCIO_OLDEST_CMAKE} or newer")
else()
  include(CheckLanguage)
  check_language(CUDA)
  set(nvcc_version "none")
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version
      OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
    if(nvcc_says MATCHES "release ([0-9]+\\.[0-9]+)")
      set(nvcc_version ${CMAKE_MATCH_1})
    endif()
  endif()
  if(nvcc_version STREQUAL "none" OR nvcc_version VERSION_LESS ${NESCIO_OLDEST_CUDA})
    set(why_no_cuda "nvcc: found ${nvcc_version}, expected ${NESCIO_OLDEST_CUDA} or newer")
  endif()
endif()

if(NOT why_no_cuda)
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
  message(STATUS "GPU: nvcc ${nvcc_version}, building nescio._cuda for ${CMAKE_CUDA_ARCHITECTURES}")
elseif(NESCIO_CUDA STREQUAL "ON")
  message(FATAL_ERROR "NESCIO_CUDA is ON, but ${why_no_cuda}")
else()
  message(STATUS "GPU: leaving nescio._cuda out: ${why_no_cuda}")
endif()

if(NOT why_no_cuda)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  nanobind_add_module(_cuda NB_STATIC NOMINSIZE
    core/bindings/device/cuda.cu core/bindings/errors.cc
    core/pir/gpu/answer_cuda.cu core/ot/gpu/device_cuda.cu core/bitserial/gpu/device_cuda.cu
    core/gpu/cuda/device.cu)
  target_link_libraries(_cuda PRIVATE nescio_core CUDA::cudart_static)
  # Each architecture of a file is compiled on a processor of its own.
  target_compile_options(_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --threads=0>)
  if(NESCIO_STRICT)
    target_compile_options(_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  # Nanobind's headers compare unsigned numbers with zero.
  set_source_files_properties(core/bindings/device/cuda.cu PROPERTIES COMPILE_OPTIONS --diag-suppress=186)
  install(TARGETS _cuda LIBRARY DESTINATION nescio)
endif()
