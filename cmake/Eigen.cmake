# nsimplex_use_eigen(TARGET): for a Torch target some of whose sources speak with plain code in matrices of Eigen.
#
# The whole target gets the flags: a source with flags of its own is compiled alone, which costs 18 s of processor time.
function(nsimplex_use_eigen target)
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(${target} SYSTEM PRIVATE "${eigen}")
  # Nothing of Eigen under another licence than the MPL.
  target_compile_definitions(${target} PRIVATE EIGEN_MPL2_ONLY)
endfunction()
