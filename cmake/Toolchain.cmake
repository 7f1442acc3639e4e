# Compiler settings shared by every target of this build; nothing here is exported.
include_guard(GLOBAL)

add_library(nsimplex_warnings INTERFACE)
target_compile_options(nsimplex_warnings INTERFACE -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers)
if(NSIMPLEX_WERROR)
  target_compile_options(nsimplex_warnings INTERFACE -Werror)
endif()

find_program(NSIMPLEX_CCACHE ccache)
if(NSIMPLEX_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${NSIMPLEX_CCACHE}")
endif()
find_program(NSIMPLEX_MOLD mold)
if(NSIMPLEX_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
