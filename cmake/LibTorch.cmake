# Imported targets for the LibTorch inside a Python `torch` package.
#
# find_package(Torch) is not used: its files stop when a CUDA build of torch meets a machine without
# the CUDA toolkit. The paths that `import torch` prints are all that is needed.
#
# Input:  TORCH_PYTHON (cache or environment): the interpreter whose torch is used.
# Output: target nsimplex::libtorch; NSIMPLEX_TORCH_VERSION, NSIMPLEX_TORCH_DIR, NSIMPLEX_TORCH_CUDA.
include_guard(GLOBAL)

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
set(TORCH_PYTHON "${TORCH_PYTHON}" CACHE FILEPATH "Python interpreter whose torch package is used")

execute_process(
  COMMAND "${TORCH_PYTHON}" -c
    "import os, torch; v = torch.version; print(';'.join([os.path.dirname(torch.__file__), torch.__version__, v.cuda or 'none', str(int(torch.compiled_with_cxx11_abi()))]), end='')"
  OUTPUT_VARIABLE nsimplex_torch_facts
  ERROR_VARIABLE nsimplex_torch_error
  RESULT_VARIABLE nsimplex_torch_status)
if(NOT nsimplex_torch_status EQUAL 0)
  message(FATAL_ERROR
    "nsimplex needs the Python package torch (2.11 to 2.13): '${TORCH_PYTHON}' could not import it. "
    "Set TORCH_PYTHON=/path/to/python to name another interpreter.\n${nsimplex_torch_error}")
endif()
list(GET nsimplex_torch_facts 0 NSIMPLEX_TORCH_DIR)
list(GET nsimplex_torch_facts 1 NSIMPLEX_TORCH_VERSION)
list(GET nsimplex_torch_facts 2 NSIMPLEX_TORCH_CUDA)
list(GET nsimplex_torch_facts 3 nsimplex_torch_cxx11_abi)
if(NSIMPLEX_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "nsimplex needs torch 2.11 or newer, found ${NSIMPLEX_TORCH_VERSION} in ${NSIMPLEX_TORCH_DIR}")
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
