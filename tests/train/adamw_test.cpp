#include "train/optimizer.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <nsimplex/language_model.h>

#include <cmath>
#include <map>

#include "train/stored_state.h"

namespace nsimplex::training {
namespace {

TEST(AdamW, DecayGroupsOfALanguageModel) {
  LanguageModelOptions options;
  options.tied = false;
  std::map<std::string, bool> decayed;
  for (const auto& each : named_parameters(*LanguageModel(options))) {
    decayed[each.name] = decays(each.name, each.tensor);
  }
  EXPECT_FALSE(decayed.at("embedding.weight"));
  EXPECT_FALSE(decayed.at("norm.weight"));
  EXPECT_FALSE(decayed.at("blocks.0.attention_norm.weight"));
  EXPECT_TRUE(decayed.at("blocks.0.attention.qkv.weight"));
  EXPECT_TRUE(decayed.at("blocks.3.attention.output.weight"));
  EXPECT_TRUE(decayed.at("blocks.3.mlp.up.weight"));
  EXPECT_TRUE(decayed.at("head.weight"));
}

// The update written out, in double: Algorithm 2 of the paper.
struct Plain {
  at::Tensor weight, mean, variance;
  void step(const at::Tensor& gradient, int t, double lr, double decay, const AdamWOptions& o) {
    weight = weight * (1 - lr * decay);
    mean = mean * o.beta1 + gradient * (1 - o.beta1);
    variance = variance * o.beta2 + gradient * gradient * (1 - o.beta2);
    const at::Tensor mean_hat = mean / (1 - std::pow(o.beta1, t));
    const at::Tensor variance_hat = variance / (1 - std::pow(o.beta2, t));
    weight = weight - mean_hat / (variance_hat.sqrt() + o.eps) * lr;
  }
};

TEST(AdamW, UpdatesAsThePaperSays) {
  const AdamWOptions options{.weight_decay = 0.3};
  at::Tensor matrix = at::randn({5, 7}).requires_grad_(), bias = at::randn({7}).requires_grad_();
  AdamW optimizer({{"matrix", matrix}, {"bias", bias}}, options);
  const auto plain = [](const at::Tensor& x) {
    const at::Tensor zeros = at::zeros(x.sizes(), at::kDouble);
    return Plain{x.detach().to(at::kDouble), zeros, zeros};
  };
  Plain plain_matrix = plain(matrix), plain_bias = plain(bias);
  for (int t = 1; t <= 20; ++t) {
    const double lr = 0.01 * t, divisor = t % 3 == 0 ? 2.5 : 1.0;
    const at::Tensor g = at::randn({5, 7}), h = at::randn({7});
    matrix.mutable_grad() = g.clone();
    bias.mutable_grad() = h.clone();
    optimizer.step(lr, divisor);
    plain_matrix.step(g.to(at::kDouble) / divisor, t, lr, 0.3, options);
    plain_bias.step(h.to(at::kDouble) / divisor, t, lr, 0.0, options);
  }
  EXPECT_TRUE(at::allclose(matrix.to(at::kDouble), plain_matrix.weight, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(bias.to(at::kDouble), plain_bias.weight, 1e-5, 1e-6));
}

TEST(AdamW, NormOfAllGradients) {
  at::Tensor a = at::zeros({2, 2}).requires_grad_(), b = at::zeros({3}).requires_grad_();
  AdamW optimizer({{"a", a}, {"b", b}}, {});
  EXPECT_EQ(optimizer.gradient_norm(), 0.0);
  a.mutable_grad() = at::full({2, 2}, 2.0);
  b.mutable_grad() = at::full({3}, 3.0);
  EXPECT_NEAR(optimizer.gradient_norm(), std::sqrt(4 * 4 + 3 * 9), 1e-6);
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
  EXPECT_EQ(optimizer.gradient_norm(), 0.0);
}

TEST(AdamW, AParameterWithoutGradientStays) {
  at::Tensor a = at::ones({2, 2}).requires_grad_(), b = at::ones({2, 2}).requires_grad_();
  AdamW optimizer({{"a", a}, {"b", b}}, {});
  a.mutable_grad() = at::ones({2, 2});
  optimizer.step(0.1);
  EXPECT_TRUE(at::equal(b, at::ones({2, 2})));
  EXPECT_FALSE(at::equal(a, at::ones({2, 2})));
}

// State moved into a second optimiser continues with the same bits.
TEST(AdamW, StateIsAllThatItNeeds) {
  at::Tensor a = at::randn({4, 4}).requires_grad_();
  AdamW first({{"a", a}}, {});
  const auto step = [](AdamW& optimizer, at::Tensor& x, double scale) {
    x.mutable_grad() = x.detach() * scale;
    optimizer.step(0.1);
  };
  step(first, a, 1.0);
  at::Tensor b = a.detach().clone().requires_grad_();
  AdamW second({{"a", b}}, {});
  copy_into(second.state(), first.state(), "state");
  step(first, a, -2.0);
  step(second, b, -2.0);
  EXPECT_TRUE(at::equal(a, b));
}

}  // namespace
}  // namespace nsimplex::training
