# One precompiled header of LibTorch for all targets that include it. ATen alone takes a compiler
# longer to parse than most of our files take to compile.
include_guard(GLOBAL)

if(NSIMPLEX_PCH)
  file(WRITE "${CMAKE_BINARY_DIR}/torch_headers.cpp" "// Carries the precompiled header that the other targets reuse.\n")
  add_library(nsimplex_torch_headers OBJECT "${CMAKE_BINARY_DIR}/torch_headers.cpp")
  target_link_libraries(nsimplex_torch_headers PRIVATE nsimplex::libtorch)
  target_precompile_headers(nsimplex_torch_headers PRIVATE <torch/torch.h>)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# nsimplex_torch_headers(target): reuse the precompiled header where there is one.
function(nsimplex_torch_headers target)
  if(NSIMPLEX_PCH)
    target_precompile_headers(${target} REUSE_FROM nsimplex_torch_headers)
  endif()
endfunction()
