# Third-party libraries other than LibTorch, as imported targets with their upstream names.
#
# A folder filled by tools/bundle-deps (headers of Highway, zlib, CLI11, nlohmann-json, Eigen,
# Spectra and Boost.Polygon, libhwy.so.1 and libz.so.1) is looked into first, so that a machine without Debian packages
# can build; otherwise the system's packages are used.
include_guard(GLOBAL)

set(NSIMPLEX_DEPS_DIR "${CMAKE_CURRENT_SOURCE_DIR}/.deps" CACHE PATH "Folder filled by tools/bundle-deps")

# nsimplex_dependency(PACKAGE TARGET HEADER [LIBRARY file] [MODULE]): TARGET from the bundle when HEADER is
# in it, else from find_package(PACKAGE), with MODULE from CMake's own FindPACKAGE.
function(nsimplex_dependency package target header)
  cmake_parse_arguments(arg "MODULE" "LIBRARY" "" ${ARGN})
  if(TARGET ${target})
    return()
  endif()
  if(NOT EXISTS "${NSIMPLEX_DEPS_DIR}/include/${header}")
    if(arg_MODULE)
      find_package(${package} REQUIRED MODULE)
      set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
    else()
      find_package(${package} REQUIRED CONFIG GLOBAL)
    endif()
    return()
  endif()
  message(STATUS "${package}: from ${NSIMPLEX_DEPS_DIR}")
  if(arg_LIBRARY)
    add_library(${target} SHARED IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${NSIMPLEX_DEPS_DIR}/lib/${arg_LIBRARY}")
  else()
    add_library(${target} INTERFACE IMPORTED GLOBAL)
  endif()
  set_target_properties(${target} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${NSIMPLEX_DEPS_DIR}/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${NSIMPLEX_DEPS_DIR}/include")
endfunction()

nsimplex_dependency(HWY hwy::hwy hwy/highway.h LIBRARY libhwy.so.1)
nsimplex_dependency(ZLIB ZLIB::ZLIB zlib.h LIBRARY libz.so.1 MODULE)
nsimplex_dependency(Eigen3 Eigen3::Eigen Eigen/Dense)
nsimplex_dependency(Spectra Spectra::Spectra Spectra/SymEigsSolver.h)
nsimplex_dependency(Boost Boost::headers boost/polygon/voronoi.hpp)
nsimplex_dependency(nlohmann_json nlohmann_json::nlohmann_json nlohmann/json.hpp)
if(NSIMPLEX_APP AND NOT NSIMPLEX_KERNELS_ONLY)
  nsimplex_dependency(CLI11 CLI11::CLI11 CLI/CLI.hpp)
endif()
