// The public C++ functions around the operator: their arguments reach what the Python tests hold
// against the definitions.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/attention_merge.h>
#include <nsimplex/continuous_order.h>
#include <nsimplex/rotary.h>

#include <cmath>

namespace nsimplex {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-9, 1e-9); }

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

struct Inputs {
  Tensor query, key, other, value, more;

  Inputs() {
    at::manual_seed(1);
    query = at::randn({2, 4, 5, 6}, at::kDouble);
    key = at::randn({2, 2, 7, 6}, at::kDouble);
    other = at::randn({2, 2, 4, 6}, at::kDouble);
    value = at::randn({2, 2, 7, 3}, at::kDouble);
    more = at::randn({2, 2, 4, 3}, at::kDouble);
  }
};

TEST(MergeAttention, BlocksOfAnAxisMergeToTheWhole) {
  const Inputs in;
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

TEST(Rotary, EveryOptionReachesTheOperator) {
  const Inputs in;
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
  const Inputs in;
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
  EXPECT_THAT(error_of([&] { run(2.5); }), HasSubstr("[continuous_order] order: expected 1 to 2"));
}

}  // namespace
}  // namespace nsimplex
