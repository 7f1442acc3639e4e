# nsimplex_eigen_sources(TARGET file...): sources of a Torch target that speak with plain code in matrices of Eigen.
#
# Only these files get the flags; the others know nothing of Eigen.
function(nsimplex_eigen_sources target)
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  # Nothing of Eigen under another licence than the MPL.
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_OPTIONS "-isystem;${eigen}" COMPILE_DEFINITIONS EIGEN_MPL2_ONLY)
endfunction()
