# At most as many compilers at a time as fit into the memory of the machine, of which a group of sources takes up to
# 2.2 GB. Ninja keeps to this beside its own number of jobs; other generators ignore it.
include_guard(GLOBAL)

cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR jobs "${memory_mib} / 2250")
if(jobs LESS 1)
  set(jobs 1)
endif()
set_property(GLOBAL APPEND PROPERTY JOB_POOLS nsimplex_compile=${jobs})
if(NOT CMAKE_JOB_POOL_COMPILE)
  set(CMAKE_JOB_POOL_COMPILE nsimplex_compile)
endif()
