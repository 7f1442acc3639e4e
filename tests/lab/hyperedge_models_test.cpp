#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <cmath>

#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/hyperedge_task.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// Two types: nodes 0, 1 with columns 2, 3; nodes 2, 3, of which 3 shares nothing, with column 0.
data::Cooccurrence sample() {
  return {{{0, 2, 2}, {2, 2, 1}}, {0, 2, 3, 4, 4}, {0, 1, 1, 0}, {1, 0.5F, 1, 1}};
}

TEST(NodeAutoencoder, IsTheFormulaOfDenseRows) {
  at::manual_seed(1);
  NodeAutoencoder nodes(sample(), {.channels = 8, .dropout = 0});
  const Tensor features = nodes.forward();
  const Tensor x[] = {at::tensor({1.F, 0.5F, 0.F, 1.F}).view({2, 2}),
                      at::tensor({1.F, 0.F}).view({2, 1})};
  Tensor expected_loss = at::zeros({});
  const auto parameter = [&](const char* name, int type) {
    return nodes.named_parameters()[name + std::to_string(type)];
  };
  for (int t = 0; t < 2; ++t) {
    const Tensor z = at::tanh(x[t].matmul(parameter("weight", t)) + parameter("bias", t));
    EXPECT_TRUE(features.slice(0, 2 * t, 2 * t + 2)
                    .allclose(at::layer_norm(z, {8}, parameter("gain", t), parameter("offset", t)),
                              1e-5, 1e-6));
    const Tensor guess = z.matmul(parameter("weight", t).t()) + parameter("shift", t);
    const Tensor judged = x[t] != 0;
    const Tensor error = ((guess - x[t]).square() * judged).sum(1) / judged.sum(1);
    expected_loss = expected_loss + error.masked_select(judged.any(1)).mean();
  }
  EXPECT_NEAR(nodes.reconstruction_loss().item<double>(), expected_loss.item<double>(), 1e-5);
  nodes.reconstruction_loss().backward();
  for (const char* name : {"weight", "bias", "shift"}) {
    for (int t = 0; t < 2; ++t) {
      EXPECT_GT(parameter(name, t).grad().abs().sum().item<double>(), 0) << name << t;
    }
  }
}

GraphBatch batch_of(const Tensor& tuples, const Tensor& features) {
  const TupleBatch nodes = complete_tuples(at::tensor({features.size(0)}, at::kLong), 1);
  return {nodes, features, tuple_batch(tuples, features.size(0), Symmetry::loop_free), {}};
}

TEST(HyperSagnn, JudgesTuplesOneByOne) {
  at::manual_seed(2);
  HyperSagnn model({.channels = 16, .heads = 2, .head_dim = 4});
  model.eval();
  const Tensor features = at::randn({6, 16});
  const Tensor tuples = at::tensor({0, 2, 4, 1, 3, 5, 5, 0, 1}, at::kLong).view({3, 3});
  const Tensor logits = model.prepare(batch_of(tuples, features))();
  ASSERT_EQ(logits.sizes(), (at::IntArrayRef{3, 1}));
  for (int64_t row = 0; row < 3; ++row) {
    const Tensor alone = model.prepare(batch_of(tuples.slice(0, row, row + 1), features))();
    EXPECT_NEAR(alone.item<double>(), logits[row].item<double>(), 1e-5);
  }
  // The order of a tuple's nodes does not matter, other nodes do not either.
  EXPECT_TRUE(model.prepare(batch_of(tuples.flip(1), features))().allclose(logits, 1e-4, 1e-5));
  Tensor changed = features.clone();
  changed[3].add_(1);
  const Tensor moved = model.prepare(batch_of(tuples, changed))() - logits;
  EXPECT_EQ(moved[0].item<double>(), 0);
  EXPECT_NE(moved[1].item<double>(), 0);
}

TEST(HyperSagnn, DoesNotAttendToItself) {
  // Of a pair each node hears the other alone: weights 1, whatever queries and keys are.
  at::manual_seed(3);
  HyperSagnn model({.channels = 8, .heads = 1, .head_dim = 4});
  model.eval();
  const Tensor features = at::randn({2, 8}), pair = at::tensor({0, 1}, at::kLong).view({1, 2});
  const double before = model.prepare(batch_of(pair, features))().item<double>();
  {
    const at::NoGradGuard no_grad;
    model.named_parameters()["query.weight"].normal_();
  }
  EXPECT_NEAR(model.prepare(batch_of(pair, features))().item<double>(), before, 1e-5);
}

TEST(AutoencodedNetwork, LearnsFeaturesAndNetworkTogether) {
  at::manual_seed(4);
  const auto network = std::make_shared<LinearNetwork>(
      LinearNetworkOptions{.input = {.order = 1},
                           .output = {.order = 2, .symmetry = Symmetry::loop_free},
                           .in_channels = 8,
                           .hidden = 8,
                           .layers = 1,
                           .head = {.out_channels = 1}});
  AutoencodedNetwork model(sample(), {.channels = 8}, network);
  const GraphBatch batch =
      batch_of(at::tensor({0, 2, 1, 3}, at::kLong).view({2, 2}), at::empty({4, 0}));
  const Tensor logits = model.prepare(batch)();
  EXPECT_EQ(logits.sizes(), (at::IntArrayRef{2, 1}));
  logits.sum().backward();
  for (const auto& each : model.named_parameters()) {
    if (each.key().find("shift") != std::string::npos) continue;  // of the reconstruction alone
    EXPECT_TRUE(each.value().grad().defined()) << each.key();
  }
  EXPECT_GT(model.auxiliary_loss().item<double>(), 0);
  model.eval();
  EXPECT_TRUE(model.prepare(batch)().equal(model.prepare(batch)()));
}

}  // namespace
}  // namespace nsimplex::training
