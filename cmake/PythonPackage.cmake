# The Python package, laid out in the build folder as the wheel lays it out in site-packages:
# links to python/nsimplex, what the library was built with, and the library itself below lib/.
include_guard(GLOBAL)

set(package "${CMAKE_BINARY_DIR}/python/nsimplex")
file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/nsimplex"
  "${PROJECT_SOURCE_DIR}/python/nsimplex/*.py" "${PROJECT_SOURCE_DIR}/python/nsimplex/*.pyi"
  "${PROJECT_SOURCE_DIR}/python/nsimplex/py.typed")
file(REMOVE_RECURSE "${package}")
foreach(source IN LISTS sources)
  get_filename_component(folder "${package}/${source}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/nsimplex/${source}" "${package}/${source}" SYMBOLIC)
endforeach()
file(MAKE_DIRECTORY "${package}")
file(CREATE_LINK "${CMAKE_BINARY_DIR}/lib" "${package}/lib" SYMBOLIC)
file(CREATE_LINK "${CMAKE_BINARY_DIR}/bin" "${package}/bin" SYMBOLIC)
configure_file("${PROJECT_SOURCE_DIR}/cmake/build_info.py.in" "${package}/_build_info.py" @ONLY)
