// Edges as tokens, against graphs worked out by hand and against other numberings of the same
// graph.
#include "lab/graphs/baseline_networks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include <set>
#include <vector>

#include "input_error_of.h"
#include "lab/small_graph.h"
#include "support/tensors.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

using test::column;
using test::graph_of;

TEST(LineTokens, OfAPathAndANodeAlone) {
  // 0 - 1 - 2 and 3.
  const GraphBatch path = graph_of({0, 1, 1, 2}, column({1, 2, 3, 4}), column({10, 20}));
  const LineTokens line = line_tokens(path.input, path.features, 1);
  EXPECT_TRUE(line.features.equal(
      at::tensor({1.0F, 2.0F, 10.0F, 2.0F, 3.0F, 20.0F, 4.0F, 4.0F, 0.0F,   // lower node first
                  2.0F, 1.0F, 10.0F, 3.0F, 2.0F, 20.0F, 4.0F, 4.0F, 0.0F})  // higher node first
          .view({2, 3, 3})))
      << line.features;
  EXPECT_EQ(line.messages.nodes, 3);
  EXPECT_TRUE(line.messages.source.equal(at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(line.messages.target.equal(at::tensor({1, 0}, at::kLong)));
  EXPECT_TRUE(line.shared.equal(column({2, 2})));  // node 1
  EXPECT_TRUE(line.graphs.equal(at::zeros({3}, at::kLong)));
}

TEST(LineTokens, EveryTwoEdgesOfANodeHearEachOther) {
  const GraphBatch star = graph_of({0, 1, 0, 2, 0, 3}, column({5, 6, 7, 8}), column({1, 2, 3}));
  const LineTokens line = line_tokens(star.input, star.features, 1);
  std::set<std::pair<int64_t, int64_t>> heard;
  for (int64_t m = 0; m < line.messages.source.size(0); ++m) {
    heard.emplace(line.messages.source[m].item<int64_t>(), line.messages.target[m].item<int64_t>());
  }
  EXPECT_EQ(heard.size(), 6);
  EXPECT_EQ(line.messages.source.size(0), 6);
  EXPECT_TRUE(line.shared.equal(at::full({6, 1}, 5.0F)));
}

TEST(LineTokens, ListsWithoutLoopsAreRefused) {
  const DerivedTuples graph = edge_tuples(at::tensor({0, 1}, at::kLong).view({1, 2}), 2, {});
  EXPECT_THAT(test::input_error_of([&] { line_tokens(graph.batch, at::ones({2, 2}), 1); }),
              HasSubstr("loop"));
}

class EdgesAsTokens : public ::testing::TestWithParam<MessageKind> {
 protected:
  std::shared_ptr<MessageNetwork> network() const {
    at::manual_seed(1);
    const auto made =
        std::make_shared<MessageNetwork>(MessageNetworkOptions{.kind = GetParam(),
                                                               .tokens = MessageTokens::edges,
                                                               .node_channels = 1,
                                                               .edge_channels = 1,
                                                               .out_channels = 1,
                                                               .hidden = 8,
                                                               .layers = 2,
                                                               .virtual_node = true});
    made->eval();
    return made;
  }
};

TEST_P(EdgesAsTokens, DoNotDependOnHowNodesAreNumbered) {
  const auto model = network();
  // A square with a tail; node 0, 1, 2, 3, 4 of the first is 3, 4, 1, 2, 0 of the second.
  const Tensor edges = column({1, 2, 3, 4, 5});
  const Tensor one =
      model->prepare(graph_of({0, 1, 1, 2, 2, 3, 0, 3, 3, 4}, column({1, 2, 3, 4, 5}), edges))();
  const Tensor other =
      model->prepare(graph_of({3, 4, 1, 4, 1, 2, 2, 3, 0, 2}, column({5, 3, 4, 1, 2}), edges))();
  EXPECT_TRUE(at::allclose(one, other, 1e-4, 1e-5)) << one << "\n" << other;
  EXPECT_GT(one.abs().item<float>(), 0);
}

TEST_P(EdgesAsTokens, EveryFeatureCounts) {
  const auto model = network();
  const auto answer = [&](std::vector<float> nodes, std::vector<float> edges) {
    return model->prepare(graph_of({0, 1, 1, 2}, column(nodes), column(edges)))().item<float>();
  };
  const float before = answer({1, 2, 3, 4}, {1, 2});
  for (int place = 0; place < 4; ++place) {
    std::vector<float> nodes{1, 2, 3, 4};
    nodes[place] += 2;
    EXPECT_NE(answer(nodes, {1, 2}), before) << "node " << place;
  }
  EXPECT_NE(answer({1, 2, 3, 4}, {3, 2}), before);
}

TEST_P(EdgesAsTokens, AnswerForWholeGraphsAlone) {
  GraphBatch batch = graph_of({0, 1}, column({1, 2}), column({1}));
  batch.output = complete_tuples(at::tensor({2}, at::kLong), 1);
  EXPECT_THAT(test::input_error_of([&] { network()->prepare(batch); }), HasSubstr("whole graphs"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EdgesAsTokens,
                         ::testing::Values(MessageKind::convolution, MessageKind::isomorphism,
                                           MessageKind::attention));

}  // namespace
}  // namespace nsimplex::training
