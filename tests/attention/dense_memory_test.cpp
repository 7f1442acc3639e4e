// Peak memory of forward + backward, counted at ATen's CPU allocator.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/counting_allocator.h"

namespace nsimplex {
namespace {

using at::Tensor;

using Function = AttentionOutput(const Tensor&, at::TensorList, at::TensorList,
                                 const AttentionOptions&);

// Peak of forward + backward of a call with one head.
int64_t peak_bytes(Function* function, int order, int64_t queries, int64_t length,
                   const AttentionOptions& options) {
  CountingAllocator& allocator = CountingAllocator::installed();
  std::vector<Tensor> leaves{at::randn({1, 1, queries, 16})};
  for (int i = 0; i < 2 * order; ++i) leaves.push_back(at::randn({1, 1, length, 16}));
  for (Tensor& leaf : leaves) leaf.requires_grad_(true);
  const at::TensorList all(leaves);
  const auto n = static_cast<size_t>(order);
  return allocator.peak_of([&] {
    const AttentionOutput output = function(all[0], all.slice(1, n), all.slice(1 + n, n), options);
    torch::autograd::grad({output.out.sum(), output.lse.sum()}, leaves);
  });
}

TEST(DenseMemory, TheAllocatorCounts) {
  CountingAllocator& allocator = CountingAllocator::installed();
  EXPECT_GE(allocator.peak_of([] { at::zeros({3 * kMegabyte}, at::kByte); }), 3 * kMegabyte);
}

// All tuples of the windows, in fp32 and once only, are 4 MB at T = 512 and 32 MB at T = 4096; a
// composite that autograd records keeps several such copies with 16 channels each.
TEST(DenseMemory, WindowedReferenceIsLinearInTheLength) {
  const AttentionOptions options{.causal = true, .window = {Window::last(16), Window::last(128)}};
  const int64_t short_peak = peak_bytes(attention_reference, 2, 512, 512, options);
  const int64_t long_peak = peak_bytes(attention_reference, 2, 4096, 4096, options);
  EXPECT_LT(short_peak, 40 * kMegabyte);
  EXPECT_LT(long_peak, short_peak + 8 * kMegabyte) << "a tile does not grow with the length";
}

// T^3 = 16.8 M tuples would be 67 MB for the scores alone.
TEST(DenseMemory, UnboundedReferenceKeepsToItsTile) {
  EXPECT_LT(peak_bytes(attention_reference, 2, 256, 256, {}), 60 * kMegabyte);
}

// One query with 128^3 = 2.1 M tuples: the leading axes are cut.
TEST(DenseMemory, OneQueryOfManyTuplesIsCut) {
  EXPECT_LT(peak_bytes(attention_reference, 3, 1, 128, {}), 60 * kMegabyte);
}

TEST(DenseMemory, KernelIsLinearInTheLength) {
  const AttentionOptions options{.causal = true, .window = {Window::last(16), Window::last(128)}};
  const int64_t short_peak = peak_bytes(attention, 2, 1024, 1024, options);
  const int64_t long_peak = peak_bytes(attention, 2, 8192, 8192, options);
  EXPECT_LT(static_cast<double>(long_peak), 8.5 * static_cast<double>(short_peak));
  // Outputs, gradients and at most four times the gradients of workspace, and the tasks' scratch.
  const int64_t gradients = 5 * 8192 * 16 * 4;
  EXPECT_LT(long_peak, 6 * gradients + 8 * kMegabyte);
}

// Without windows nothing but the sequence grows either.
TEST(DenseMemory, UnboundedKernelIsLinearInTheLength) {
  const int64_t short_peak = peak_bytes(attention, 2, 64, 64, {});
  const int64_t long_peak = peak_bytes(attention, 2, 256, 256, {});
  EXPECT_LT(long_peak, 4 * short_peak + kMegabyte);
}

}  // namespace
}  // namespace nsimplex
