# nsimplex_unity(TARGET): compiles the target's sources 24 at a time. LibTorch's headers take a compiler longer to read
# than the source that includes them, and one reading, and one instance of each template, serves all 24.
#
# GCC 12 reads LibTorch's headers in 1.3 s (ATen/core/Tensor.h) to 8 s (torch/nn/module.h) of a fast core. Three groups of
# eight files took 34, 33 and 43 s of processor time, and the same 24 files together took 66 s and 2.2 GB (one core of an
# AMD EPYC, AVX2). Tried and not taken: a precompiled header of ATen/ATen.h and torch/library.h saves 7 s per group, but it
# takes 19 s and 430 MB to make, and each target needs its own. -O2 saves 2 s of the 31 to 42 s of a group of eight files,
# and -O1 6 to 10 s, because the front end takes 16 to 18 s of them. All kernels together take 277 s.
#
# Which files share a compilation changes with the list of sources, so names in unnamed namespaces are kept different
# within a target. -DNSIMPLEX_UNITY=OFF compiles file by file, which is faster where one file changes again and again.
include_guard(GLOBAL)

function(nsimplex_unity target)
  if(NSIMPLEX_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
endfunction()
