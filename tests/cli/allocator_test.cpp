#include "cli/app.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace nsimplex::cli {
namespace {

int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Page faults of a tensor of 40 MB: glibc maps anew, at every allocation, what is above 32, unless
// told not to.
int64_t faults_of_tensor() {
  const int64_t before = page_faults();
  const at::Tensor tensor = at::ones({10 << 20}, at::kFloat);
  return page_faults() - before;
}

// At first an allocation leaves a small piece behind itself, in the way of the next; a thread keeps
// seven of them.
TEST(Allocator, MemoryThatWasFreedIsTakenAgainAsItIs) {
  keep_freed_memory();
  for (int round = 0; round < 10; ++round) faults_of_tensor();
  EXPECT_LT(faults_of_tensor(), 100);  // a tensor has 10,240 pages
}

}  // namespace
}  // namespace nsimplex::cli
