// The public C++ function: options, defaults and errors. Values and gradients are held against the
// definition by the Python tests and by `nsimplex verify`, which drive the same operator.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>
#include <nsimplex/rotary.h>
#include <nsimplex/separable_attention.h>
#include <nsimplex/sparse_attention.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "error_of.h"

namespace nsimplex {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

struct Inputs {
  Tensor query;
  std::vector<Tensor> keys, values;

  explicit Inputs(int order, at::ScalarType dtype = at::kFloat, int64_t queries = 17,
                  int64_t longer = 3) {
    at::manual_seed(1);
    query = at::randn({2, 4, queries, 8}, dtype);
    for (int m = 0; m < order; ++m) {
      keys.push_back(at::randn({2, 2, queries + longer * m, 8}, dtype));
      values.push_back(at::randn({2, 2, queries + longer * m, 6}, dtype));
    }
  }
  AttentionOutput run(const AttentionOptions& options = {}) const {
    return attention(query, keys, values, options);
  }
  AttentionOutput reference(const AttentionOptions& options = {}) const {
    std::vector<Tensor> wide_keys, wide_values;
    for (const Tensor& key : keys) wide_keys.push_back(key.to(at::kDouble));
    for (const Tensor& value : values) wide_values.push_back(value.to(at::kDouble));
    return attention_reference(query.to(at::kDouble), wide_keys, wide_values, options);
  }
};

void expect_close(const AttentionOutput& ours, const AttentionOutput& exact) {
  EXPECT_TRUE(at::allclose(ours.out.to(at::kDouble), exact.out, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(ours.lse.to(at::kDouble), exact.lse, 1e-5, 1e-5));
}

TEST(DenseAttention, EveryOptionReachesTheOperator) {
  for (const int order : {1, 2, 3}) {
    const Inputs inputs(order);
    for (const Reduce reduce : {Reduce::product, Reduce::sum, Reduce::mean}) {
      AttentionOptions options{.causal = order == 2, .window = {{4, 1}}, .reduce = reduce};
      expect_close(inputs.run(options), inputs.reference(options));
      options.window.assign(static_cast<size_t>(order), Window::last(5));
      options.window.back() = Window{};
      options.scale = Scale::unit(order, 8, 6, reduce);
      expect_close(inputs.run(options), inputs.reference(options));
      const Inputs padded(order, at::kFloat, 17, 0);
      options.key_lengths = at::tensor({5, 16}, at::kLong);
      expect_close(padded.run(options), padded.reference(options));
    }
  }
}

TEST(DenseAttention, MasksAndNormalizersReachTheOperator) {
  const Inputs inputs(1, at::kFloat, 8);
  const Tensor position = at::arange(8);
  const Tensor earlier = position.unsqueeze(1).gt(position);  // [Tq, T]
  const std::vector<AttentionOptions> table{
      {.form = Form::determinant},
      {.normalizer = Normalizer::sigmoid},
      {.normalizer = Normalizer::relu},
      {.normalizer = Normalizer::softmax_sink, .sink = at::arange(4, at::kFloat)},
      {.key_masks = {at::randn({2, 8}).gt(-0.5)}},
      {.cu_seqlens = at::tensor({0, 3, 8}, at::kLong)},
      {.mask = earlier},
      {.mask = at::randn({4, 1, 8})},
      {.distinct = Distinct::with_query},
      {.dropout_p = 0.5, .seed = 4},
  };
  for (size_t i = 0; i < table.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(inputs.run(table[i]), inputs.reference(table[i]));
    EXPECT_FALSE(at::allclose(inputs.run(table[i]).out, inputs.run().out, 1e-3, 1e-3));
  }
  expect_close(inputs.run({.mask = earlier}),
               inputs.reference({.window = {{-1, 0}}, .distinct = Distinct::with_query}));
}

TEST(DenseAttention, OptionsChangeTheResultAsTheySay) {
  const Inputs inputs(2);
  const auto same = [&](const AttentionOptions& a, const AttentionOptions& b) {
    return at::allclose(inputs.run(a).out, inputs.run(b).out, 1e-5, 1e-6);
  };
  EXPECT_FALSE(same({}, {.causal = true}));
  EXPECT_TRUE(same({.window = {Window{}}}, {}));
  EXPECT_TRUE(same({.window = {Window::last(3)}}, {.causal = true, .window = {{3, 7}, {3, -1}}}));
  EXPECT_TRUE(same({.scale = Scale{1 / std::sqrt(8.0), 1.0}}, {}));
  EXPECT_FALSE(same({.reduce = Reduce::mean}, {.reduce = Reduce::sum}));
}

TEST(DenseAttention, ScalesAreTheFormulas) {
  EXPECT_DOUBLE_EQ(Scale::standard(64).logit, 0.125);
  EXPECT_DOUBLE_EQ(Scale::standard(64).output, 1.0);
  const Scale product = Scale::unit(3, 4, 9, Reduce::product);
  EXPECT_DOUBLE_EQ(product.logit, std::pow(4.0, -2.0));
  EXPECT_DOUBLE_EQ(product.output, 1.0 / 9.0);
  EXPECT_DOUBLE_EQ(Scale::unit(3, 4, 9, Reduce::sum).output, 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(Scale::unit(3, 4, 9, Reduce::mean).output, 1.0);
}

// A window in a message is the caller's, not the flattened list.
TEST(DenseAttention, ErrorsNameTheArgument) {
  const Inputs inputs(2);
  const auto message = [&](const AttentionOptions& options) {
    try {
      inputs.run(options);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({.window = {{1, 0}, {2, 0}, {3, 0}}}),
              HasSubstr("[attention] window: expected one for all axes or 2, got 3"));
  EXPECT_THAT(message({.window = {{0, 0}}}), HasSubstr("[attention] window[0]: left counts"));
  EXPECT_THAT(message({.form = Form::determinant}), HasSubstr("divisible by N + 1 = 3, got 8"));
  EXPECT_THAT(message({.normalizer = Normalizer::softmax_sink}), HasSubstr("[attention] sink: "));
  EXPECT_THAT(message({.key_masks = {inputs.query}}), HasSubstr("[attention] key_masks: "));
  EXPECT_THROW(attention(inputs.query, inputs.keys, {inputs.values[0]}), c10::ValueError);
  EXPECT_THROW(attention(inputs.query.to(at::kDouble), inputs.keys, inputs.values), c10::TypeError);
}

TEST(DenseAttention, GradientsFlowThroughVectorsOfTensors) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Inputs inputs(2, dtype);
    std::vector<Tensor> leaves{inputs.query};
    leaves.insert(leaves.end(), inputs.keys.begin(), inputs.keys.end());
    leaves.insert(leaves.end(), inputs.values.begin(), inputs.values.end());
    for (Tensor& leaf : leaves) leaf.requires_grad_(true);
    const AttentionOutput output = inputs.run({.causal = true});
    const auto grads = torch::autograd::grad({output.out.square().sum(), output.lse.sum()}, leaves);
    ASSERT_EQ(grads.size(), leaves.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      EXPECT_EQ(grads[i].sizes(), leaves[i].sizes());
      EXPECT_GT(grads[i].norm().item<double>(), 0.0) << i;
    }
  }
}

TEST(DenseAttention, AQueryWithoutKeysIsZero) {
  Inputs inputs(2);
  const AttentionOutput output = inputs.run({.key_lengths = at::tensor({0, 3}, at::kLong)});
  EXPECT_EQ(output.out[0].abs().max().item<float>(), 0.0f);
  EXPECT_EQ(output.lse[0].max().item<float>(), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(at::isfinite(output.lse[1]).all().item<bool>());
}

TEST(DenseAttention, LengthsOfKeysThatGoByPlaceNeedAsManyQueries) {
  const Inputs decode(2, at::kFloat, 1, 5);  // 1 and 6 keys
  const Tensor lengths = at::tensor({1, 1}, at::kLong);
  const auto refused = [&](AttentionOptions options) {
    options.key_lengths = lengths;
    return error_of([&] { decode.run(options); });
  };
  const std::string says =
      "expected as many keys as queries, got 6 in keys[1] for 1: queries align to the end of the "
      "axis, padding included";
  EXPECT_THAT(refused({.causal = true}),
              HasSubstr("[attention] key_lengths: with causal, " + says));
  EXPECT_THAT(refused({.window = {Window{}, Window::last(3)}}),
              HasSubstr("key_lengths: with a window, " + says));
  EXPECT_THAT(refused({.distinct = Distinct::with_query}),
              HasSubstr("key_lengths: with distinct='with_query', " + says));
  // What sees every key does not go by place; nor does the axis without a window.
  EXPECT_EQ(refused({}), "nothing was thrown");
  EXPECT_EQ(refused({.window = {Window::last(1), Window{}}}), "nothing was thrown");
}

TEST(DenseAttention, PositionsAlignQueriesWithSlots) {
  const Inputs inputs(2, at::kFloat, 6, 0);
  const Tensor first = at::tensor({2, 0}, at::kInt);  // three queries of six, at other places
  std::vector<Tensor> keys = inputs.keys, values = inputs.values;
  const Tensor query = inputs.query.narrow(2, 0, 3);
  AttentionOptions options{.causal = true, .window = {Window::last(3)}, .query_positions = first};
  const AttentionOutput ours = attention(query, keys, values, options);
  expect_close(ours, attention_reference(
                         query.to(at::kDouble), {keys[0].to(at::kDouble), keys[1].to(at::kDouble)},
                         {values[0].to(at::kDouble), values[1].to(at::kDouble)}, options));
  options.query_positions = std::nullopt;
  for (const int64_t entry : {0, 1}) {
    const int64_t seen = entry == 0 ? 5 : 3;
    const auto cut = [&](std::vector<Tensor> tensors) {
      for (Tensor& each : tensors) each = each.narrow(0, entry, 1).narrow(2, 0, seen);
      return tensors;
    };
    const AttentionOutput alone =
        attention(query.narrow(0, entry, 1), cut(keys), cut(values), options);
    EXPECT_TRUE(at::allclose(ours.out.narrow(0, entry, 1), alone.out, 1e-5, 1e-6));
  }
}

TEST(DenseAttention, LengthsAndBoundariesMayBeInt32) {
  const Inputs inputs(2, at::kFloat, 17, 0);
  for (const bool causal : {false, true}) {
    AttentionOptions wide{.causal = causal,
                          .key_lengths = at::tensor({5, 16}, at::kLong),
                          .cu_seqlens = at::tensor({0, 4, 17}, at::kLong)};
    AttentionOptions narrow = wide;
    narrow.key_lengths = wide.key_lengths->to(at::kInt);
    narrow.cu_seqlens = wide.cu_seqlens->to(at::kInt);
    EXPECT_TRUE(at::equal(inputs.run(wide).out, inputs.run(narrow).out));
    EXPECT_TRUE(at::equal(inputs.reference(wide).out, inputs.reference(narrow).out));
  }
}

TEST(DenseAttention, MasksOfHigherOrderNameTheQueries) {
  const Inputs inputs(2, at::kFloat, 7, 0);
  using Shapes = std::vector<std::vector<int64_t>>;
  const auto with = [&](const std::vector<int64_t>& shape) {
    return error_of([&] { inputs.run({.mask = at::ones(shape, at::kBool)}); });
  };
  EXPECT_THAT(with({7, 7}),
              HasSubstr("[attention] mask: expected 3 dimensions or more at order 2, "
                        "the last of [2, 4, 7, 7, 7], got shape [7, 7]; a mask of "
                        "pairs has 1 for the other axes, as [7, 7, 1] for the first"));
  for (const auto& shape : Shapes{{1, 7, 7}, {1, 1, 7, 7}, {4, 1, 7, 7}}) {
    EXPECT_THAT(with(shape), HasSubstr("may be of pairs or of tuples at order 2"));
  }
  for (const auto& shape :
       Shapes{{7, 7, 1}, {7, 1, 7}, {4, 1, 1, 1}, {1, 1, 1, 7, 7}, {4, 7, 7, 7}}) {
    EXPECT_EQ(with(shape), "nothing was thrown");
  }
}

TEST(DenseAttention, LayoutIsAViewOfTheSame) {
  const Inputs inputs(2);
  AttentionOptions options{.causal = true, .window = {Window::last(5)}};
  const AttentionOutput expected = inputs.run(options);
  Inputs inside = inputs;
  inside.query = inputs.query.transpose(1, 2).contiguous();
  for (Tensor& key : inside.keys) key = key.transpose(1, 2).contiguous();
  for (Tensor& value : inside.values) value = value.transpose(1, 2).contiguous();
  options.layout = Layout::bthd;
  const AttentionOutput out = inside.run(options);
  EXPECT_TRUE(at::allclose(out.out, expected.out.transpose(1, 2)));
  EXPECT_TRUE(out.out.is_contiguous());
  EXPECT_TRUE(at::allclose(out.lse, expected.lse));
  const Tensor received = attention_received(inputs.query, inputs.keys, 1);
  const Tensor marginals = attention_marginals(inputs.query, inputs.keys, 1);
  const AttentionOptions bthd{.layout = Layout::bthd};
  EXPECT_TRUE(at::allclose(attention_received(inside.query, inside.keys, 1, bthd), received));
  EXPECT_TRUE(at::allclose(attention_marginals(inside.query, inside.keys, 1, bthd), marginals));
  EXPECT_TRUE(
      at::allclose(face_attention(inside.query, inside.keys, inside.values, bthd).out,
                   face_attention(inputs.query, inputs.keys, inputs.values).out.transpose(1, 2)));
  const RotaryOptions turn{.layout = Layout::bthd};
  EXPECT_TRUE(at::allclose(rotary(inside.query, turn), rotary(inputs.query).transpose(1, 2)));
  const SeparableOptions separable{.layout = Layout::bthd};
  const auto of = [](const Tensor& x) { return x.abs(); };
  EXPECT_TRUE(at::allclose(
      separable_attention(of(inside.query), {of(inside.keys[0])}, {inside.values[0]}, separable)
          .out,
      separable_attention(of(inputs.query), {of(inputs.keys[0])}, {inputs.values[0]})
          .out.transpose(1, 2)));
  const Tensor sets = at::zeros({1, 1, 17, 2}, at::kLong);
  const SparseAttentionOptions plain{.pattern = TuplePattern::product};
  SparseAttentionOptions sparse = plain;
  sparse.layout = Layout::bthd;
  EXPECT_TRUE(
      at::allclose(sparse_attention(inside.query, inside.keys, inside.values, sets, {}, sparse).out,
                   sparse_attention(inputs.query, inputs.keys, inputs.values, sets, {}, plain)
                       .out.transpose(1, 2)));
}

}  // namespace
}  // namespace nsimplex
