# Imported targets for a LibTorch: the one inside a Python `torch` package, or a folder of its own.
#
# find_package(Torch) is not used: its files stop when a CUDA build of torch meets a machine without
# the CUDA toolkit. The paths that `import torch` prints are all that is needed.
#
# Input:  NSIMPLEX_LIBTORCH (variable, cache or environment): a folder with LibTorch's include and lib,
#         such as its zip without Python holds; else
#         TORCH_PYTHON (the same): the interpreter whose torch is used.
# Output: target nsimplex::libtorch; NSIMPLEX_TORCH_VERSION, NSIMPLEX_TORCH_DIR, NSIMPLEX_TORCH_CUDA,
#         and NSIMPLEX_TORCH_ORIGIN, what errors call it.
include_guard(GLOBAL)

# A choice that fails is forgotten, so that the next run looks again and finds what was put right.
macro(nsimplex_refuse_torch)
  unset(TORCH_PYTHON CACHE)
  unset(NSIMPLEX_LIBTORCH CACHE)
  message(FATAL_ERROR ${ARGN})
endmacro()

if(NOT NSIMPLEX_LIBTORCH AND DEFINED ENV{NSIMPLEX_LIBTORCH})
  set(NSIMPLEX_LIBTORCH "$ENV{NSIMPLEX_LIBTORCH}")
endif()

# The facts of a folder; its C++ ABI is that of C++11 since torch 2.6.
macro(nsimplex_torch_of_folder folder)
  set(NSIMPLEX_TORCH_ORIGIN "${folder}")
  set(nsimplex_torch_header "")
  foreach(path torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS "${folder}/include/${path}" AND NOT nsimplex_torch_header MATCHES "TORCH_VERSION_PATCH")
      file(STRINGS "${folder}/include/${path}" nsimplex_torch_header REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
    endif()
  endforeach()
  string(REGEX MATCHALL "[0-9]+" nsimplex_torch_numbers "${nsimplex_torch_header}")
  string(REPLACE ";" "." NSIMPLEX_TORCH_VERSION "${nsimplex_torch_numbers}")
  if(NOT NSIMPLEX_TORCH_VERSION OR NOT EXISTS "${folder}/lib/libtorch_cpu.so")
    nsimplex_refuse_torch("NSIMPLEX_LIBTORCH: expected a folder with LibTorch's include and lib, got '${folder}'")
  endif()
  get_filename_component(NSIMPLEX_TORCH_DIR "${folder}" ABSOLUTE)
  set(NSIMPLEX_TORCH_CUDA none)
  if(EXISTS "${folder}/lib/libtorch_cuda.so")
    set(NSIMPLEX_TORCH_CUDA unknown)
  endif()
  set(nsimplex_torch_cxx11_abi 1)
  set(NSIMPLEX_LIBTORCH "${NSIMPLEX_TORCH_DIR}" CACHE PATH "Folder of a LibTorch that is used in place of a Python package's")
endmacro()

macro(nsimplex_torch_of_python)
  if(NOT TORCH_PYTHON)
    if(DEFINED ENV{TORCH_PYTHON})
      set(TORCH_PYTHON "$ENV{TORCH_PYTHON}")
    elseif(SKBUILD)
      set(TORCH_PYTHON "${PYTHON_EXECUTABLE}")
    elseif(EXISTS "${CMAKE_SOURCE_DIR}/.venv/bin/python")
      set(TORCH_PYTHON "${CMAKE_SOURCE_DIR}/.venv/bin/python")
    else()
      find_program(NSIMPLEX_PYTHON3 NAMES python3 python)
      set(TORCH_PYTHON "${NSIMPLEX_PYTHON3}")
    endif()
  endif()
  set(NSIMPLEX_TORCH_ORIGIN "${TORCH_PYTHON}")
  execute_process(
    COMMAND "${TORCH_PYTHON}" -c
      "import os, torch; v = torch.version; print(';'.join([os.path.dirname(torch.__file__), torch.__version__, v.cuda or 'none', str(int(torch.compiled_with_cxx11_abi()))]), end='')"
    OUTPUT_VARIABLE nsimplex_torch_facts
    ERROR_VARIABLE nsimplex_torch_error
    RESULT_VARIABLE nsimplex_torch_status)
  if(NOT nsimplex_torch_status EQUAL 0)
    nsimplex_refuse_torch(
      "nsimplex needs torch 2.11 or newer: '${TORCH_PYTHON}' could not import it. Set "
      "TORCH_PYTHON=/path/to/python to name another interpreter, or NSIMPLEX_LIBTORCH=/path/to/libtorch "
      "for a LibTorch without Python.\n${nsimplex_torch_error}")
  endif()
  list(GET nsimplex_torch_facts 0 NSIMPLEX_TORCH_DIR)
  list(GET nsimplex_torch_facts 1 NSIMPLEX_TORCH_VERSION)
  list(GET nsimplex_torch_facts 2 NSIMPLEX_TORCH_CUDA)
  list(GET nsimplex_torch_facts 3 nsimplex_torch_cxx11_abi)
  set(TORCH_PYTHON "${TORCH_PYTHON}" CACHE FILEPATH "Python interpreter whose torch package is used")
endmacro()

if(NSIMPLEX_LIBTORCH)
  nsimplex_torch_of_folder("${NSIMPLEX_LIBTORCH}")
else()
  nsimplex_torch_of_python()
endif()
if(NSIMPLEX_TORCH_VERSION VERSION_LESS 2.11)
  nsimplex_refuse_torch("nsimplex needs torch 2.11 or newer, found ${NSIMPLEX_TORCH_VERSION} in ${NSIMPLEX_TORCH_DIR}")
endif()

function(nsimplex_import_torch_library name)
  add_library(nsimplex::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(nsimplex::${name} PROPERTIES
    IMPORTED_LOCATION "${NSIMPLEX_TORCH_DIR}/lib/lib${name}.so" IMPORTED_NO_SONAME FALSE)
endfunction()

if(NOT TARGET nsimplex::libtorch)
  nsimplex_import_torch_library(c10)
  nsimplex_import_torch_library(torch_cpu)
  nsimplex_import_torch_library(torch)
  add_library(nsimplex::libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(nsimplex::libtorch SYSTEM INTERFACE
    "${NSIMPLEX_TORCH_DIR}/include" "${NSIMPLEX_TORCH_DIR}/include/torch/csrc/api/include")
  target_compile_definitions(nsimplex::libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=${nsimplex_torch_cxx11_abi})
  target_compile_features(nsimplex::libtorch INTERFACE cxx_std_20)
  target_link_libraries(nsimplex::libtorch INTERFACE nsimplex::torch nsimplex::torch_cpu nsimplex::c10)
endif()
