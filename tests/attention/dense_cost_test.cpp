#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>

namespace nsimplex {
namespace {

using at::Tensor;

TEST(AttentionFlops, CountsAdmissibleTuples) {
  const Tensor query = at::zeros({2, 4, 5, 8}), key = at::zeros({2, 2, 5, 8}),
               value = at::zeros({2, 2, 5, 6}), longer = at::zeros({2, 2, 7, 8}),
               longer_value = at::zeros({2, 2, 7, 6});
  const double each = 2.0 * (8 + 6) * 2 * 4;  // D + Dv, batch, query heads
  EXPECT_EQ(attention_flops(query, {key}, {value}), each * 25);
  EXPECT_EQ(attention_flops(query, {key}, {value}, {.causal = true}), each * (1 + 2 + 3 + 4 + 5));
  EXPECT_EQ(attention_flops(query, {key, key}, {value, value},
                            {.window = {Window::last(2), Window::last(3)}}),
            each * (1 * 1 + 2 * 2 + 2 * 3 + 2 * 3 + 2 * 3));
  // Aligned to the ends: the first query sees 3 keys of the longer axis.
  EXPECT_EQ(attention_flops(query, {longer}, {longer_value}, {.causal = true}),
            each * (3 + 4 + 5 + 6 + 7));
}

TEST(AttentionFlops, KeyLengthsCount) {
  const Tensor query = at::zeros({2, 1, 5, 1}), key = at::zeros({2, 1, 5, 1});
  const Tensor lengths = at::tensor({3, 0}, at::kLong);
  EXPECT_EQ(attention_flops(query, {key}, {key}, {.key_lengths = lengths}), 2.0 * 2 * 5 * 3);
  EXPECT_EQ(
      attention_flops(query, {key, key}, {key, key}, {.causal = true, .key_lengths = lengths}),
      2.0 * 2 * (1 + 4 + 9 + 9 + 9));
}

TEST(AttentionFlops, DocumentsCount) {
  const Tensor x = at::zeros({3, 1, 9, 1});
  const Tensor bounds = at::tensor({0, 4, 4, 9}, at::kLong);
  EXPECT_EQ(attention_flops(x, {x, x}, {x, x}, {.cu_seqlens = bounds}),
            2.0 * 2 * 3 * (4 * 4 * 4 + 5 * 5 * 5));
  EXPECT_EQ(attention_flops(x, {x}, {x}, {.causal = true, .cu_seqlens = bounds}),
            2.0 * 2 * 3 * (10 + 15));
}

TEST(AttentionWorkspace, GrowsWithThreadsAndIsZeroForTheReference) {
  const Tensor x = at::zeros({1, 4, 512, 16});
  const AttentionOptions options{.causal = true, .window = {Window::last(8), Window::last(64)}};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const AttentionWorkspace one = attention_workspace(x, {x, x}, {x, x}, options);
  at::set_num_threads(2);
  const AttentionWorkspace two = attention_workspace(x, {x, x}, {x, x}, options);
  at::set_num_threads(threads);
  EXPECT_GT(one.forward_bytes, 0);
  EXPECT_GT(one.backward_bytes, one.forward_bytes);
  EXPECT_GE(two.forward_bytes, one.forward_bytes);
  const Tensor meta = x.to(at::kMeta);
  EXPECT_EQ(attention_workspace(meta, {meta, meta}, {meta, meta}, options).forward_bytes, 0);
}

}  // namespace
}  // namespace nsimplex
