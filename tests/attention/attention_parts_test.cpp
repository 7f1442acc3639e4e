// The public C++ functions around the operator: their arguments reach what the Python tests hold
// against the definitions.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>
#include <nsimplex/rotary.h>

#include <cmath>

#include "error_of.h"

namespace nsimplex {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-9, 1e-9); }

struct TwoAxes {
  Tensor query, key, other, value, more;

  TwoAxes() {
    at::manual_seed(1);
    query = at::randn({2, 4, 5, 6}, at::kDouble);
    key = at::randn({2, 2, 7, 6}, at::kDouble);
    other = at::randn({2, 2, 4, 6}, at::kDouble);
    value = at::randn({2, 2, 7, 3}, at::kDouble);
    more = at::randn({2, 2, 4, 3}, at::kDouble);
  }
};

TEST(MergeAttention, BlocksOfAnAxisMergeToTheWhole) {
  const TwoAxes in;
  const AttentionOutput whole = attention(in.query, {in.key, in.other}, {in.value, in.more});
  std::vector<Tensor> outs, lses;
  for (const auto& [begin, end] : {std::pair(0, 3), std::pair(3, 7)}) {
    const AttentionOutput part = attention(in.query, {in.key.slice(2, begin, end), in.other},
                                           {in.value.slice(2, begin, end), in.more});
    outs.push_back(part.out);
    lses.push_back(part.lse);
  }
  const AttentionOutput merged = merge_attention(outs, lses);
  EXPECT_TRUE(close(merged.out, whole.out));
  EXPECT_TRUE(close(merged.lse, whole.lse));
  EXPECT_THAT(error_of([&] { merge_attention(outs, {lses[0]}); }),
              HasSubstr("[merge_attention] lses: expected 2, one for each of outs, got 1"));
}

TEST(Augment, PutsTheOrdersIntoOneSoftmax) {
  const TwoAxes in;
  const Scale scale{0.5, 1.0};
  const AttentionOutput pairs =
      attention(in.query, {in.key, in.other}, {in.value, in.more}, {.scale = scale});
  const AttentionOutput single = attention(in.query, {in.key}, {in.value}, {.scale = scale});
  const AttentionOutput exact = merge_attention({pairs.out, single.out}, {pairs.lse, single.lse});
  const AttentionOptions options{.scale = scale, .augment = {1}};
  const AttentionOutput ours =
      attention(in.query, {in.key, in.other}, {in.value, in.more}, options);
  EXPECT_TRUE(close(ours.out, exact.out));
  EXPECT_TRUE(close(ours.lse, exact.lse));
  EXPECT_DOUBLE_EQ(attention_flops(in.query, {in.key, in.other}, {in.value, in.more}, options),
                   2.0 * (6 + 3) * 2 * 4 * 5 * (7 * 4 + 7));
  EXPECT_GT(
      attention_workspace(in.query, {in.key, in.other}, {in.value, in.more}, options).forward_bytes,
      0);
}

TEST(Augment, ABiasWeighsTheOrders) {
  at::manual_seed(4);
  const Tensor query = at::randn({1, 2, 5, 4});
  const std::vector<Tensor> keys{at::randn({1, 2, 5, 4}), at::randn({1, 2, 5, 4})},
      values{at::randn({1, 2, 5, 3}), at::randn({1, 2, 5, 3})};
  const Tensor bias = at::tensor({0.0, 0.0, -90.0, -90.0}).view({2, 2}).requires_grad_();
  const AttentionOutput both = attention(query, keys, values, {.augment = {1}, .order_bias = bias});
  const AttentionOutput first = attention(query, keys[0], values[0]);
  EXPECT_TRUE(at::allclose(both.out, first.out, 1e-5, 1e-6));
  both.lse.sum().backward();
  EXPECT_TRUE(at::allclose(bias.grad()[0], at::full({2}, 5.0, bias.options())));
}

TEST(AttentionWeights, SumToTheMarginals) {
  const TwoAxes in;
  const std::vector<Tensor> keys{in.key, in.other};
  const AttentionOptions options{.window = {{3, 2}}, .scale = Scale{0.5, 3.0}};
  const Tensor weights = attention_weights(in.query, keys, options);
  EXPECT_EQ(weights.sizes(), at::IntArrayRef({2, 4, 5, 7, 4}));
  EXPECT_TRUE(close(attention_marginals(in.query, keys, 0, options), weights.sum(4)));
  EXPECT_TRUE(close(attention_marginals(in.query, keys, 1, options), weights.sum(3)));
  const Tensor received = weights.unflatten(1, {2, 2}).sum({2, 3, 4});
  EXPECT_TRUE(close(attention_received(in.query, keys, 1, options), received));
  EXPECT_THAT(error_of([&] { attention_received(in.query, keys, 2); }),
              HasSubstr("[attention_received] axis: expected 0 to 1, got 2"));
}

TEST(FaceAttention, NormalisesOverTheLastAxis) {
  const TwoAxes in;
  const AttentionOutput faces =
      face_attention(in.query, {in.other, in.key}, {in.more, in.value}, {.reduce = Reduce::sum});
  const AttentionOutput whole = attention(in.query, {in.other, in.key}, {in.more, in.value});
  EXPECT_EQ(faces.lse.sizes(), at::IntArrayRef({2, 4, 5, 4}));
  EXPECT_TRUE(close(faces.lse.logsumexp(-1), whole.lse));
  // With one value row on each axis the weights do not matter: every mean is of the same sum.
  const Tensor ones = at::ones_like(in.more);
  const AttentionOutput flat = face_attention(
      in.query, {in.other, in.key}, {ones, at::ones_like(in.value)}, {.reduce = Reduce::sum});
  EXPECT_TRUE(close(flat.out, at::full_like(flat.out, 2.0)));
}

TEST(Rotary, EveryOptionReachesTheOperator) {
  const TwoAxes in;
  const Tensor x = in.query;
  const Tensor positions = at::arange(5, at::kLong) + 3;
  const Tensor turned = rotary(x, {.chunk = 3, .base = 100.0, .offset = 3});
  EXPECT_TRUE(close(turned, rotary(x, {.chunk = 3, .base = 100.0, .positions = positions})));
  const Tensor frequencies = at::tensor({1.0, 0.1}, at::kDouble);  // 100^(-c / 2)
  const Tensor angles = positions.unsqueeze(1) * frequencies;
  EXPECT_TRUE(close(turned, rotary(x, {.chunk = 3, .angles = angles})));
  EXPECT_TRUE(close(x, rotary(turned, {.chunk = 3, .base = 100.0, .offset = 3, .inverse = true})));
  EXPECT_FALSE(close(turned, rotary(x, {.chunk = 2, .base = 100.0, .offset = 3})));
  EXPECT_FALSE(close(turned, rotary(x, {.chunk = 3, .offset = 3})));
  EXPECT_THAT(error_of([&] { rotary(x, {.chunk = 4}); }),
              HasSubstr("[rotary] x: expected a number of channels divisible by chunk 4, got 6"));
}

TEST(ContinuousOrder, EndsAreTheWholeOrders) {
  const TwoAxes in;
  const auto run = [&](double order) {
    const ContinuousOrder between =
        continuous_order({in.other, in.key}, {in.more, in.value}, order);
    return attention(in.query, between.keys, between.values, {.scale = between.scale});
  };
  const auto unit = [&](at::TensorList keys, at::TensorList values) {
    const auto order = static_cast<int64_t>(keys.size());
    return attention(in.query, keys, values, {.scale = Scale::unit(order, 6, 3, Reduce::product)});
  };
  const AttentionOutput two = unit({in.other, in.key}, {in.more, in.value});
  const AttentionOutput one = unit({in.other}, {in.more});
  EXPECT_TRUE(close(run(2.0).out, two.out));
  EXPECT_TRUE(close(run(2.0).lse, two.lse));
  EXPECT_TRUE(close(run(1.0).out, one.out));
  EXPECT_TRUE(close(run(1.0).lse, one.lse + std::log(7.0)));
  EXPECT_FALSE(close(run(1.5).out, one.out));
  EXPECT_FALSE(close(run(1.5).out, two.out));
  // The largest logit is 1 at any order: q and k1 have norm sqrt(D), the blended key adds a factor
  // of (1 - a) + a sqrt(D).
  const Scale half = continuous_order({in.other, in.key}, {in.more, in.value}, 1.5).scale;
  EXPECT_NEAR(half.logit * 6 * (0.5 + 0.5 * std::sqrt(6.0)), 1, 1e-12);
  EXPECT_NEAR(half.output * (0.5 + 0.5 * std::sqrt(3.0)), 1, 1e-12);
  EXPECT_THAT(error_of([&] { run(2.5); }), HasSubstr("[continuous_order] order: expected 1 to 2"));
}

}  // namespace
}  // namespace nsimplex
