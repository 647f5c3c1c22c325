# The extension modules with the GPU kernels: `_cuda` runs them on NVIDIA GPUs, and `_emulated`, from
# the same sources, on the processor.

file(GLOB_RECURSE errors CONFIGURE_DEPENDS core/bindings/errors.cc)

# For tests only: not part of `all`, of an installation or of a wheel unless asked for
# (`cmake --build BUILD --target _emulated`, `cmake --install BUILD --component emulated`).
file(GLOB_RECURSE emulated CONFIGURE_DEPENDS core/bindings/*emulated.cc)
nanobind_add_module(_emulated NB_STATIC STABLE_ABI ${emulated} ${errors})
target_link_libraries(_emulated PRIVATE nescio_emulated)
set_target_properties(_emulated PROPERTIES EXCLUDE_FROM_ALL ON)
install(TARGETS _emulated LIBRARY DESTINATION nescio COMPONENT emulated EXCLUDE_FROM_ALL)

# NESCIO_CUDA=AUTO compiles `_cuda` where this machine has a card that the kernels know, for the
# architecture of that card. ON compiles it in any case: without a card, for three architectures.
# `why_no_cuda` is empty if it is compiled.
set(NESCIO_OLDEST_ARCHITECTURE 7.5)
set(NESCIO_OLDEST_CUDA 12.4)
set(NESCIO_OLDEST_CMAKE 3.25.2)  # the first with C++20 for CUDA
set(architectures)
set(why_no_cuda)
string(TOUPPER "${NESCIO_CUDA}" NESCIO_CUDA)
if(NOT NESCIO_CUDA MATCHES "^(ON|OFF|AUTO)$")
  message(FATAL_ERROR "NESCIO_CUDA: found '${NESCIO_CUDA}', expected ON, OFF or AUTO")
endif()
if(NESCIO_CUDA STREQUAL "OFF")
  set(why_no_cuda "NESCIO_CUDA is OFF")
else()
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    RESULT_VARIABLE nvidia_smi OUTPUT_VARIABLE cards ERROR_QUIET)
  if(nvidia_smi STREQUAL "0")
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" cards "${cards}")
    foreach(card IN LISTS cards)
      if(card VERSION_GREATER_EQUAL NESCIO_OLDEST_ARCHITECTURE)
        string(REPLACE "." "" card "${card}")
        list(APPEND architectures ${card}-real)
      endif()
    endforeach()
    list(REMOVE_DUPLICATES architectures)
  endif()
  if(NOT architectures AND NOT NESCIO_CUDA STREQUAL "ON")
    set(why_no_cuda "found no NVIDIA GPU of compute capability ${NESCIO_OLDEST_ARCHITECTURE} or newer \
(NESCIO_CUDA=ON compiles for GPUs all the same)")
  elseif(CMAKE_VERSION VERSION_LESS NESCIO_OLDEST_CMAKE)
    set(why_no_cuda "CMake: found ${CMAKE_VERSION}, expected ${NESCIO_OLDEST_CMAKE} or newer")
  else()
    # nvcc is looked for before the language is enabled, which would stop the whole build without it.
    include(CheckLanguage)
    check_language(CUDA)
    set(nvcc_version "none")
    if(CMAKE_CUDA_COMPILER)
      execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version
        OUTPUT_VARIABLE nvcc_output ERROR_QUIET)
      if(nvcc_output MATCHES "release ([0-9]+\\.[0-9]+)")
        set(nvcc_version ${CMAKE_MATCH_1})
      endif()
    endif()
    if(nvcc_version STREQUAL "none" OR nvcc_version VERSION_LESS NESCIO_OLDEST_CUDA)
      set(why_no_cuda "nvcc: found ${nvcc_version}, expected ${NESCIO_OLDEST_CUDA} or newer")
    elseif(architectures)
      # A card newer than nvcc runs the PTX of the newest architecture that nvcc knows.
      execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch
        OUTPUT_VARIABLE known ERROR_QUIET)
      foreach(architecture IN LISTS architectures)
        string(REPLACE "-real" "" number ${architecture})
        if(NOT known MATCHES "compute_${number}([^0-9]|$)")
          list(REMOVE_ITEM architectures ${architecture})
          list(APPEND architectures 90)
        endif()
      endforeach()
      list(REMOVE_DUPLICATES architectures)
    endif()
  endif()
endif()

if(NOT why_no_cuda)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    if(architectures)
      set(CMAKE_CUDA_ARCHITECTURES ${architectures})
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
  file(GLOB_RECURSE cuda CONFIGURE_DEPENDS core/*.cu)
  nanobind_add_module(_cuda NB_STATIC NOMINSIZE STABLE_ABI ${cuda} ${errors})
  target_link_libraries(_cuda PRIVATE nescio_core CUDA::cudart_static)
  # Each architecture of a file is compiled on a processor of its own.
  target_compile_options(_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --threads=0>)
  if(NESCIO_STRICT)
    target_compile_options(_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  # Nanobind's headers compare unsigned numbers with zero.
  set(cuda_bindings ${cuda})
  list(FILTER cuda_bindings INCLUDE REGEX "/core/bindings/")
  set_source_files_properties(${cuda_bindings} PROPERTIES COMPILE_OPTIONS --diag-suppress=186)
  install(TARGETS _cuda LIBRARY DESTINATION nescio)
  add_dependencies(nescio_modules _cuda)
endif()
