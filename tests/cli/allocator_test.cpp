#include "cli/app.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdint>

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

// A small allocation of any thread may land in the freed memory, so that a tensor now and then needs
// new pages. The pages of all rounds are counted for that reason, without huge ones.
TEST(Allocator, MemoryThatWasFreedIsTakenAgainAsItIs) {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  keep_freed_memory();
  constexpr int64_t kRounds = 30, kPagesOfTensor = 10'240;
  int64_t faults = 0;
  for (int64_t round = 0; round < kRounds; ++round) faults += faults_of_tensor();
  EXPECT_LT(faults, kRounds * kPagesOfTensor / 2);
}

}  // namespace
}  // namespace nsimplex::cli
