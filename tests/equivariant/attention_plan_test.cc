#include "equivariant/attention/attention_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {
namespace {

using testing::ElementsAre;

// A path 0 - 1 - 2 in both directions and its nodes, two lists of one graph.
struct Path {
  std::vector<int64_t> edges{0, 1, 1, 0, 1, 2, 2, 1}, edge_offsets{0, 4};
  std::vector<int64_t> nodes{0, 1, 2}, node_rows{0, 3}, node_offsets{0, 3};

  graph::TupleView edge_list() const {
    return {{edges.data(), 4, 2}, edge_offsets, node_offsets, Symmetry::ordered};
  }
  graph::TupleView node_list() const {
    return {{nodes.data(), 3, 1}, node_rows, node_offsets, Symmetry::ordered};
  }
};

// The light classes of ordered pairs: every way to fill two positions with u nodes.
std::vector<LightClasses> light_of_pairs() {
  std::vector<LightClasses> light(3);
  for (int64_t nodes = 0; nodes <= 2; ++nodes) {
    for (const Partition& each : all_partitions(2 + nodes)) {
      const SplitClass parts = split(each, 2);
      if (block_count(parts.output) < nodes) continue;
      if (std::count(parts.match.begin(), parts.match.end(), -1) > 0) continue;
      light[nodes].maps.push_back({{each}, 0, 0, 0});
    }
    Partition own;
    for (int8_t n = 0; n < nodes; ++n) own.push_back(n);
    light[nodes].bias.push_back({{own}, 0, nodes, 0});
  }
  return light;
}

// {i1 j1}{i2}: an edge from the node to any other.
AttentionClass out_edges(const std::vector<LightClasses>& light) {
  const TensorKind pairs{2}, nodes{1};
  AttentionClass each;
  each.own = {{{0, 1, 0}}, 1, 0, 1};
  const auto all = [](const EquivariantClass&) { return true; };
  each.query_maps = map_weights(light[1].maps, pairs, query_blocks({0}, nodes), all);
  each.key_maps = map_weights(light[2].maps, pairs, key_blocks({0, 1}, {0, -1}, pairs), all);
  return each;
}

TEST(AttentionPlan, JoinsQueriesAndKeysAtTheNodeTheyShare) {
  const Path path;
  const auto light = light_of_pairs();
  const AttentionClass each = out_edges(light);
  EXPECT_EQ(each.query_maps.size(), 1U);
  EXPECT_EQ(each.key_maps.size(), 4U);
  const AttentionPlan plan = make_attention_plan(path.edge_list(), path.node_list(), {2}, {1},
                                                 {each}, light, /*tables=*/true,
                                                 /*same_lists=*/false);
  ASSERT_EQ(plan.parts.size(), 1U);
  const AttentionPart& part = plan.parts[0];
  EXPECT_THAT(part.key_only, ElementsAre(1));
  ASSERT_EQ(part.terms.size(), 1U);
  EXPECT_TRUE(part.terms[0].query_only.empty());
  EXPECT_TRUE(part.terms[0].extensions.empty());  // a node has no other node to coincide with
  EXPECT_THAT(part.counts, ElementsAre(1, 2, 1));
  const AttentionRelation& relation = plan.relations[part.terms[0].relation];
  EXPECT_THAT(relation.key_offsets, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(relation.keys, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(relation.queries, ElementsAre(0, 1, 2));
}

TEST(AttentionPlan, KeysSeeTheTuplesOfTheirNodes) {
  const Path path;
  const auto light = light_of_pairs();
  const AttentionPlan plan = make_attention_plan(path.edge_list(), path.node_list(), {2}, {1},
                                                 {out_edges(light)}, light, /*tables=*/false,
                                                 /*same_lists=*/false);
  const AttentionSource& keys = plan.sources[plan.parts[0].keys];
  EXPECT_EQ(keys.rows, 4);
  EXPECT_EQ(keys.columns, 2);  // (a, b) and (b, a): there are no loops in the list
  EXPECT_EQ(keys.value_column, 0);
  EXPECT_THAT(keys.nodes, ElementsAre(0, 1, 1, 2, 1, 0, 2, 1));
  // Where the list has no such tuple there is no column, so its weights are not used.
  EXPECT_THAT(plan.parts[0].key_weights, testing::SizeIs(2));
  EXPECT_TRUE(plan.parts[0].counts.empty());
}

TEST(AttentionPlan, ExtensionsExcludeWhatSharesMore) {
  // {i1 j1}{i2}{j2} of 2 -> 2: neighbours at the first node, but not the edge itself.
  const Path path;
  const auto light = light_of_pairs();
  const TensorKind pairs{2};
  AttentionClass each;
  each.own = {{{0, 1, 0, 2}}, 1, 1, 1};
  const auto all = [](const EquivariantClass&) { return true; };
  each.query_maps = map_weights(light[2].maps, pairs, query_blocks({0, 1}, pairs), all);
  each.key_maps = map_weights(light[2].maps, pairs, key_blocks({0, 1}, {0, -1}, pairs), all);
  const AttentionPlan plan = make_attention_plan(path.edge_list(), path.edge_list(), pairs, pairs,
                                                 {each}, light, /*tables=*/true,
                                                 /*same_lists=*/true);
  EXPECT_EQ(plan.sources.size(), 1U) << "one list: the same tuples are queries and keys";
  const AttentionPart& part = plan.parts[0];
  ASSERT_EQ(part.terms.size(), 1U);
  EXPECT_THAT(part.terms[0].query_only, ElementsAre(1));
  ASSERT_EQ(part.terms[0].extensions.size(), 1U);
  EXPECT_EQ(part.terms[0].extensions[0].sign, -1);
  // Edges (0 1) (1 0) (1 2) (2 1): only the two from node 1 have a neighbour.
  EXPECT_THAT(part.counts, ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace nsimplex::equivariant
