#include "cli/app.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>

namespace nsimplex::cli {
namespace {

// A tensor of 40 MB: glibc maps memory anew for everything above 32 MB, unless told not to. What the
// allocator itself counts is looked at, because page faults depend on the machine.
TEST(Allocator, MemoryThatWasFreedIsKept) {
  constexpr std::size_t kBytes = 40 << 20;
  keep_freed_memory();
  const std::size_t mapped = mallinfo2().hblkhd;
  {
    const at::Tensor tensor = at::ones({kBytes / sizeof(float)}, at::kFloat);
    EXPECT_LT(mallinfo2().hblkhd, mapped + kBytes) << "the tensor has a mapping of its own";
  }
  EXPECT_GE(mallinfo2().fordblks, kBytes) << "the memory went back to the system";
}

}  // namespace
}  // namespace nsimplex::cli
