#include "cli/allocator.h"

#include <malloc.h>

#include <cstdlib>
#include <limits>

namespace nsimplex::cli {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
  setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);  // PyTorch's setting
}

}  // namespace nsimplex::cli
