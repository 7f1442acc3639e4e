// Allocates the memory of a kernel call, with large pages where they help.

#include "support/working_memory.h"

#include <ATen/Functions.h>
#include <sys/mman.h>

namespace nsimplex {
namespace {

constexpr int64_t kLargePage = int64_t{2} << 20;

// The allocator keeps smaller pieces for the next call, so that their pages are not new.
constexpr int64_t kFewestBytes = 2 * kLargePage;

}  // namespace

at::Tensor working_memory(int64_t bytes) {
  at::Tensor memory = at::empty({bytes}, at::kByte);
#ifdef MADV_HUGEPAGE
  if (bytes >= kFewestBytes) {
    char* const begin = static_cast<char*>(memory.mutable_data_ptr());
    const int64_t before = -reinterpret_cast<intptr_t>(begin) & (kLargePage - 1);
    const int64_t whole = (bytes - before) & -kLargePage;
    // If the system refuses, only speed is lost.
    madvise(begin + before, static_cast<size_t>(whole), MADV_HUGEPAGE);
  }
#endif
  return memory;
}

}  // namespace nsimplex
