#include "equivariant/attention/equivariant_attention_classes.h"

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
                                                 {each}, light, /*tables=*/true);
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
                                                 {out_edges(light)}, light, /*tables=*/false);
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
                                                 {each}, light, /*tables=*/true);
  EXPECT_EQ(plan.sources.size(), 1U) << "one list: the same tuples are queries and keys";
  const AttentionPart& part = plan.parts[0];
  ASSERT_EQ(part.terms.size(), 1U);
  EXPECT_THAT(part.terms[0].query_only, ElementsAre(1));
  ASSERT_EQ(part.terms[0].extensions.size(), 1U);
  EXPECT_EQ(part.terms[0].extensions[0].sign, -1);
  // Edges (0 1) (1 0) (1 2) (2 1): only the two from node 1 have a neighbour.
  EXPECT_THAT(part.counts, ElementsAre(0, 1, 1, 0));
}

// All pairs of three nodes, and their loops.
struct Triangle {
  std::vector<int64_t> pairs{0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2, 2, 0, 2, 1, 2, 2};
  std::vector<int64_t> offsets{0, 9}, node_offsets{0, 3};

  graph::TupleView list() const {
    return {{pairs.data(), 9, 2}, offsets, node_offsets, Symmetry::ordered};
  }
};

// {i1}{i2}{j1}{j2}: pairs that share no node with the query.
AttentionPlan plan_of_strangers(const graph::TupleView& list) {
  const auto light = light_of_pairs();
  const TensorKind pairs{2};
  AttentionClass each;
  each.own = {{{0, 1, 2, 3}}, 2, 2, 0};
  const auto all = [](const EquivariantClass&) { return true; };
  each.query_maps = map_weights(light[2].maps, pairs, query_blocks({0, 1}, pairs), all);
  each.key_maps = map_weights(light[2].maps, pairs, key_blocks({0, 1}, {-1, -1}, pairs), all);
  return make_attention_plan(list, list, pairs, pairs, {each}, light, /*tables=*/true);
}

TEST(AttentionPlan, LoopsSharedByPairsAreColumnsOfTheirOwn) {
  const Triangle triangle;
  const AttentionPlan plan = plan_of_strangers(triangle.list());
  const AttentionSource& keys = plan.sources[plan.parts[0].keys];
  EXPECT_EQ(keys.rows, 6);
  EXPECT_EQ(keys.columns, 2);  // (a, b) and (b, a)
  EXPECT_THAT(keys.gather.lookups, ElementsAre(1, 3, 2, 6, 3, 1, 5, 7, 6, 2, 7, 5));
  // (a, a) and (b, b): three loops each, seen by the pairs (0 1) (0 2) (1 0) (1 2) (2 0) (2 1).
  EXPECT_THAT(keys.shared.counts, ElementsAre(3, 3));
  EXPECT_THAT(keys.shared.gather.lookups, ElementsAre(0, 4, 8, 4, 8, 0));
  EXPECT_THAT(keys.shared.places, ElementsAre(0, 3, 0, 4, 1, 5, 1, 4, 2, 5, 2, 3));
  EXPECT_THAT(keys.shared.offsets, ElementsAre(0, 2, 4, 6, 8, 10, 12));
  EXPECT_THAT(keys.shared.rows, ElementsAre(0, 1, 2, 3, 4, 5, 0, 5, 1, 3, 2, 4));
}

TEST(AttentionPlan, TablesThatTheSameRowsMeetAreMetAtOnce) {
  const Triangle triangle;
  const AttentionPlan plan = plan_of_strangers(triangle.list());
  const AttentionTerm& term = plan.parts[0].terms[0];
  EXPECT_EQ(term.extensions.size(), 6U);
  for (const auto& meetings : {term.queries_meet, term.keys_meet}) {
    // All pairs; those at the first node and those at the second, two tables each; two single
    // pairs.
    ASSERT_EQ(meetings.size(), 5U);
    int64_t members = 0;
    for (const TableMeeting& each : meetings) {
      members += std::ssize(each.members);
      EXPECT_EQ(each.rows >= 0, each.members.size() == 2U);
      for (const auto& member : each.members) {
        if (each.rows < 0) continue;
        EXPECT_EQ(member.sign, -1);
        EXPECT_THAT(plan.group_maps[member.groups], ElementsAre(0, 1, 2));
      }
    }
    EXPECT_EQ(members, 7);
  }
  ASSERT_EQ(plan.row_groups.size(), 4U);
  EXPECT_THAT(plan.row_groups[1].offsets, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(plan.row_groups[1].rows, ElementsAre(2, 4, 0, 5, 1, 3));
}

}  // namespace
}  // namespace nsimplex::equivariant
