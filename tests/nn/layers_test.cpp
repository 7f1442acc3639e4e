#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/layers.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "nn/module_checks.h"

namespace nsimplex {
namespace {

using test::error;
using test::layer_options;
using test::names;
using test::project;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

at::Tensor unit_rms(const at::Tensor& x) { return x / x.square().mean(-1, true).sqrt(); }

class Order : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(SimplicialAttention, Order, ::testing::Values(1, 2, 3));

TEST_P(Order, EqualsTheCallComposedByHand) {
  at::manual_seed(1);
  const int64_t order = GetParam();
  for (const HeadNorm norm : {HeadNorm::none, HeadNorm::qk, HeadNorm::qkv}) {
    SimplicialAttentionOptions o = layer_options(order);
    o.kv_heads = 2;
    o.head_dim = 5;
    o.norm = norm;
    o.causal = true;
    o.window = {Window::last(3)};
    SimplicialAttention layer(o);
    layer->to(at::kDouble);
    const at::Tensor x = at::randn({2, 7, 24}, at::kDouble);

    auto parts = project(layer, x);
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool value = i > static_cast<size_t>(order);
      if (norm == HeadNorm::qkv || (norm == HeadNorm::qk && !value)) parts[i] = unit_rms(parts[i]);
    }
    const at::TensorList all(parts);
    const at::Tensor heads = attention(all[0], all.slice(1, order), all.slice(1 + order),
                                       {.causal = true, .window = {Window::last(3)}})
                                 .out;
    const at::Tensor output = layer->named_parameters()["output.weight"];
    const at::Tensor expected = at::matmul(heads.permute({0, 2, 1, 3}).flatten(2), output.t());
    // The layer's normalisation adds 1e-6 under the root.
    EXPECT_LT(error(layer->forward(x), expected), norm == HeadNorm::none ? 1e-12 : 1e-4);
  }
}

TEST_P(Order, GradientsReachEveryParameter) {
  at::manual_seed(2);
  TransformerBlockOptions options;
  options.attention = layer_options(GetParam());
  options.attention.norm = HeadNorm::qkv;
  TransformerBlock block(options);
  block->forward(at::randn({2, 6, 24})).square().sum().backward();
  for (const auto& item : block->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0) << item.key();
  }
}

TEST(SimplicialAttention, ContextsHaveTheirOwnLengthWidthAndPadding) {
  at::manual_seed(3);
  SimplicialAttentionOptions o = layer_options(2);
  o.context_dims = {10, 24};
  SimplicialAttention layer(o);
  EXPECT_THAT(names(*layer),
              ElementsAre("q.weight", "kv.0.weight", "kv.1.weight", "output.weight"));
  const at::Tensor x = at::randn({2, 5, 24}), sound = at::randn({2, 9, 10});
  const at::Tensor lengths = at::tensor({4, 9, 5, 3}, at::kLong).view({2, 2});  // [N, B]
  const at::Tensor y = layer->forward(x, {sound, x}, lengths);
  EXPECT_THAT(y.sizes(), ElementsAre(2, 5, 24));

  // What lies beyond a length does not show, not even NaN; what lies before it does.
  at::Tensor padded = sound.clone();
  padded[0].slice(0, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::equal(layer->forward(x, {padded, x}, lengths)[0].isnan().any(),
                        at::scalar_tensor(false, at::kBool)));
  EXPECT_LT(error(layer->forward(x, {padded, x}, lengths), y), 1e-6);
  at::Tensor changed = sound.clone();
  changed[0][3].add_(1.0);
  EXPECT_GT(error(layer->forward(x, {changed, x}, lengths)[0], y[0]), 1e-4);
  EXPECT_EQ(error(layer->forward(x, {changed, x}, lengths)[1], y[1]), 0.0);
}

TEST(SimplicialAttention, AContextThatIsTheInputGivesSelfAttention) {
  at::manual_seed(4);
  SimplicialAttention self(layer_options(2));
  SimplicialAttentionOptions o = layer_options(2);
  o.context_dims = {24, 24};
  SimplicialAttention cross(o);
  const at::NoGradGuard no_grad;
  const auto rows = self->named_parameters()["qkv.weight"].split(24);  // q, k1, k2, v1, v2
  auto parameters = cross->named_parameters();
  parameters["q.weight"].copy_(rows[0]);
  parameters["kv.0.weight"].copy_(at::cat({rows[1], rows[3]}));
  parameters["kv.1.weight"].copy_(at::cat({rows[2], rows[4]}));
  parameters["output.weight"].copy_(self->named_parameters()["output.weight"]);
  const at::Tensor x = at::randn({2, 6, 24});
  EXPECT_LT(error(cross->forward(x, {x, x}), self->forward(x)), 1e-5);
}

// The product form of N >= 2 has no such invariance; what the layer does on request shows it.
class Rotary : public ::testing::TestWithParam<std::tuple<int64_t, Form, bool>> {};
INSTANTIATE_TEST_SUITE_P(SimplicialAttention, Rotary,
                         ::testing::Values(std::tuple(1, Form::product, true),
                                           std::tuple(1, Form::determinant, true),
                                           std::tuple(2, Form::determinant, true),
                                           std::tuple(3, Form::determinant, true),
                                           std::tuple(2, Form::product, false)));

TEST_P(Rotary, KeepsOnlyRelativePositions) {
  const auto [order, form, invariant] = GetParam();
  at::manual_seed(5);
  SimplicialAttentionOptions o = layer_options(order);
  o.head_dim = 12;
  o.form = form;
  o.rotary = true;
  o.allow_non_invariant = !invariant;
  o.window = {Window::last(3)};
  SimplicialAttention layer(o);
  layer->to(at::kDouble);
  const at::Tensor x = at::randn({1, 8, 24}, at::kDouble);
  const at::Tensor shifted = at::cat({at::randn({1, 5, 24}, at::kDouble), x}, 1);
  // From the third position on the window lies inside x, wherever x stands.
  const at::Tensor a = layer->forward(x).slice(1, 2);
  if (!invariant) {
    EXPECT_GT(error(a, layer->forward(shifted).slice(1, 7)), 1e-3);
    return;
  }
  EXPECT_LT(error(a, layer->forward(shifted).slice(1, 7)), 1e-12);

  o.rotary = false;
  SimplicialAttention plain(o);
  plain->to(at::kDouble);
  const at::NoGradGuard no_grad;
  for (auto& item : plain->named_parameters()) {
    item.value().copy_(layer->named_parameters()[item.key()]);
  }
  EXPECT_GT(error(a, plain->forward(x).slice(1, 2)), 1e-3);  // it does turn something
}

TEST(SimplicialAttention, OneLayerServesThreadsAtOnce) {
  at::manual_seed(8);
  SimplicialAttentionOptions o = layer_options(2);
  o.form = Form::determinant;
  o.rotary = o.causal = true;
  SimplicialAttention layer(o);
  std::vector<at::Tensor> inputs, results(4);
  for (const int64_t length : {3, 9, 17, 33}) inputs.push_back(at::randn({1, length, 24}));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < inputs.size(); ++i) {
    threads.emplace_back([&, i] {
      const at::NoGradGuard no_grad;  // of each thread its own
      for (int turn = 0; turn < 20; ++turn) results[i] = layer->forward(inputs[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(at::equal(results[i], layer->forward(inputs[i])));
  }
}

TEST(SimplicialAttention, RotaryTurnsPairsOfChannels) {
  // One head of two channels, q = k = x and v = x: the logit of (i, j) is |x_i| |x_j| cos(i - j +
  // angle).
  SimplicialAttentionOptions o;
  o.dim = 2;
  o.order = 1;
  o.rotary = true;
  o.scale = Scale{1.0, 1.0};
  SimplicialAttention layer(o);
  layer->to(at::kDouble);
  const at::NoGradGuard no_grad;
  const at::Tensor eye = at::eye(2, at::kDouble);
  layer->named_parameters()["qkv.weight"].copy_(at::cat({eye, eye, eye}));
  layer->named_parameters()["output.weight"].copy_(eye);
  const at::Tensor x = at::tensor({1.0, 0.0, 0.0, 2.0}, at::kDouble).view({1, 2, 2});
  const double half_pi = std::acos(0.0);
  // Query 1 is (0, 2), key 0 is (1, 0): turned by 1 and 0 they are half_pi + 1 apart.
  const double to_0 = std::exp(2.0 * std::cos(half_pi + 1.0)), to_1 = std::exp(4.0);
  const at::Tensor y = layer->forward(x)[0][1];
  EXPECT_NEAR(y[0].item<double>(), to_0 / (to_0 + to_1), 1e-12);
  EXPECT_NEAR(y[1].item<double>(), 2.0 * to_1 / (to_0 + to_1), 1e-12);
}

// Scale::unit's guarantee: with unit-RMS heads the derivative of the heads' output along directions
// of unit norm in q, every k and every v is at most 1 a coordinate direction under max-RMS norms.
// Probed through the operator on what the layer feeds it.
TEST(SimplicialAttention, UnitScaleBoundsTheSensitivityOfNormalisedHeads) {
  at::manual_seed(6);
  SimplicialAttentionOptions o = layer_options(2);
  o.norm = HeadNorm::qkv;
  o.scale = ScalePreset::unit;
  o.head_dim = 24;
  o.heads = 1;
  SimplicialAttention layer(o);
  layer->to(at::kDouble);
  {
    // The layer passes the heads' output through unchanged.
    const at::NoGradGuard no_grad;
    layer->named_parameters()["output.weight"].copy_(at::eye(24, at::kDouble));
  }
  const at::Tensor x = at::randn({1, 6, 24}, at::kDouble) * 3.0;
  const at::Tensor y = layer->forward(x);
  auto parts = project(layer, x);
  for (at::Tensor& part : parts) part = unit_rms(part);
  const Scale scale = Scale::unit(2, 24, 24, Reduce::product);
  const auto run = [&](const std::vector<at::Tensor>& p) {
    const at::TensorList all(p);
    return attention(all[0], all.slice(1, 2), all.slice(3), {.scale = scale}).out;
  };
  EXPECT_LT(error(run(parts)[0][0], y[0]), 1e-4);  // the guarantee is about what the layer computes
  const auto norm = [](const at::Tensor& t) {
    return t.square().mean(-1).sqrt().max().item<double>();
  };
  EXPECT_LE(norm(y), 1.0 + 1e-9);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (int trial = 0; trial < 20; ++trial) {
      const double h = 1e-5;
      const at::Tensor direction = unit_rms(at::randn_like(parts[i]));
      auto plus = parts, minus = parts;
      plus[i] = parts[i] + h * direction;
      minus[i] = parts[i] - h * direction;
      EXPECT_LE(norm(run(plus) - run(minus)) / (2 * h), 1.0) << "argument " << i;
    }
  }
}

TEST(TransformerBlock, IsTheSumOfItsBranches) {
  at::manual_seed(7);
  TransformerBlockOptions options;
  options.attention = layer_options(2);
  TransformerBlock block(options);
  EXPECT_THAT(names(*block), ElementsAre("attention_norm.weight", "attention.qkv.weight",
                                         "attention.output.weight", "mlp_norm.weight",
                                         "mlp.up.weight", "mlp.down.weight"));
  const at::Tensor x = at::randn({2, 6, 24});
  const auto children = block->named_children();
  const auto norm = [](const at::Tensor& t) { return unit_rms(t); };  // gains are ones
  const at::Tensor h = x + children["attention"]->as<SimplicialAttentionImpl>()->forward(norm(x));
  const auto parameters = block->named_parameters();
  const auto up = at::matmul(norm(h), parameters["mlp.up.weight"].t()).chunk(2, -1);
  const at::Tensor mlp = at::matmul(at::silu(up[0]) * up[1], parameters["mlp.down.weight"].t());
  EXPECT_LT(error(block->forward(x), h + mlp), 1e-5);
}

TEST(SimplicialAttention, AUnitLayerDividesByItsProjections) {
  for (const int64_t order : {1, 2}) {
    SimplicialAttentionOptions o = layer_options(order);
    o.causal = true;
    SimplicialAttention plain(o);
    o.unit_layer = true;
    SimplicialAttention unit(o);
    const at::NoGradGuard no_grad;
    for (auto& [name, parameter] : unit->named_parameters().pairs()) {
      parameter.copy_(plain->named_parameters()[name]);
    }
    const at::Tensor x = at::randn({2, 5, 24});
    const at::Tensor expected = plain->forward(x) / static_cast<double>(2 * order + 1);
    EXPECT_LT(error(unit->forward(x), expected), 1e-6);
    const auto cache = unit->make_cache();
    EXPECT_LT(error(unit->forward(x, *cache), expected), 1e-6);
  }
}

TEST(TransformerBlock, AmongAllTokensIsTheWholeBlock) {
  TransformerBlockOptions options;
  options.attention = layer_options(2);
  TransformerBlock block(options);
  const at::Tensor x = at::randn({2, 6, 24});
  const SelectedTokens all{at::arange(6).expand({2, 6}), std::nullopt, std::nullopt};
  EXPECT_LT(error(block->forward_selected(x, all), block->forward(x)), 1e-5);
}

TEST(FeedForward, HiddenWidthFollowsTheActivation) {
  EXPECT_EQ(FeedForward(FeedForwardOptions{.dim = 96})->options().hidden, 256);
  EXPECT_EQ(FeedForward(FeedForwardOptions{.dim = 128})->options().hidden, 344);
  FeedForward gelu(FeedForwardOptions{.dim = 12, .activation = Activation::gelu});
  EXPECT_EQ(gelu->options().hidden, 48);
  const at::Tensor x = at::randn({3, 12});
  const auto parameters = gelu->named_parameters();
  const at::Tensor expected = at::matmul(at::gelu(at::matmul(x, parameters["up.weight"].t())),
                                         parameters["down.weight"].t());
  EXPECT_LT(error(gelu->forward(x), expected), 1e-6);
}

}  // namespace
}  // namespace nsimplex
