#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "graph/adjacency.h"
#include "graph/any_graph.h"

namespace nsimplex::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Adjacency, HasEveryNeighbourOnce) {
  const Tuples graph = Tuples::of(5, {2, 1, 1, 2, 3, 3, 0, 2});
  const Adjacency rows = adjacency_of(graph.view());
  EXPECT_THAT(rows.offsets, ElementsAre(0, 1, 2, 4, 4, 4));
  EXPECT_THAT(rows.neighbours, ElementsAre(2, 2, 0, 1));
  EXPECT_EQ(rows.degree(2), 2);
}

TEST(Adjacency, OfHyperedgesIsWhoShareThem) {
  const Adjacency rows = adjacency_of(Tuples::of(4, {0, 1, 2, 2, 2, 3}, 3).view());
  EXPECT_THAT(rows[2], ElementsAre(0, 1, 3));
  EXPECT_THAT(rows[3], ElementsAre(2));
  EXPECT_THAT(adjacency_of(Tuples::of(3, {1}, 1).view()).offsets, ElementsAre(0, 0, 0, 0));
}

TEST(Components, AreNumberedByTheirLowestNode) {
  EXPECT_THAT(components_of(Tuples::of(6, {4, 1, 5, 0, 1, 2}).view()),
              ElementsAre(0, 1, 1, 2, 1, 0));
  EXPECT_THAT(components_of(Tuples::of(4, {3, 0, 1}, 3).view()), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(components_of(Tuples::of(0, {}).view()), IsEmpty());
}

TEST(Components, OfALongChainAreOne) {
  const auto labels = components_of(chain(100000).view());
  EXPECT_TRUE(std::ranges::all_of(labels, [](int64_t label) { return label == 0; }));
}

TEST(Cliques, AreThoseOfTheDefinition) {
  rc::check([] {
    const Tuples graph = any_graph(*rc::gen::inRange<int64_t>(0, 8));
    const int64_t nodes = graph.node_offsets.back();
    std::vector<std::vector<int64_t>> expected(4);
    for (uint64_t set = 1; set < uint64_t{1} << nodes; ++set) {
      std::vector<int64_t> members;
      for (int64_t node = 0; node < nodes; ++node) {
        if (set >> node & 1) members.push_back(node);
      }
      bool complete = members.size() <= 4;
      for (size_t a = 0; a < members.size() && complete; ++a) {
        for (size_t b = a + 1; b < members.size(); ++b) {
          bool edge = false;
          for (size_t i = 0; i < graph.values.size(); i += 2) {
            edge |= graph.values[i] == members[a] && graph.values[i + 1] == members[b];
          }
          complete &= edge;
        }
      }
      if (!complete) continue;
      auto& list = expected[members.size() - 1];
      list.insert(list.end(), members.begin(), members.end());
    }
    const auto found = cliques_of(adjacency_of(graph.view()), 4);
    RC_ASSERT(found.size() == 4u);
    for (int64_t size = 1; size <= 4; ++size) {
      const auto& values = expected[size - 1];
      const SortedRows sorted = sort_rows({values.data(), std::ssize(values) / size, size}, nodes);
      RC_ASSERT(found[size - 1].values == sorted.values);
    }
  });
}

TEST(LineGraph, JoinsEdgesThatShareANode) {
  // A triangle 0 1 2 and a tail 2 3.
  const Tuples graph = Tuples::of(4, {0, 1, 0, 2, 1, 2, 2, 3}, 2, Symmetry::undirected);
  const TupleList lines = line_graph_of(graph.view().tuples, 4);
  EXPECT_THAT(lines.values, ElementsAre(0, 1, 0, 2, 1, 2, 1, 3, 2, 3));
  EXPECT_THAT(lines.origin, ElementsAre(0, 1, 2, 2, 2));
}

TEST(LineGraph, OfAChainIsAShorterChain) {
  const Tuples lines = chain(50), shorter = chain(49);
  EXPECT_EQ(line_graph_of(lines.view().tuples, 50).values, shorter.values);
}

}  // namespace
}  // namespace nsimplex::graph
