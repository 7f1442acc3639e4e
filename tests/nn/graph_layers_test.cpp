// Message passing against figures worked out by hand, on the path 0 - 1 - 2 beside a lone node 3.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/equivariant_layers.h>
#include <nsimplex/graph.h>

#include <cmath>
#include <vector>

namespace nsimplex {
namespace {

using at::Tensor;

Tensor matrix(const std::vector<float>& values, int64_t columns) {
  return at::tensor(values).view({-1, columns});
}

GraphMessages path() {
  const Tensor edges = at::tensor({0, 1, 1, 2}, at::kLong).view({2, 2});
  return graph_messages(edge_tuples(edges, 4, {.loops = true}).batch);
}

const std::vector<float> kNodes{1, 0, 0, 2, -1, 1, 3, 3};

void set(torch::nn::Module& module, const std::string& name, const Tensor& value) {
  const at::NoGradGuard no_grad;
  module.named_parameters()[name].copy_(value);
}

void expect_near(const Tensor& got, const Tensor& expected) {
  EXPECT_TRUE(at::allclose(got, expected, 1e-5, 1e-6)) << got << "\n" << expected;
}

TEST(GraphMessages, OfPairsBothWaysAndWithoutLoops) {
  const GraphMessages ordered = path();
  EXPECT_EQ(ordered.nodes, 4);
  EXPECT_TRUE(ordered.source.equal(at::tensor({0, 1, 1, 2}, at::kLong)));
  EXPECT_TRUE(ordered.target.equal(at::tensor({1, 0, 2, 1}, at::kLong)));
  EXPECT_TRUE(ordered.rows.equal(at::tensor({1, 2, 4, 5}, at::kLong)));  // (0,0) (0,1) (1,0) ..

  const Tensor edges = at::tensor({0, 1, 1, 2}, at::kLong).view({2, 2});
  const GraphMessages undirected = graph_messages(
      edge_tuples(edges, 4, {.symmetry = Symmetry::undirected, .loops = true}).batch);
  EXPECT_TRUE(undirected.source.equal(at::tensor({0, 1, 1, 2}, at::kLong)));
  EXPECT_TRUE(undirected.target.equal(at::tensor({1, 2, 0, 1}, at::kLong)));
  EXPECT_TRUE(undirected.rows.equal(at::tensor({1, 3, 1, 3}, at::kLong)));
  EXPECT_THROW(graph_messages(complete_tuples(at::tensor({2}, at::kLong), 3)), c10::ValueError);
}

TEST(GraphMessages, OfNearestNeighboursWithinAGraph) {
  // Points 0, 1, 3, 3.5 of one graph, 3.2 of another, 5 and 7 of a third.
  const TupleBatch nodes = complete_tuples(at::tensor({4, 1, 2}, at::kLong), 1);
  const Tensor points = matrix({0, 1, 3, 3.5, 3.2F, 5, 7}, 1);
  const GraphMessages two = nearest_neighbours(nodes, points, 2);
  EXPECT_TRUE(two.target.equal(at::tensor({0, 0, 1, 1, 2, 2, 3, 3, 5, 6}, at::kLong)));
  EXPECT_TRUE(two.source.equal(at::tensor({1, 2, 0, 2, 3, 1, 2, 1, 6, 5}, at::kLong)));
  EXPECT_EQ(nearest_neighbours(nodes, points, 0).source.size(0), 0);
  EXPECT_EQ(nearest_neighbours(nodes, points, 10).source.size(0), 4 * 3 + 2);
  EXPECT_THROW(nearest_neighbours(nodes, points.slice(0, 1), 2), c10::ValueError);
  EXPECT_THROW(nearest_neighbours(nodes, points, -1), c10::ValueError);
}

TEST(GraphConvolution, WeightsByDegrees) {
  GraphConvolution layer(MessageLayerOptions{2, 1});
  set(*layer, "linear.weight", matrix({1, 2}, 2));
  set(*layer, "bias", at::tensor({0.5F}));
  // h = (1, 4, 1, 9), degrees with the node itself (2, 3, 2, 1).
  const float across = 1 / std::sqrt(6.0F);
  expect_near(layer->forward(matrix(kNodes, 2), path()),
              matrix({0.5F + 4 * across + 0.5F, 4.0F / 3 + 2 * across + 0.5F,
                      0.5F + 4 * across + 0.5F, 9.5F},
                     1));
}

TEST(GraphConvolution, FeaturesOfMessagesAreAddedBeforeTheReLU) {
  GraphConvolution layer(MessageLayerOptions{2, 1, 1});
  set(*layer, "linear.weight", matrix({1, 2}, 2));
  set(*layer, "edges.weight", matrix({2}, 1));
  // Messages 0->1, 1->0, 1->2, 2->1 with features -1, 1, -3, 0: ReLU(h + 2 e) = 0, 6, 0, 1.
  const float across = 1 / std::sqrt(6.0F);
  expect_near(layer->forward(matrix(kNodes, 2), path(), matrix({-1, 1, -3, 0}, 1)),
              matrix({0.5F + 6 * across, 4.0F / 3 + across, 0.5F, 9}, 1));
  EXPECT_THROW(layer->forward(matrix(kNodes, 2), path()), c10::ValueError);
  EXPECT_THROW(layer->forward(matrix(kNodes, 2), path(), matrix({1, 2}, 1)), c10::ValueError);
}

TEST(GraphIsomorphism, SumsThenTwoLayersAndANorm) {
  GraphIsomorphism layer(MessageLayerOptions{2, 1});
  layer->eval();  // the norm divides by sqrt(1 + eps) at first
  set(*layer, "first.weight", matrix({1, -1}, 2));
  set(*layer, "first.bias", at::tensor({2.0F}));
  set(*layer, "second.weight", matrix({3}, 1));
  set(*layer, "second.bias", at::tensor({-2.0F}));
  // Heard: (1, 2), (0, 3), (-1, 3), (3, 3); first: 1, -1, -2, 2; second: 1, -2, -2, 4.
  expect_near(layer->forward(matrix(kNodes, 2), path()),
              matrix({1, 0, 0, 4}, 1) / std::sqrt(1 + 1e-5));
}

TEST(GraphIsomorphism, FeaturesOfMessagesAreAddedBeforeTheReLU) {
  GraphIsomorphism layer(MessageLayerOptions{2, 1, 1});
  layer->eval();
  set(*layer, "edges.weight", matrix({1, 0}, 1));
  set(*layer, "first.weight", matrix({1, 1}, 2));
  set(*layer, "first.bias", at::tensor({0.0F}));
  set(*layer, "second.weight", matrix({1}, 1));
  set(*layer, "second.bias", at::tensor({0.0F}));
  // Messages 0->1, 1->0, 1->2, 2->1 with features 1, -4, 2, 5 on the first channel:
  // (2, 0), (0, 2), (2, 2), (4, 1); sums of channels with the node itself: 1 + 2, 2 + 2 + 5, 4, 6.
  expect_near(layer->forward(matrix(kNodes, 2), path(), matrix({1, -4, 2, 5}, 1)),
              matrix({3, 9, 4, 6}, 1) / std::sqrt(1 + 1e-5));
}

TEST(GraphAttention, HeadsAreSummedAndTheNodeHearsItself) {
  GraphAttention layer(MessageLayerOptions{2, 1}, 2);
  set(*layer, "linear.weight",
      matrix({1, 0, 0, 1}, 2));  // head 0 reads channel 0, head 1 channel 1
  set(*layer, "source", matrix({1, 0}, 1));
  set(*layer, "target", matrix({-2, 0}, 1));
  set(*layer, "bias", at::tensor({10.0F}));
  const auto leaky = [](double x) { return x > 0 ? x : 0.2 * x; };
  const double own[] = {1, 0, -1, 3};
  // Head 0 of node i over its neighbours; head 1 has equal weights.
  const auto head = [&](int node, const std::vector<int>& heard) {
    double sum = 0, weighted = 0;
    for (const int j : heard) {
      const double term = std::exp(leaky(own[j] - 2 * own[node]));
      sum += term;
      weighted += term * own[j];
    }
    return static_cast<float>(weighted / sum);
  };
  expect_near(layer->forward(matrix(kNodes, 2), path()),
              matrix({head(0, {0, 1}) + 11, head(1, {0, 1, 2}) + 11, head(2, {1, 2}) + 11.5F,
                      head(3, {3}) + 13},
                     1));
  // Logits of 1e4 do not overflow.
  EXPECT_TRUE(layer->forward(matrix(kNodes, 2) * 1e4, path()).isfinite().all().item<bool>());
}

TEST(VirtualNode, HearsItsGraph) {
  VirtualNode node(1);
  set(*node, "first.weight", matrix({1}, 1));
  set(*node, "first.bias", at::tensor({-1.0F}));
  set(*node, "second.weight", matrix({2}, 1));
  set(*node, "second.bias", at::tensor({1.0F}));
  const TupleBatch nodes = complete_tuples(at::tensor({2, 0, 1}, at::kLong), 1);
  const Tensor graphs = graphs_of_nodes(nodes);
  EXPECT_TRUE(graphs.equal(at::tensor({0, 0, 2}, at::kLong)));
  // Heard 4 + 1, 0 + 1, -5 + 1.
  expect_near(node->forward(matrix({1, 1, 1}, 1), matrix({1, 3, -5}, 1), graphs),
              matrix({1 + 9, 1 + 1, 1 + 1}, 1));
}

TEST(GraphLayers, DoNotDependOnTheOrderOfNodes) {
  at::manual_seed(3);
  const Tensor edges = at::tensor({0, 1, 1, 2, 2, 3, 3, 0, 0, 2}, at::kLong).view({5, 2});
  const Tensor order = at::tensor({2, 0, 4, 1, 3}, at::kLong);
  const Tensor x = at::randn({5, 3}), moved = at::empty_like(x);
  moved.index_copy_(0, order, x);
  const GraphMessages before = graph_messages(edge_tuples(edges, 5).batch);
  const GraphMessages after =
      graph_messages(edge_tuples(order.index_select(0, edges.flatten()).view({5, 2}), 5).batch);
  const MessageLayerOptions options{3, 4};
  const auto check = [&](auto layer) {
    layer->eval();
    expect_near(layer->forward(moved, after).index_select(0, order), layer->forward(x, before));
    EXPECT_THROW(layer->forward(x.slice(1, 1), before), c10::ValueError);
  };
  check(GraphConvolution(options));
  check(GraphIsomorphism(options));
  check(GraphAttention(options, 3));
}

}  // namespace
}  // namespace nsimplex
