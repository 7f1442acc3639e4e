// Networks of linear equivariant layers and of messages, against figures worked out by hand.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <cmath>
#include <vector>

#include "input_error_of.h"
#include "lab/graphs/baseline_networks.h"
#include "support/tensors.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

using test::column;

void set(torch::nn::Module& module, const std::string& name, const std::vector<float>& values) {
  const at::NoGradGuard no_grad;
  Tensor parameter = module.named_parameters()[name];
  parameter.copy_(at::tensor(values).view_as(parameter));
}

void expect_close(const Tensor& got, const Tensor& expected) {
  EXPECT_TRUE(at::allclose(got, expected, 1e-5, 1e-6)) << got << "\n" << expected;
}

TupleBatch set_of(int64_t nodes, int64_t order) {
  return complete_tuples(at::tensor({nodes}, at::kLong), order);
}

// Three points 1, 2, 4 and all pairs of them.
GraphBatch points() { return {set_of(3, 1), column({1, 2, 4}), set_of(3, 2), {}}; }

TEST(TransposedRows, OfPairsInAnyOrder) {
  const TupleBatch pairs =
      tuple_batch(at::tensor({1, 2, 0, 0, 2, 1, 0, 1, 1, 0}, at::kLong).view({5, 2}), 3);
  EXPECT_TRUE(transposed_rows(pairs).equal(at::tensor({2, 1, 0, 4, 3}, at::kLong)));
  const TupleBatch half = tuple_batch(at::tensor({0, 1}, at::kLong).view({1, 2}), 2);
  EXPECT_THAT(test::input_error_of([&] { transposed_rows(half); }), HasSubstr("(j, i)"));
  EXPECT_THAT(test::input_error_of([&] { transposed_rows(set_of(2, 3)); }), HasSubstr("got 3"));
}

TEST(LoopRows, OneANode) {
  const TupleBatch pairs =
      tuple_batch(at::tensor({1, 1, 0, 1, 2, 2, 0, 0}, at::kLong).view({4, 2}), 3);
  EXPECT_TRUE(loop_rows(pairs).equal(at::tensor({3, 0, 2}, at::kLong)));
  const TupleBatch two = tuple_batch(at::tensor({1, 1, 0, 1}, at::kLong).view({2, 2}), 2);
  EXPECT_THAT(test::input_error_of([&] { loop_rows(two); }), HasSubstr("every node"));
}

TEST(GraphHead, NormThenLayersWithReLU) {
  GraphHead head(
      {.in_channels = 2, .out_channels = 1, .layers = 1, .hidden = 1, .normalised = true});
  set(head, "gain", {2, 2});
  set(head, "shift", {1, 0});
  set(head, "0.weight", {1, 1});
  set(head, "0.bias", {-0.5});
  set(head, "1.weight", {3});
  set(head, "1.bias", {1});
  // (1, 3) -> (-1, 1) -> (-1, 2): 1 - 0.5, times 3, plus 1. (3, 1) is (3, -2).
  head.eval();
  expect_close(head.forward(at::tensor({1.0F, 3.0F, 3.0F, 1.0F}).view({2, 2})),
               column({2.5F, 2.5F}));
}

TEST(LinearNetwork, SetToGraphByHand) {
  // S2G: one L_{1->1} with ReLU, then the light classes of L_{1->2}, a linear map of the rows.
  LinearNetwork network({.input = {.order = 1},
                         .output = {.order = 2},
                         .in_channels = 1,
                         .hidden = 1,
                         .layers = 1,
                         .last_classes = ClassSet::light,
                         .head = {.out_channels = 1}});
  set(network, "layer0.weight", {1, -1});  // itself, mean of the others
  set(network, "layer0.bias", {2.5});
  // 1 - 3 + 2.5, 2 - 2.5 + 2.5, 4 - 1.5 + 2.5: z = (0.5, 2, 5).
  set(network, "layer1.weight", {100, 10, 1});  // (z, z), (z, .), (., z)
  set(network, "layer1.bias", {0, 0});
  set(network, "head.0.weight", {1});
  set(network, "head.0.bias", {7});
  const std::vector<float> z{0.5, 2, 5};
  Tensor expected = at::empty({3, 3});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      expected[i][j] = 7 + (i == j ? 100 * z[static_cast<size_t>(i)]
                                   : 10 * z[static_cast<size_t>(i)] + z[static_cast<size_t>(j)]);
    }
  }
  expect_close(network.prepare(points())(), expected.view({9, 1}));
}

TEST(LinearNetwork, AllClassesSeeTheOthersAndPairsCanBeSymmetric) {
  // S2G+: the mean over the other points as well, {i1}{j1 j2} and {i1}{j1}{j2}.
  LinearNetwork network({.input = {.order = 1},
                         .output = {.order = 2},
                         .in_channels = 1,
                         .hidden = 1,
                         .layers = 0,
                         .head = {.out_channels = 1},
                         .symmetric = true});
  set(network, "layer0.weight", {0, 10, 2, 1, 100});
  set(network, "layer0.bias", {0, 0});
  set(network, "head.0.weight", {1});
  set(network, "head.0.bias", {0});
  // Off the diagonal 6 (x_i + x_j) + 100 times the third point; on it the mean of the other two.
  expect_close(network.prepare(points())(), column({3, 418, 230, 418, 2.5, 136, 230, 136, 1.5}));
}

TEST(LinearNetwork, LayersHaveReLUBetweenThem) {
  LinearNetwork network({.input = {.order = 1},
                         .output = {.order = 1},
                         .in_channels = 1,
                         .hidden = 1,
                         .layers = 2,
                         .head = {.out_channels = 1}});
  for (const char* name : {"layer0", "layer1", "layer2"}) {
    set(network, std::string(name) + ".weight", {1, 0});
    set(network, std::string(name) + ".bias", {-1.5});
  }
  set(network, "head.0.weight", {1});
  set(network, "head.0.bias", {0});
  const TupleBatch nodes = set_of(3, 1);
  expect_close(network.prepare({nodes, column({1, 2, 4}), nodes, {}})(),
               column({-1.5, -1.5, -0.5}));
}

// The path 0 - 1 - 2 with node features on loops and edge features on links.
GraphBatch path(int64_t output_order) {
  const Tensor edges = at::tensor({0, 1, 1, 2}, at::kLong).view({2, 2});
  const DerivedTuples graph = edge_tuples(edges, 3, {.loops = true});
  const TupleBatch output =
      output_order == 0 ? project_tuples(graph.batch, 0) : set_of(3, output_order);
  return {
      graph.batch, node_and_edge_features(graph, column({1, 2, 3}), column({10, 20})), output, {}};
}

TEST(MessageNetwork, NodeAndEdgeFeaturesComeFromTheirRows) {
  MessageNetwork network({.kind = MessageKind::isomorphism,
                          .node_channels = 1,
                          .edge_channels = 1,
                          .out_channels = 1,
                          .hidden = 1,
                          .layers = 1});
  network.eval();
  set(network, "layer0.first.weight", {1});
  set(network, "layer0.first.bias", {0});
  set(network, "layer0.second.weight", {1});
  set(network, "layer0.second.bias", {0});
  set(network, "layer0.edges.weight", {-0.1F});
  set(network, "last.weight", {1});
  set(network, "last.bias", {0});
  // ReLU(2 - 1) for 0; ReLU(1 - 1) + ReLU(3 - 2) for 1; ReLU(2 - 2) for 2.
  const Tensor nodes = column({2, 3, 3}) / std::sqrt(1 + 1e-5);
  expect_close(network.prepare(path(1))(), nodes);
  expect_close(network.prepare(path(0))(), nodes.mean(0, true));
}

TEST(MessageNetwork, PairsAreJudgedByAProduct) {
  MessageNetwork network({.node_channels = 1, .hidden = 4, .layers = 1, .neighbours = 0});
  set(network, "layer0.linear.weight", {1, 0, 0, 0});
  set(network, "last.weight", {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  set(network, "last.bias", {0, 1, 0, 0});
  set(network, "pair_bias", {3});
  // Without neighbours z_i = (x_i, 1): (x_i x_j + 1) / 2 + 3.
  const Tensor x = at::tensor({1.0F, 2.0F, 4.0F});
  expect_close(network.prepare(points())(), (at::outer(x, x).view({9, 1}) + 1) / 2 + 3);
}

TEST(MessageNetwork, AVirtualNodeReachesWhatMessagesDoNot) {
  for (const bool with : {false, true}) {
    at::manual_seed(1);
    MessageNetwork network(
        {.node_channels = 1, .out_channels = 1, .hidden = 8, .layers = 3, .virtual_node = with});
    const Tensor edges = at::tensor({0, 1}, at::kLong).view({1, 2});
    const TupleBatch graph = edge_tuples(edges, 4, {.loops = true}).batch;
    Tensor features = at::zeros({6, 1});
    features[0][0] = 1;
    const GraphBatch batch{graph, features, set_of(4, 1), {}};
    const Tensor before = network.prepare(batch)();
    features[0][0] = 5;  // of node 0
    const Tensor change = (network.prepare(batch)() - before).abs();
    EXPECT_GT(change[1].item<float>(), 0);
    EXPECT_EQ(change[3].item<float>() > 0, with);
  }
}

}  // namespace
}  // namespace nsimplex::training
