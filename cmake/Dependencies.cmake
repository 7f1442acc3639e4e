# Third-party libraries other than LibTorch, as imported targets with their upstream names.
#
# A folder filled by tools/bundle-deps (headers of Highway, zlib, CLI11, nlohmann-json, Eigen,
# Spectra and Boost.Polygon, libhwy.so.1 and libz.so.1) is looked into first, so that a machine without Debian packages
# can build; otherwise the system's packages are used.
include_guard(GLOBAL)

set(NSIMPLEX_DEPS_DIR "${CMAKE_CURRENT_SOURCE_DIR}/.deps" CACHE PATH "Folder filled by tools/bundle-deps")

# nsimplex_dependency(PACKAGE TARGET HEADER [LIBRARY file] [MODULE]): TARGET from the bundle when HEADER is
# in it, else from find_package(PACKAGE), with MODULE from CMake's own FindPACKAGE. A package that is absent is noted.
function(nsimplex_dependency package target header)
  cmake_parse_arguments(arg "MODULE" "LIBRARY" "" ${ARGN})
  if(TARGET ${target})
    return()
  endif()
  if(NOT EXISTS "${NSIMPLEX_DEPS_DIR}/include/${header}")
    if(arg_MODULE)
      find_package(${package} QUIET MODULE)
    else()
      find_package(${package} QUIET CONFIG GLOBAL)
    endif()
    if(NOT ${package}_FOUND)
      set_property(GLOBAL APPEND PROPERTY NSIMPLEX_MISSING ${package})
    elseif(arg_MODULE)
      set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
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

# nsimplex_require_dependencies(): stops with one message if a package is absent, which says how to install it.
function(nsimplex_require_dependencies)
  get_property(missing GLOBAL PROPERTY NSIMPLEX_MISSING)
  if(NOT missing)
    return()
  endif()
  file(STRINGS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/packages.txt" rows REGEX "^[^#]")
  foreach(row IN LISTS rows)
    string(REPLACE " | " ";" row "${row}")
    list(GET row 0 name)
    if(name IN_LIST missing)
      list(GET row 1 debian)
      list(GET row 2 fedora)
      list(GET row 3 conda)
      string(APPEND of_debian " ${debian}")
      string(APPEND of_fedora " ${fedora}")
      string(APPEND of_conda " ${conda}")
    endif()
  endforeach()
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "nsimplex needs ${missing}. One of these lines installs what is missing:\n"
    "  Debian, Ubuntu: apt-get install${of_debian}\n"
    "  Fedora:         dnf install${of_fedora}\n"
    "  conda:          conda install -c conda-forge${of_conda}")
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
nsimplex_require_dependencies()
