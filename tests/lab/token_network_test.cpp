// Transformers whose attention mask is a graph, or its line graph.
#include "lab/graphs/baseline_networks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <optional>
#include <tuple>
#include <vector>

#include "lab/small_graph.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using test::graph_of;

GraphBatch together(const GraphBatch& a, const GraphBatch& b) {
  const TupleBatch both = concatenate_graphs({a.input, b.input});
  return {both, at::cat({a.features, b.features}), project_tuples(both, 0), {}};
}

// Tokens, order, and the share that a router chooses; 0: there is none.
class Tokens : public ::testing::TestWithParam<std::tuple<MessageTokens, int64_t, double>> {
 protected:
  void SetUp() override {
    at::manual_seed(1);
    path_nodes_ = at::randn({4, 2});
    path_edges_ = at::randn({2, 1});
    ring_nodes_ = at::randn({3, 2});
    ring_edges_ = at::randn({3, 1});
    const auto [tokens, order, chosen] = GetParam();
    network_ = std::make_shared<TokenNetwork>(TokenNetworkOptions{.tokens = tokens,
                                                                  .node_channels = 2,
                                                                  .edge_channels = 1,
                                                                  .hidden = 8,
                                                                  .layers = 2,
                                                                  .heads = 2,
                                                                  .order = order,
                                                                  .head = {.out_channels = 1},
                                                                  .chosen = share(chosen)});
  }
  static std::optional<double> share(double chosen) {
    return chosen > 0 ? std::optional(chosen) : std::nullopt;
  }

  Tensor out(const GraphBatch& batch) { return network_->prepare(batch)(); }

  // A path of three nodes and one alone; a triangle.
  Tensor path_nodes_, path_edges_, ring_nodes_, ring_edges_;
  std::shared_ptr<TokenNetwork> network_;
};
INSTANTIATE_TEST_SUITE_P(TokenNetwork, Tokens,
                         ::testing::Combine(::testing::Values(MessageTokens::nodes,
                                                              MessageTokens::edges),
                                            ::testing::Values(1, 2), ::testing::Values(0.0, 0.5)));

TEST_P(Tokens, GraphsOfABatchDoNotSeeEachOther) {
  const GraphBatch path = graph_of({0, 1, 1, 2}, path_nodes_, path_edges_);
  const GraphBatch ring = graph_of({0, 1, 0, 2, 1, 2}, ring_nodes_, ring_edges_);
  const Tensor both = out(together(path, ring));
  ASSERT_EQ(both.sizes(), (std::vector<int64_t>{2, 1}));
  EXPECT_TRUE(at::allclose(both, at::cat({out(path), out(ring)}), 1e-5, 1e-6));
}

TEST_P(Tokens, TheNumberingOfNodesDoesNotMatter) {
  const GraphBatch path = graph_of({0, 1, 1, 2}, path_nodes_, path_edges_);
  // Node i is now node (i + 2) % 4; edges are listed with the lower node first.
  const Tensor moved = path_nodes_.roll(2, 0);
  const GraphBatch same = graph_of({0, 3, 2, 3}, moved, path_edges_.flip(0));
  EXPECT_TRUE(at::allclose(out(same), out(path), 1e-5, 1e-6));
}

// Nothing passes between parts that no edge joins, so the mean over tokens is that of the parts'.
TEST_P(Tokens, AttentionKeepsToTheGraph) {
  if (std::get<2>(GetParam()) > 0) GTEST_SKIP() << "the router compares all tokens of a graph";
  const bool nodes = std::get<0>(GetParam()) == MessageTokens::nodes;
  const GraphBatch path = graph_of({0, 1, 1, 2}, path_nodes_, path_edges_);
  const GraphBatch ring = graph_of({0, 1, 0, 2, 1, 2}, ring_nodes_, ring_edges_);
  const GraphBatch one =
      graph_of({0, 1, 1, 2, 4, 5, 4, 6, 5, 6}, at::cat({path_nodes_, ring_nodes_}),
               at::cat({path_edges_, ring_edges_}));
  const double of_path = nodes ? 4 : 3, of_ring = 3;  // two edges and a node alone
  const Tensor expected = (of_path * out(path) + of_ring * out(ring)) / (of_path + of_ring);
  EXPECT_TRUE(at::allclose(out(one), expected, 1e-5, 1e-6)) << out(one) << expected;
  const GraphBatch joined =
      graph_of({0, 1, 1, 2, 3, 4, 4, 5, 4, 6, 5, 6}, at::cat({path_nodes_, ring_nodes_}),
               at::cat({path_edges_, at::zeros({1, 1}), ring_edges_}));
  EXPECT_FALSE(at::allclose(out(joined), expected, 1e-3, 1e-3));
}

TEST_P(Tokens, ARouterHasWeightsInEveryBlock) {
  const bool chooses = std::get<2>(GetParam()) > 0;
  const auto parameters = network_->named_parameters();
  for (const char* block : {"block0", "block1"}) {
    const std::string name = std::string(block) + ".attention.router.weight";
    EXPECT_EQ(parameters.contains(name), chooses) << name;
  }
}

TEST_P(Tokens, GradientsReachEveryParameter) {
  out(graph_of({0, 1, 1, 2}, path_nodes_, path_edges_)).sum().backward();
  for (const auto& each : network_->named_parameters()) {
    ASSERT_TRUE(each.value().grad().defined()) << each.key();
    EXPECT_GT(each.value().grad().abs().max().item<float>(), 0) << each.key();
  }
}

}  // namespace
}  // namespace nsimplex::training
