# Installation: library, its copy of Highway, headers, executable and CMake package. The same tree is
# the wheel's content (scikit-build-core installs into the package's folder).
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/nsimplex)

# $ORIGIN finds libhwy.so.1. torch is a neighbour of the package in site-packages; a plain install
# remembers the torch it was built with.
set(nsimplex_rpath "$ORIGIN")
set(nsimplex_cli_rpath "$ORIGIN/../lib")
if(SKBUILD)
  list(APPEND nsimplex_rpath "$ORIGIN/../../torch/lib")
  list(APPEND nsimplex_cli_rpath "$ORIGIN/../../torch/lib")
else()
  list(APPEND nsimplex_rpath "${NSIMPLEX_TORCH_DIR}/lib")
  list(APPEND nsimplex_cli_rpath "${NSIMPLEX_TORCH_DIR}/lib")
endif()
set_target_properties(nsimplex PROPERTIES INSTALL_RPATH "${nsimplex_rpath}")

install(TARGETS nsimplex EXPORT nsimplex LIBRARY DESTINATION lib)
install(DIRECTORY include/nsimplex DESTINATION include FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION share/licenses/nsimplex)

# Debian's Highway is a shared library only: its file goes beside ours under the name the loader asks for.
get_target_property(highway_location hwy::hwy LOCATION)
file(REAL_PATH "${highway_location}" highway_location)
install(FILES "${highway_location}" DESTINATION lib RENAME libhwy.so.1
  PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

if(NSIMPLEX_APP)
  set_target_properties(nsimplex_cli PROPERTIES INSTALL_RPATH "${nsimplex_cli_rpath}")
  install(TARGETS nsimplex_cli RUNTIME DESTINATION bin)
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
