# Installation: library, its copy of Highway, headers, executable and CMake package. The same tree is
# the wheel's content (scikit-build-core installs into the package's folder).
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/nsimplex)

# The same folders lie the same way in the build folder, in an installation and in the wheel, so that one search path
# serves all three: $ORIGIN finds what is ours. It has no empty entry, which the loader would take for the current
# folder. torch is a neighbour of the package in site-packages; all others remember the torch they were built with.
# In a wheel for several versions of torch, a build may lie in a folder of its own inside the package.
set(NSIMPLEX_FOLDER_IN_PACKAGE "" CACHE STRING "The folder of the package where tools/build_wheel puts this build")
if(SKBUILD AND NSIMPLEX_FOLDER_IN_PACKAGE)
  set(nsimplex_torch_path "$ORIGIN/../../../torch/lib")
elseif(SKBUILD)
  set(nsimplex_torch_path "$ORIGIN/../../torch/lib")
else()
  set(nsimplex_torch_path "${NSIMPLEX_TORCH_DIR}/lib")
endif()
set_target_properties(nsimplex PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;${nsimplex_torch_path}")

install(TARGETS nsimplex EXPORT nsimplex LIBRARY DESTINATION lib)
install(DIRECTORY include/nsimplex DESTINATION include FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION share/licenses/nsimplex)

# nsimplex_beside(TARGET NAME): the file of an imported library goes beside ours under the name the loader asks for.
function(nsimplex_beside target name)
  get_target_property(location ${target} LOCATION)
  file(REAL_PATH "${location}" location)
  file(MAKE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  file(COPY_FILE "${location}" "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name}" ONLY_IF_DIFFERENT)
  install(PROGRAMS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name}" DESTINATION lib)
endfunction()

# Debian's Highway is a shared library only. Every system has zlib, but it may be another than the bundle's.
nsimplex_beside(hwy::hwy libhwy.so.1)
if(EXISTS "${NSIMPLEX_DEPS_DIR}/lib/libz.so.1")
  nsimplex_beside(ZLIB::ZLIB libz.so.1)
endif()

# GPU kernels that tools/build_cubins compiled. The library looks for them beside itself (NSIMPLEX_CUBINS=on).
set(NSIMPLEX_CUBINS "" CACHE FILEPATH "A file of tools/build_cubins, which is installed beside the library")
if(NSIMPLEX_CUBINS)
  if(NOT EXISTS "${NSIMPLEX_CUBINS}")
    message(FATAL_ERROR "NSIMPLEX_CUBINS: expected a file of tools/build_cubins, got '${NSIMPLEX_CUBINS}'")
  endif()
  file(COPY_FILE "${NSIMPLEX_CUBINS}" "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/nsimplex_cubins.zip" ONLY_IF_DIFFERENT)
  install(FILES "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/nsimplex_cubins.zip" DESTINATION lib)
endif()

if(NSIMPLEX_APP)
  set_target_properties(nsimplex_cli nsimplex_lab_cli PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib;${nsimplex_torch_path}")
  install(TARGETS nsimplex_cli nsimplex_lab_cli RUNTIME DESTINATION bin)
  set_target_properties(nsimplex_cli_library nsimplex_cli_module PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;${nsimplex_torch_path}")
  install(TARGETS nsimplex_cli_library nsimplex_cli_module LIBRARY DESTINATION lib)
  if(TARGET nsimplex_sentencepiece)
    set_target_properties(nsimplex_sentencepiece PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
    install(TARGETS nsimplex_sentencepiece LIBRARY DESTINATION lib)
  endif()
endif()

install(EXPORT nsimplex NAMESPACE nsimplex:: FILE nsimplexTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/nsimplexConfig.cmake.in "${CMAKE_BINARY_DIR}/nsimplexConfig.cmake"
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/nsimplexConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_BINARY_DIR}/nsimplexConfig.cmake" "${CMAKE_BINARY_DIR}/nsimplexConfigVersion.cmake"
  cmake/LibTorch.cmake
  DESTINATION ${package_dir})
if(SKBUILD)
  install(FILES "${CMAKE_BINARY_DIR}/python/nsimplex/_build_info.py" DESTINATION .)
endif()
