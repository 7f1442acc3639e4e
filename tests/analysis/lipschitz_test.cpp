// Singular values of Jacobians where they are known, and the bounds over many draws.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/analysis.h>
#include <nsimplex/language_model.h>
#include <nsimplex/layers.h>

#include <cmath>

#include "input_error_of.h"
#include "lab/lipschitz/propositions.h"
#include "support/tensors.h"

namespace nsimplex::analysis {
namespace {

using at::Tensor;
using test::input_error_of;
using ::testing::HasSubstr;

constexpr double kTight = 1e-6;

using test::normal;

TensorFunction of(const ProjectedAttention& attention) {
  return [&attention](const Tensors& x) { return attention(x[0]); };
}

// All of the Jacobian of one problem, by a row of it at a time.
Tensor jacobian(const TensorFunction& function, const Tensor& x) {
  const Tensor y = function({x});
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < y.numel(); ++i) {
    Tensor u = at::zeros_like(y);
    u.view(-1)[i] = 1;
    rows.push_back(form_gradients(function, {x}, {}, u, true).inputs[0].flatten());
  }
  return at::stack(rows);
}

class Lipschitz : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

TEST_F(Lipschitz, LinearMapsHaveTheirSpectralNorm) {
  const Tensor weight = normal({6, 4});
  const TensorFunction map = [&](const Tensors& x) { return x[0].matmul(weight); };
  const Tensor exact = at::linalg_matrix_norm(weight, 2);
  const JacobianNorm found = jacobian_norm(map, normal({3, 5, 6}));
  EXPECT_TRUE(at::allclose(found.value, exact.expand({3}), kTight));
  EXPECT_TRUE(at::allclose(found.direction.flatten(1).norm(2, 1), at::ones({3}, at::kDouble)));
  EXPECT_TRUE(
      at::allclose(lipschitz_constant(map, normal({3, 5, 6}), 2).value, exact.expand({3}), kTight));
}

TEST_F(Lipschitz, EqualsTheSingularValueOfTheWholeJacobian) {
  for (int64_t order = 1; order <= 3; ++order) {
    const ProjectedAttention attention = random_attention(order, 1, 3, 1.5, 1);
    const Tensor x = normal({1, 4, 3});
    const JacobianNorm found = jacobian_norm(of(attention), x, {.steps = 400});
    const double exact = at::linalg_matrix_norm(jacobian(of(attention), x), 2).item<double>();
    EXPECT_NEAR(found.value.item<double>(), exact, kTight * exact) << order;
  }
}

// Keys of zero make ordinary attention the mean of the tokens: of n stacked copies of 1/n sum_j
// e_j W_V the norm is |W_V|, everywhere.
TEST_F(Lipschitz, KeysOfZeroAtOrderOne) {
  ProjectedAttention attention = random_attention(1, 2, 4, 1, 3);
  for (Tensor& weight : attention.keys) weight.zero_();
  const LipschitzEstimate found = lipschitz_constant(of(attention), normal({2, 5, 4}), 1);
  EXPECT_TRUE(at::allclose(found.value, at::full({2}, 3.0, at::kDouble), kTight));
}

// Two tokens of one channel, W = 1, N = 1: f_i = y + (x - y) sigmoid(x_i (x - y)). The largest
// singular value over |x|, |y| <= R, by a grid of the closed form's 2 x 2 Jacobian.
TEST_F(Lipschitz, TwoTokensInClosedForm) {
  ProjectedAttention attention;
  attention.keys = {at::ones({16, 1, 1}, at::kDouble), at::ones({16, 1, 1}, at::kDouble)};
  attention.values = {at::ones({16, 1, 1}, at::kDouble)};
  const double radius = 1.7;
  double largest = 0;
  constexpr int kGrid = 400;
  for (int a = 0; a <= kGrid; ++a) {
    for (int b = 0; b <= kGrid; ++b) {
      const double x = radius * (2.0 * a / kGrid - 1), y = radius * (2.0 * b / kGrid - 1);
      const double t = x - y;
      double j[2][2];
      for (const int i : {0, 1}) {
        const double own = i == 0 ? x : y, s = 1 / (1 + std::exp(-own * t)), ds = s * (1 - s);
        // d(own t)/dx and /dy
        const double dx = i == 0 ? t + own : own, dy = i == 0 ? -own : t - own;
        j[i][0] = s + t * ds * dx;
        j[i][1] = 1 - s + t * ds * dy;
      }
      const double squares =
          j[0][0] * j[0][0] + j[0][1] * j[0][1] + j[1][0] * j[1][0] + j[1][1] * j[1][1];
      const double determinant = j[0][0] * j[1][1] - j[0][1] * j[1][0];
      const double root =
          std::sqrt(std::max(0.0, squares * squares - 4 * determinant * determinant));
      largest = std::max(largest, std::sqrt((squares + root) / 2));
    }
  }
  const LipschitzEstimate found =
      lipschitz_constant(of(attention), normal({16, 2, 1}), radius, {.steps = 300});
  EXPECT_NEAR(found.value.max().item<double>(), largest, 1e-3 * largest);
  EXPECT_LE(found.input.abs().max().item<double>(), radius * (1 + 1e-12));
}

TEST_F(Lipschitz, GradientsOfTheDiagnosticAreThoseOfDifferences) {
  const ProjectedAttention attention = random_attention(2, 1, 3, 1.5, 1);
  const Tensor x = normal({1, 3, 3}), v = normal({1, 3, 3}), u = normal({1, 3, 3});
  const FormGradients slopes = form_gradients(of(attention), {x}, {{v}}, u, true);
  const auto value = [&](const Tensor& at_x, const Tensor& at_v) {
    return (u * directional(of(attention), {at_x}, {{at_v}})).sum().item<double>();
  };
  const Tensor step = normal({1, 3, 3});
  const double h = 1e-5;
  const double by_x = (value(x + h * step, v) - value(x - h * step, v)) / (2 * h);
  const double by_v = (value(x, v + h * step) - value(x, v - h * step)) / (2 * h);
  EXPECT_NEAR((slopes.inputs[0] * step).sum().item<double>(), by_x, 1e-7);
  EXPECT_NEAR((slopes.directions[0][0] * step).sum().item<double>(), by_v, 1e-7);
}

// 2000 draws of weights and tokens: every printed form of the bound holds.
TEST_F(Lipschitz, BoundsHoldOnRandomDraws) {
  constexpr int64_t kDraws = 125;
  for (int64_t order = 1; order <= 4; ++order) {
    for (const double radius : {0.1, 0.5, 1.0, 3.0}) {
      const double key_norm = 1.3, value_norm = 0.8;
      const ProjectedAttention attention = random_attention(order, kDraws, 2, key_norm, value_norm);
      Tensor x = normal({kDraws, 3, 2});
      x = x / x.norm(2, -1, true) * radius;
      const Tensor found = jacobian_norm(of(attention), x, {.steps = 16}).value;
      const AttentionSize size{.order = order,
                               .tokens = 3,
                               .head_dim = 2,
                               .radius = radius,
                               .key_norm = key_norm,
                               .value_norm = value_norm};
      for (const auto form :
           {LipschitzForm::printed, LipschitzForm::proof, LipschitzForm::all_factors}) {
        EXPECT_LE(found.max().item<double>(), lipschitz_bound(size, form)) << order << radius;
      }
      if (order > 1) continue;
      const Tensor a = attention.keys[0].matmul(attention.keys[1].transpose(1, 2));
      const Tensor forms = at::linalg_matrix_norm(a, 2) / std::sqrt(2.0);
      for (int64_t b = 0; b < kDraws; ++b) {
        EXPECT_LE(found[b].item<double>(),
                  pair_lipschitz_bound(3, radius, forms[b].item<double>(), value_norm));
      }
    }
  }
}

TEST_F(Lipschitz, FormsOfTheBound) {
  // n = 2, d = 4, N = 2, R = K = V = 1: a = 2.
  const AttentionSize size{.order = 2, .tokens = 2, .head_dim = 4};
  EXPECT_DOUBLE_EQ(lipschitz_bound(size), 2 * std::sqrt(4.0) * 2 * std::sqrt(17.0));
  EXPECT_DOUBLE_EQ(lipschitz_bound(size, LipschitzForm::proof), 2 * std::sqrt(2.0) * 2 * 3);
  EXPECT_DOUBLE_EQ(lipschitz_bound(size, LipschitzForm::all_factors), 2 * std::sqrt(2.0) * 8);
  EXPECT_DOUBLE_EQ(pair_lipschitz_bound(2, 1, 1, 1), std::sqrt(3.0 * 11));
}

TEST_F(Lipschitz, LayersAndTheBlocksOfAModel) {
  SimplicialAttention layer(SimplicialAttentionOptions{.dim = 8, .heads = 2});
  layer->to(at::kDouble);
  const TensorFunction forward = [&](const Tensors& x) { return layer->forward(x[0]); };
  const Tensor x = normal({1, 3, 8});
  const double exact = at::linalg_matrix_norm(jacobian(forward, x), 2).item<double>();
  const auto found = jacobian_norm(forward, x, {.steps = 400}).value.item<double>();
  EXPECT_NEAR(found, exact, kTight * exact);

  LanguageModelOptions options;
  options.vocabulary = 16;
  options.dim = 8;
  options.heads = 2;
  options.layers = 2;
  LanguageModel model(options);
  model->to(at::kDouble);
  const auto children = model->named_children();
  const TensorFunction blocks = [&](const Tensors& inputs) {
    Tensor hidden = inputs[0];
    for (const auto& block : children["blocks"]->children()) {
      hidden = block->as<TransformerBlockImpl>()->forward(hidden);
    }
    return hidden;
  };
  const double whole = at::linalg_matrix_norm(jacobian(blocks, x), 2).item<double>();
  EXPECT_NEAR(jacobian_norm(blocks, x, {.steps = 400}).value.item<double>(), whole, kTight * whole);
}

TEST_F(Lipschitz, WeightsStayWithinTheBoundsOfTheirEntries) {
  const auto of_length = [](const Tensor& x, double length) {
    return length * x / x.norm(2, -1, /*keepdim=*/true);
  };
  for (int64_t order = 1; order <= 3; ++order) {
    for (const double radius : {0.1, 0.5, 1.5}) {
      Tensor logits = of_length(normal({1, 2}), radius);
      for (int64_t axis = 0; axis < order; ++axis) {
        logits = (logits.unsqueeze(1) * of_length(normal({1, 5, 2}), radius)).flatten(0, 1);
      }
      const Tensor weights = (0.7 * logits.sum(-1)).softmax(0);
      const WeightBounds found = weight_bounds({order, weights.numel(), radius, 1, 0.7});
      EXPECT_LE(found.lower, weights.min().item<double>()) << order << radius;
      EXPECT_GE(found.upper, weights.max().item<double>()) << order << radius;
      EXPECT_NEAR(found.logit, 0.7 * std::pow(radius, order + 1), 1e-12);
    }
  }
  // One logit of -L among logits of L, and the other way round.
  const WeightBounds closest = weight_bounds({1, 4, 1, 1.2, 0.5});
  const Tensor logits = closest.logit * at::tensor({-1.0, 1.0, 1.0, 1.0}, at::kDouble);
  EXPECT_NEAR(logits.softmax(0)[0].item<double>(), closest.lower, 1e-14);
  EXPECT_NEAR((-logits).softmax(0)[0].item<double>(), closest.upper, 1e-14);
  EXPECT_EQ(weight_bounds({.tuples = 1, .radius = 1e300}).lower, 1);
  EXPECT_EQ(weight_bounds({.tuples = 2, .radius = 1e3}).lower, 0);
  EXPECT_THROW(weight_bounds({.order = 0}), c10::ValueError);
  EXPECT_THROW(weight_bounds({.tuples = 0}), c10::ValueError);
  EXPECT_THROW(weight_bounds({.scale = std::nan("")}), c10::ValueError);
}

TEST_F(Lipschitz, InfluenceIsTheNormOfTheDerivativeBetweenTokens) {
  const Tensor x = normal({2, 3, 4});
  const auto sums = [](const Tensor& own) { return own.cumsum(1); };
  const Tensor expected = 2 * at::ones({3, 3}, at::kDouble).tril();
  EXPECT_TRUE(at::allclose(token_influence(sums, x).to(at::kDouble), expected.expand({2, 3, 3})));
  const std::vector<int64_t> second = {1};
  EXPECT_TRUE(token_influence(sums, x, second).equal(token_influence(sums, x).slice(1, 1, 2)));
  EXPECT_THROW(token_influence(sums, x[0]), c10::ValueError);
  EXPECT_THROW(token_influence([](const Tensor& own) { return own.sum(); }, x), c10::ValueError);
  EXPECT_THROW(token_influence(sums, x, std::vector<int64_t>{1, 1}), c10::ValueError);
  EXPECT_THROW(token_influence(sums, x, std::vector<int64_t>{3}), c10::ValueError);
}

// Its derivatives would all be 0, which looks like an answer.
TEST_F(Lipschitz, AFunctionThatAutogradDoesNotFollowIsRefused) {
  const Tensor x = normal({2, 3, 4});
  const auto cut = [](const Tensors& own) { return own[0].detach() * 2; };
  const auto without = [](const Tensors& own) {
    const at::NoGradGuard no_gradients;
    return own[0] * 2;
  };
  for (const TensorFunction& function : {TensorFunction(cut), TensorFunction(without)}) {
    EXPECT_THROW(jacobian_norm(function, x), c10::ValueError);
    EXPECT_THROW(lipschitz_constant(function, x, 1), c10::ValueError);
    EXPECT_THROW(token_influence([&](const Tensor& own) { return function({own}); }, x),
                 c10::ValueError);
  }
}

TEST_F(Lipschitz, InferenceModeOfTheCallerChangesNothing) {
  const c10::InferenceMode inference;
  const auto twice = [](const Tensors& own) { return own[0] * 2; };
  const Tensor x = normal({2, 3, 4});
  EXPECT_TRUE(at::allclose(jacobian_norm(twice, x).value, at::full({2}, 2.0, at::kDouble)));
  const Tensor influence =
      token_influence([&](const Tensor& own) { return twice({own}); }, x).to(at::kDouble);
  EXPECT_TRUE(at::allclose(influence, (4 * at::eye(3, at::kDouble)).expand({2, 3, 3})));
}

TEST_F(Lipschitz, CurvaturesOfEdgesAndLoops) {
  const Tensor edges = at::tensor({0, 1, 0, 2, 1, 2, 2, 3, 4, 5, 5, 6}, at::kLong).view({-1, 2});
  const TupleBatch graph = tuple_batch(edges, 7, Symmetry::undirected);
  const EdgeCurvatures found = edge_curvatures(graph);
  const auto doubles = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
  EXPECT_TRUE(found.plain.equal(doubles({0, -1, -1, 0, 1, 1})));
  EXPECT_TRUE(found.augmented.equal(doubles({3, 2, 2, 0, 1, 1})));
  EXPECT_TRUE(at::allclose(found.balanced, doubles({1.5, 5.0 / 6, 5.0 / 6, 0, 0, 0})));
  const TupleBatch loop = tuple_batch(at::tensor({0, 0, 0, 1, 1, 0}, at::kLong).view({-1, 2}), 2);
  const EdgeCurvatures looped = edge_curvatures(loop);
  EXPECT_TRUE(looped.plain.isnan().equal(at::arange(3) == 0));
  EXPECT_EQ(looped.plain[1].item<double>(), 2);
  EXPECT_THROW(edge_curvatures(complete_tuples(at::full({1}, 2, at::kLong), 3)), c10::ValueError);
}

TEST_F(Lipschitz, ErrorsNameTheArgument) {
  const TensorFunction same = [](const Tensors& x) { return x[0] * 1; };
  EXPECT_THAT(input_error_of([&] { jacobian_norm(same, at::ones({3})); }),
              HasSubstr("expected floating [B, .., C]"));
  EXPECT_THAT(input_error_of([&] { lipschitz_constant(same, normal({1, 2}), -1); }),
              HasSubstr("radius: expected a positive number, got -1"));
  EXPECT_THAT(input_error_of([&] { lipschitz_bound({.order = 0}); }), HasSubstr("got 0"));
}

}  // namespace
}  // namespace nsimplex::analysis
