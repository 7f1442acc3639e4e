// Sensitivity and sharpness: bounds that are attained, and never passed.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/analysis.h>
#include <nsimplex/layers.h>

#include <algorithm>
#include <cmath>

#include "analysis/ascent.h"
#include "input_error_of.h"
#include "support/tensors.h"

namespace nsimplex::analysis {
namespace {

using at::Tensor;
using test::input_error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kRounding = 1 + 1e-9;

using test::normal;

TensorFunction attention_of(int64_t order, const Scale& scale) {
  return [order, scale](const Tensors& x) {
    const at::TensorList all(x);
    AttentionOptions options;
    options.scale = scale;
    return attention(x[0], all.slice(1, order), all.slice(1 + order), options).out;
  };
}

// Gaussian queries; all keys along one axis and all values along another, of either sign: [B, 1, T,
// D], rows of unit root mean square once projected.
Tensors aligned_inputs(int64_t order, int64_t problems, int64_t tokens, int64_t dim) {
  Tensors inputs{normal({problems, 1, tokens, dim})};
  for (int64_t i = 1; i <= 2 * order; ++i) {
    Tensor x = 0.01 * normal({problems, 1, tokens, dim});
    x.select(-1, i <= order ? 0 : 1) +=
        std::sqrt(static_cast<double>(dim)) * normal({problems, 1, tokens}).sign();
    inputs.push_back(x);
  }
  return inputs;
}

double largest(const std::vector<double>& numbers) { return *std::ranges::max_element(numbers); }

SensitivityOptions unit_inputs(int64_t order, int64_t steps) {
  SensitivityOptions options;
  options.ascent.steps = steps;
  options.input_rms.assign(2 * order + 1, 1.0);
  return options;
}

class Sensitivity : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

TEST_F(Sensitivity, NormsOfSmallTensors) {
  const Tensor x = at::tensor({3.0, 4.0, 0.0, 1.0}, at::kDouble).view({2, 2});
  EXPECT_DOUBLE_EQ(inf_rms(x).item<double>(), 5 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(inf_op(-x.view({1, 2, 2}), 1).item<double>(), 7);
  EXPECT_DOUBLE_EQ(inf_op(x.view({1, 2, 2}), 2).item<double>(), 8);
}

TEST_F(Sensitivity, LinearMapsInClosedForm) {
  // Of y = W x, rows by rows, the norm from inf-RMS to inf-RMS is |W| sqrt(in / out).
  const Tensor weight = normal({6, 3});
  const TensorFunction map = [&](const Tensors& x) { return x[0].matmul(weight); };
  const double exact = at::linalg_matrix_norm(weight, 2).item<double>() * std::sqrt(6.0 / 3.0);
  const auto found = sensitivity(map, {normal({2, 4, 6})});
  EXPECT_NEAR(found.value.max().item<double>(), exact, 1e-6 * exact);
  EXPECT_EQ(sharpness(map, {normal({2, 4, 6})}).value.max().item<double>(), 0);
}

// x y, a bilinear function of two inputs: |D2F[(a, 0), (0, b)]| = |a b|, at most D^1/2.
TEST_F(Sensitivity, SharpnessOfAProduct) {
  const TensorFunction product = [](const Tensors& x) { return x[0] * x[1]; };
  SensitivityOptions options;
  options.starts = 8;
  const auto found = sharpness(product, {normal({1, 2, 4}), normal({1, 2, 4})}, options);
  EXPECT_NEAR(found.value.item<double>(), 2, 1e-6);
  EXPECT_EQ(found.blocks[0].item<double>(), 0);  // x with itself
  EXPECT_EQ(found.blocks[2].item<double>(), 0);
}

struct Attained {
  int64_t order, dim;
  double value;
};

// sqrt(D) at order 1, D^(3/2) at order 2: what standard scales come to.
TEST_F(Sensitivity, StandardScalesAttainTheirBound) {
  for (const auto& [order, dim, value] : {Attained{1, 64, 8}, {2, 16, 64}, {2, 64, 512}}) {
    const Scale scale = Scale::standard(dim);
    EXPECT_NEAR(largest(sensitivity_bounds(order, dim, dim, scale)), value, 1e-9 * value);
    const auto found = sensitivity(attention_of(order, scale), aligned_inputs(order, 12, 2, dim),
                                   unit_inputs(order, 60));
    EXPECT_GT(found.value.max().item<double>(), 0.99 * value) << order << " " << dim;
    EXPECT_LE(found.value.max().item<double>(), kRounding * value);
  }
}

TEST_F(Sensitivity, UnitScalesAreUnitSensitiveAndAttainIt) {
  for (int64_t order = 1; order <= 3; ++order) {
    const int64_t dim = 6;
    const Scale scale = Scale::unit(order, dim, dim, Reduce::product);
    const auto found = sensitivity(attention_of(order, scale), aligned_inputs(order, 8, 2, dim),
                                   unit_inputs(order, 40));
    EXPECT_LE(found.value.max().item<double>(), kRounding) << order;
    EXPECT_GT(found.value.max().item<double>(), 0.99) << order;
  }
}

TEST_F(Sensitivity, SharpnessStaysBelowThree) {
  for (int64_t order = 1; order <= 2; ++order) {
    const int64_t dim = 4;
    const Scale scale = Scale::unit(order, dim, dim, Reduce::product);
    const auto found = sharpness(attention_of(order, scale), aligned_inputs(order, 4, 3, dim),
                                 unit_inputs(order, 24));
    const auto bounds = sharpness_bounds(order, dim, dim, scale);
    EXPECT_LE(largest(bounds), 3 * kRounding);
    ASSERT_EQ(found.blocks.size(0), std::ssize(bounds));
    for (int64_t b = 0; b < std::ssize(bounds); ++b) {
      EXPECT_LE(found.blocks[b].max().item<double>(), kRounding * bounds[b] + 1e-12)
          << order << " " << b;
    }
    EXPECT_GT(found.value.max().item<double>(), 1.0);
  }
}

TEST_F(Sensitivity, BlocksOfAnyScaleAndNorm) {
  // N = 1, D = Dv = 4, s = (0.5, 3), norms 2, 3, 5: c1 = 0.5 * 4 * 6 = 12, c2 = 3 * 5 = 15.
  const InputNorms norms{.query = 2, .keys = {3}, .values = {5}};
  const Scale scale{.logit = 0.5, .output = 3};
  EXPECT_THAT(sensitivity_bounds(1, 4, 4, scale, norms), ElementsAre(90, 60, 3));
  EXPECT_THAT(sharpness_bounds(1, 4, 4, scale, norms), ElementsAre(1080, 750, 18, 480, 12, 0));
  SensitivityOptions options = unit_inputs(1, 40);
  options.input_rms = {2, 3, 5};
  const auto found = sensitivity(attention_of(1, scale), aligned_inputs(1, 8, 2, 4), options);
  const auto bounds = sensitivity_bounds(1, 4, 4, scale, norms);
  for (int64_t b = 0; b < 3; ++b) {
    EXPECT_LE(found.blocks[b].max().item<double>(), kRounding * bounds[b]);
  }
  EXPECT_NEAR(found.blocks[2].max().item<double>(), 3, 1e-6);  // values: attained at once
}

TEST_F(Sensitivity, TheValueIsAttainedAtWhatIsReturned) {
  const TensorFunction function = attention_of(2, Scale::standard(4));
  const auto found = sensitivity(function, aligned_inputs(2, 3, 3, 4), unit_inputs(2, 10));
  const Tensor derivative = directional(function, found.inputs, found.directions);
  double length = 0;
  for (const Tensor& a : found.directions[0]) length += inf_rms(a.slice(0, 0, 1)).item<double>();
  EXPECT_NEAR(length, 1, 1e-12);
  EXPECT_NEAR(inf_rms(derivative[0]).item<double>(), found.value[0].item<double>(), 1e-10);
  for (const Tensor& x : found.inputs) EXPECT_NEAR(inf_rms(x).item<double>(), 1, 1e-12);
}

// A layer with all projections identities, heads as wide as the model.
SimplicialAttention identity_layer(int64_t order, int64_t dim, bool unit_layer) {
  SimplicialAttentionOptions options;
  options.dim = dim;
  options.order = order;
  options.scale = ScalePreset::unit;
  options.unit_layer = unit_layer;
  SimplicialAttention layer(options);
  const at::NoGradGuard no_grad;
  for (Tensor& weight : layer->parameters()) {
    weight.copy_(at::eye(dim).repeat({weight.size(0) / dim, 1}));
  }
  layer->to(at::kDouble);
  return layer;
}

TEST_F(Sensitivity, OfALayerAddsUpAndTheFactorMakesItOne) {
  for (const int64_t order : {1, 2}) {
    const Tensor start = normal({8, 3, 4});
    SensitivityOptions options;
    options.ascent.steps = 60;
    options.input_rms = {1};
    const auto of = [&](bool unit_layer) {
      SimplicialAttention layer = identity_layer(order, 4, unit_layer);
      const auto function = [layer](const Tensors& x) mutable { return layer->forward(x[0]); };
      at::manual_seed(3);
      return sensitivity(function, {start}, options).value.max().item<double>();
    };
    const double inputs = static_cast<double>(2 * order + 1), plain = of(false);
    EXPECT_GT(plain, 1.5);  // more than of q, k and v each, 1
    EXPECT_LE(plain, inputs * kRounding);
    EXPECT_NEAR(of(true), plain / inputs, 1e-6);
  }
}

TEST_F(Sensitivity, ErrorsNameTheArgument) {
  const TensorFunction same = [](const Tensors& x) { return x[0] * 1; };
  EXPECT_THAT(input_error_of([&] { sensitivity(same, {}); }), HasSubstr("expected an input"));
  EXPECT_THAT(input_error_of([&] { sensitivity(same, {normal({1, 2}), normal({2, 2})}); }),
              HasSubstr("input 1: expected 1 problems as in the first one, got 2"));
  SensitivityOptions options;
  options.input_rms = {1, 1};
  EXPECT_THAT(input_error_of([&] { sharpness(same, {normal({1, 2})}, options); }),
              HasSubstr("input_rms: expected 1 numbers"));
  options = {};
  options.starts = 0;
  EXPECT_THAT(input_error_of([&] { sharpness(same, {normal({1, 2})}, options); }),
              HasSubstr("starts: expected one or more, got 0"));
  EXPECT_THAT(input_error_of([&] { inf_op(normal({3}), 1); }), HasSubstr("[3]"));
}

}  // namespace
}  // namespace nsimplex::analysis
