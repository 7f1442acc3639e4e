#include "analysis/collapse.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/analysis.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "lab/smoothing/masked_collapse.h"

namespace nsimplex::analysis {
namespace {

using at::Tensor;

class Collapse : public testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }

  static Tensor any(int64_t rows, int64_t columns, double scale = 0.3) {
    return scale * at::randn({rows, columns}, at::kDouble);
  }

  static PureHead any_head(int64_t order, int64_t channels) {
    PureHead head;
    for (int64_t m = 0; m <= order; ++m) head.keys.push_back(any(channels, channels));
    for (int64_t m = 0; m < order; ++m) head.values.push_back(any(channels, channels));
    return head;
  }
};

TEST_F(Collapse, LogitsAreTheirPartsAndAConstant) {
  for (int64_t order = 1; order <= 3; ++order) {
    const PureHead head = any_head(order, 3);
    const Tensor tokens = any(4, 3), offset = any(1, 3)[0];
    Tensor logits = tokens.matmul(head.keys[0]);  // [n, .., d], an axis more with every key
    for (int64_t m = 1; m <= order; ++m) {
      logits = logits.unsqueeze(-2) * tokens.matmul(head.keys[m]);
    }
    logits = logits.sum(-1).flatten(1);
    const SplitLogits parts = split_logits(head, tokens, offset);
    const Tensor constant = logits - parts.first - parts.remainder;
    EXPECT_LT((constant - constant[0][0]).abs().max().item<double>(), 1e-13) << order;
  }
}

TEST_F(Collapse, RemainderOfNearTokensIsNotLostInRounding) {
  const PureHead head = any_head(2, 3);
  const Tensor offset = any(1, 3)[0], residual = any(4, 3);
  const auto remainder = [&](double scale) {
    return split_logits(head, offset + scale * residual, offset).remainder / (scale * scale);
  };
  EXPECT_TRUE(at::allclose(remainder(1e-4), remainder(1e-5), 1e-3, 1e-6));
}

TEST_F(Collapse, WithoutKeysAllTokensBecomeOne) {
  for (int64_t order = 1; order <= 3; ++order) {
    PureHead head = any_head(order, 4);
    for (Tensor& keys : head.keys) keys.zero_();
    const CollapseBound bound = collapse_bound(head, any(5, 4));
    EXPECT_LT(bound.next_residual, 1e-15);
    EXPECT_EQ(bound.bound, 0);
    EXPECT_EQ(bound.gamma, 1);
    EXPECT_TRUE(bound.assumption_holds());
  }
}

// Two tokens, one channel, weights 1: E = +-r^2 with R = (r, -r), so that a row has the range 2
// r^2, and sqrt(2 r^2 * 4 r^2) over the columns' 4 r^2 is 1 / sqrt(2).
TEST_F(Collapse, GammaOfTwoTokens) {
  const Tensor one = at::ones({1, 1}, at::kDouble);
  const Tensor tokens = at::tensor({0.9, 0.3}, at::kDouble).unsqueeze(1);
  const CollapseBound bound = collapse_bound({{one, one}, {one}}, tokens);
  EXPECT_NEAR(bound.gamma, std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(bound.logit_range, 2 * 0.09, 1e-6);
  EXPECT_NEAR(bound.beta, 8, 1e-12);
  const double norm = std::sqrt(0.6 * 0.3);  // columns |r| + |r|, rows |r|
  EXPECT_NEAR(bound.residual, norm, 1e-6);
  EXPECT_NEAR(bound.bound, 4 * std::sqrt(0.5) * 8 * std::pow(norm, 3), 1e-4);
}

TEST_F(Collapse, TheoremAndLemmasHoldOfSmallTokens) {
  int64_t tested = 0;
  for (int64_t order = 1; order <= 3; ++order) {
    for (int i = 0; i < 400; ++i) {
      const PureHead head = any_head(order, 4);
      const Tensor tokens = any(4, 4, 0.5);
      const CollapseBound bound = collapse_bound(head, tokens);
      if (!bound.assumption_holds()) continue;
      ++tested;
      EXPECT_LT(bound.next_residual, bound.bound);
      const CollapseLemmas lemmas = collapse_lemmas(head, tokens, minimal_residual(tokens).offset);
      EXPECT_LT(lemmas.additive, 1e-12);
      EXPECT_LT(lemmas.row_constant, 1e-12);
      EXPECT_GT(lemmas.below, 1 - 1e-12);
      EXPECT_GT(lemmas.above, 1 - 1e-12);
      EXPECT_NEAR(lemmas.logit_range, bound.logit_range, 1e-12);
    }
  }
  EXPECT_GT(tested, 1000);
}

double at_depth(const Tensor& values, int64_t depth) { return values[depth].item<double>(); }

// One layer of one head: the corollary is the theorem.
TEST_F(Collapse, CorollaryOfOneLayerIsTheTheorem) {
  for (int64_t order = 1; order <= 2; ++order) {
    const PureHead head = any_head(order, 4);
    const Tensor tokens = any(4, 4);
    const CollapseBound one = collapse_bound(head, tokens);
    const DepthBound stack = depth_bound({{head}}, tokens);
    const auto larger = std::max(composite_norm(tokens).item<double>(), one.next_norm);
    const double grown = std::pow(larger / composite_norm(tokens).item<double>(), 2 * order - 2);
    EXPECT_NEAR(at_depth(stack.bound, 1), std::log(one.bound * grown), 1e-6);
    EXPECT_NEAR(at_depth(stack.residual, 1), std::log(one.next_residual), 1e-6);
    EXPECT_EQ(stack.logit_range, one.logit_range);
    EXPECT_EQ(stack.gamma, one.gamma);
    EXPECT_EQ(stack.beta, one.beta);
    EXPECT_EQ(at_depth(stack.norm, 1), one.next_norm);
    EXPECT_EQ(at_depth(stack.bound, 0), at_depth(stack.residual, 0));
  }
}

TEST_F(Collapse, CorollaryOfHeadsThatAreOne) {
  const PureHead head = any_head(2, 3);
  const Tensor tokens = any(4, 3);
  const DepthBound one = depth_bound({{head}, {head}}, tokens);
  PureHead half = head;
  half.values[0] = head.values[0] / 2;  // two of them are the head
  const DepthBound two = depth_bound({{half, half}, {half, half}}, tokens);
  EXPECT_NEAR(at_depth(two.residual, 2), at_depth(one.residual, 2), 1e-6);
  EXPECT_GT(at_depth(two.bound, 2), at_depth(two.residual, 2));
  // Depth 2: the factor's power is 4, and it grows by H.
  const double largest = std::max(composite_norm(half.values[0]).item<double>(),
                                  composite_norm(half.values[1]).item<double>()) /
                         std::max(composite_norm(head.values[0]).item<double>(),
                                  composite_norm(head.values[1]).item<double>());
  EXPECT_NEAR(at_depth(two.bound, 2) - at_depth(one.bound, 2), 4 * std::log(2 * largest * largest),
              1e-5);
}

TEST_F(Collapse, CorollaryRefusesHeadsThatDoNotFit) {
  const Tensor tokens = any(4, 3);
  const PureHead head = any_head(1, 3);
  EXPECT_THROW(depth_bound({}, tokens), c10::ValueError);
  EXPECT_THROW(depth_bound({{head}, {}}, tokens), c10::ValueError);
  EXPECT_THROW(depth_bound({{head}, {any_head(2, 3)}}, tokens), c10::ValueError);
  EXPECT_THROW(depth_bound({{head}}, any(4, 2)), c10::ValueError);
  PureHead narrow = head;
  narrow.values[0] = any(3, 2);
  EXPECT_THROW(depth_bound({{narrow}}, tokens), c10::ValueError);
  narrow.output = any(2, 3);
  EXPECT_EQ(depth_bound({{narrow}}, tokens).norm.size(0), 2);
}

// dX/dt = X is exp(t) X, and one step of the methods is a polynomial of the step.
TEST_F(Collapse, FlowsFollowTheirClosedForms) {
  const Tensor tokens = any(5, 3);
  const auto same = [](const Tensor& x) { return x; };
  const AttentionFlow one = attention_flow(same, tokens, 0.5, {.steps = 1});
  const double growth = 1 + 0.5 + 0.125 + 0.125 / 6 + 0.0625 / 24;
  EXPECT_TRUE(at::allclose(one.tokens, growth * tokens, 1e-14));
  const AttentionFlow euler =
      attention_flow(same, tokens, 0.5, {.steps = 2, .method = FlowMethod::euler});
  EXPECT_TRUE(at::allclose(euler.tokens, 1.5625 * tokens, 1e-14));
  EXPECT_TRUE(at::allclose(euler.times, at::tensor({0.0, 0.25, 0.5}, at::kDouble)));
  const Tensor distances = at::pdist(tokens).max() * at::tensor({1.0, 1.25, 1.5625}, at::kDouble);
  EXPECT_TRUE(at::allclose(euler.largest_distance, distances, 1e-12));
  EXPECT_TRUE(at::allclose(euler.dirichlet_energy[2], dirichlet_energy(1.5625 * tokens), 1e-12));
  const AttentionFlow unit = attention_flow(same, tokens, 1, {.steps = 3, .normalized = true});
  EXPECT_TRUE(at::allclose(unit.tokens.square().mean(-1), at::ones({5}, at::kDouble), 1e-14));
  EXPECT_THROW(attention_flow(same, tokens, 0), c10::ValueError);
  EXPECT_THROW(attention_flow(same, tokens, 1, {.steps = 0}), c10::ValueError);
  EXPECT_THROW(attention_flow([](const Tensor& x) { return x.sum(); }, tokens, 1), c10::ValueError);
}

TEST_F(Collapse, UnderAMaskIsThatOfItsTuples) {
  for (int64_t order = 1; order <= 3; ++order) {
    const PureHead head = any_head(order, 3);
    const Tensor tokens = any(5, 3);
    const KeySets all(5, {0, 1, 2, 3, 4});
    EXPECT_TRUE(at::allclose(apply(head, tokens),
                             apply(head, tokens, tuple_mask(product_mask(all, order)))));
    // The first token of a window sees itself alone.
    const Tensor seen = apply(head, tokens, tuple_mask(product_mask(window_keys(5, 2), order)));
    EXPECT_TRUE(at::allclose(seen[0], apply(head, tokens.slice(0, 0, 1))[0]));
  }
}

TEST_F(Collapse, DerivativesAreThoseOfAutograd) {
  for (int64_t order = 1; order <= 3; ++order) {
    const PureHead head = any_head(order, 3);
    const Tensor tokens = any(3, 3, 1.0).requires_grad_();
    const TokenDerivatives found = token_derivatives(head, tokens.detach());
    const Tensor sum = found.values + found.weights;
    const Tensor out = apply(head, tokens);
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t a = 0; a < 3; ++a) {
        const Tensor row = torch::autograd::grad({out[i][a]}, {tokens}, {}, true)[0];
        EXPECT_TRUE(at::allclose(sum[i].select(1, a), row, 1e-9, 1e-12)) << order;
      }
    }
    EXPECT_GT(found.weights.abs().max().item<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace nsimplex::analysis
