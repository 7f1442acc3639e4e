# nsimplex_unity(TARGET): compiles the target's sources 24 at a time. LibTorch's headers take a compiler longer to read
# than the source that includes them, and one reading, and one instance of each template, serves all 24.
#
# Which files share a compilation changes with the list of sources, so names in unnamed namespaces are kept different
# within a target. -DNSIMPLEX_UNITY=OFF compiles file by file, which is faster where one file changes again and again.
include_guard(GLOBAL)

function(nsimplex_unity target)
  if(NSIMPLEX_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
endfunction()
