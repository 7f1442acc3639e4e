# Compiler settings shared by every target of this build; nothing here is exported.
include_guard(GLOBAL)

# NSIMPLEX_SANITIZE: "address,undefined" or "thread"; every target of the build gets it.
set(NSIMPLEX_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, empty for none")

add_library(nsimplex_warnings INTERFACE)
target_compile_options(nsimplex_warnings INTERFACE -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers)
if(NSIMPLEX_WERROR)
  target_compile_options(nsimplex_warnings INTERFACE -Werror)
endif()

# SSSE3 and SSE4 machines run Highway's portable code: nobody trains on them, and each target costs build time.
# SVE is left out because register tiles are arrays of vectors, and C++ has no arrays of SVE's vectors.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(nsimplex_disabled_targets "(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
  # The portable code as well, which tests compare with NEON. Calls then go through Highway's tables: where it compiles
  # one target it calls that by the name of a namespace, which several of ours have.
  add_compile_definitions(HWY_COMPILE_ALL_ATTAINABLE)
  # Highway's NEON needs AES and says so by a pragma, which GCC does not apply to the constructors that it adds itself.
  if(NOT CMAKE_CXX_FLAGS MATCHES "-m(arch|cpu)=")
    add_compile_options(-march=armv8-a+crypto)
  endif()
else()
  set(nsimplex_disabled_targets "(HWY_SSSE3|HWY_SSE4)")
endif()
set(NSIMPLEX_HWY_DISABLED_TARGETS "${nsimplex_disabled_targets}" CACHE STRING "Highway's targets that are not compiled")

# A build for this machine alone has kernels for its own level, and the portable ones. A list of the user's own stays.
option(NSIMPLEX_NATIVE "Leave out kernels for SIMD levels that this machine lacks or has better ones than" OFF)
set(nsimplex_hwy_disabled_targets "${NSIMPLEX_HWY_DISABLED_TARGETS}")
if(NSIMPLEX_NATIVE AND NOT CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND
   NSIMPLEX_HWY_DISABLED_TARGETS STREQUAL nsimplex_disabled_targets)
  include(CheckCXXSourceRuns)
  check_cxx_source_runs("int main() {
    return !(__builtin_cpu_supports(\"avx512f\") && __builtin_cpu_supports(\"avx512bw\") &&
             __builtin_cpu_supports(\"avx512cd\") && __builtin_cpu_supports(\"avx512dq\") &&
             __builtin_cpu_supports(\"avx512vl\")); }" NSIMPLEX_HAS_AVX512)
  if(NSIMPLEX_HAS_AVX512)
    set(nsimplex_hwy_disabled_targets "(${nsimplex_hwy_disabled_targets}|HWY_AVX2)")
  else()
    set(nsimplex_hwy_disabled_targets "(${nsimplex_hwy_disabled_targets}|HWY_AVX3)")
  endif()
endif()

if(NSIMPLEX_SANITIZE)
  add_compile_options(-fsanitize=${NSIMPLEX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${NSIMPLEX_SANITIZE})
endif()

# What a fault can be turned into is kept small: stack canaries, checked library calls, one shadow stack or signed
# return addresses, and tables of functions that are read-only once the program has started. Sanitizers bring
# checks of their own, which these would hide.
if(NOT NSIMPLEX_SANITIZE)
  include(CheckCXXCompilerFlag)
  add_compile_options(-fstack-protector-strong)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")  # it needs optimisation
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  endif()
  check_cxx_compiler_flag(-fcf-protection=full NSIMPLEX_CET)
  check_cxx_compiler_flag(-mbranch-protection=standard NSIMPLEX_BRANCH_PROTECTION)
  if(NSIMPLEX_CET)
    # The start files of Debian's C library carry no mark, so the linker is told that shadow stacks are safe. It is not
    # told so of indirect branches: those start files lack the landing pads.
    add_compile_options(-fcf-protection=full)
    add_link_options(LINKER:-z,shstk)
  elseif(NSIMPLEX_BRANCH_PROTECTION)
    add_compile_options(-mbranch-protection=standard)
  endif()
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

# Errors of LibTorch name the file they come from: as src/..., wherever it was compiled.
add_compile_options("-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")

find_program(NSIMPLEX_CCACHE ccache)
if(NSIMPLEX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # In a fresh clone every header is new, which ccache takes for a file that may still change; and a clone elsewhere is
  # served only where the folder of the sources is no part of the names.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime "${NSIMPLEX_CCACHE}")
endif()
find_program(NSIMPLEX_MOLD mold)
if(NSIMPLEX_MOLD AND NOT CMAKE_CROSSCOMPILING)  # a cross compiler looks for linkers of its own name
  add_link_options(-fuse-ld=mold)
endif()
