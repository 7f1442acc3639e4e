#include "equivariant/join/tuple_join.h"

#include <gtest/gtest.h>

namespace nsimplex::equivariant {
namespace {

// Two graphs: nodes 0 1 2 and 3 4.
struct Lists {
  std::vector<int64_t> tuples{0, 1, 2, 1, 1, 1, 1, 0, 4, 3}, tuple_offsets{0, 4, 5};
  std::vector<int64_t> node_offsets{0, 3, 5};

  graph::TupleView view(Symmetry symmetry = Symmetry::ordered) const {
    return {{tuples.data(), 5, 2}, tuple_offsets, node_offsets, symmetry};
  }
};

TEST(TupleJoin, RowsByPattern) {
  const auto patterns = rows_by_pattern(Lists().view(), false);
  ASSERT_EQ(patterns.size(), 2);
  EXPECT_EQ(patterns[0].pattern, (Partition{0, 0}));
  EXPECT_EQ(patterns[0].rows, (std::vector<int64_t>{2}));
  EXPECT_EQ(patterns[0].nodes, (std::vector<int64_t>{1}));
  EXPECT_EQ(patterns[1].rows, (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(patterns[1].graphs, (std::vector<int64_t>{0, 0, 0, 1}));
}

TEST(TupleJoin, AllOrdersOfAHyperedgeComeOnceEach) {
  const auto patterns = rows_by_pattern(Lists().view(), true);
  EXPECT_EQ(patterns[0].rows, (std::vector<int64_t>{2}));
  EXPECT_EQ(patterns[1].rows, (std::vector<int64_t>{0, 0, 1, 1, 3, 3, 4, 4}));
  EXPECT_EQ(patterns[1].nodes,
            (std::vector<int64_t>{0, 1, 1, 0, 1, 2, 2, 1, 0, 1, 1, 0, 3, 4, 4, 3}));
}

TEST(TupleJoin, KnowsOneListByItsContents) {
  const Lists lists, copy;
  Lists other;
  std::swap(other.tuples[0], other.tuples[2]);
  EXPECT_TRUE(TupleJoin(lists.view(), copy.view()).one_list());
  EXPECT_FALSE(TupleJoin(lists.view(), other.view()).one_list());
  // An undirected tuple is an output once and an input in all orders.
  const auto undirected = Symmetry::undirected;
  EXPECT_FALSE(TupleJoin(lists.view(undirected), lists.view(undirected)).one_list());
}

TEST(TupleJoin, GroupsAreNeighbourLists) {
  const Lists lists;
  TupleJoin join(lists.view(), lists.view());
  const TupleGroups& by_second = join.groups(1, {1});
  EXPECT_EQ(by_second.keys, (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(by_second.offsets, (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(by_second.members, (std::vector<int64_t>{2, 0, 1, 3}));
  const TupleGroups& by_graph = join.groups(1, {});
  EXPECT_EQ(by_graph.offsets, (std::vector<int64_t>{0, 3, 4}));
}

TEST(TupleJoin, OutputsComeInGroupsToo) {
  const Lists lists;
  TupleJoin join(lists.view(), lists.view());
  const TupleGroups by_second = join.output_groups(1, {1});
  EXPECT_EQ(by_second.keys, (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(by_second.members, join.groups(1, {1}).members);
}

TEST(TupleJoin, LookupsFindTheGroupOfEveryOutput) {
  const Lists lists;
  TupleJoin join(lists.view(), lists.view());
  // Outputs (0 1) (2 1) (1 0) (4 3): edges whose second node is the output's first.
  EXPECT_EQ(join.lookup(1, {0}, 1, {1}), (std::vector<int64_t>{0, -1, 1, -1}));
  // The transposed edge: groups of both blocks are single edges (0 1) (1 0) (2 1) (4 3).
  EXPECT_EQ(join.lookup(1, {1, 0}, 1, {0, 1}), (std::vector<int64_t>{1, -1, 0, -1}));
  EXPECT_EQ(join.lookup(1, {}, 1, {}), (std::vector<int64_t>{0, 0, 0, 1}));
  // The loop is at node 1.
  EXPECT_EQ(join.lookup(1, {1}, 0, {0}), (std::vector<int64_t>{0, 0, -1, -1}));
}

TEST(TupleJoin, GroupsOfOutputsFindThoseOfInputs) {
  const Lists lists;
  TupleJoin join(lists.view(), lists.view());
  // By first node 0 1 2 4; edges end in 0 1 3.
  EXPECT_EQ(join.matches(1, {0}, 1, {1}), (std::vector<int64_t>{0, 1, -1, -1}));
  EXPECT_EQ(join.matches(1, {}, 1, {}), (std::vector<int64_t>{0, 1}));
}

TEST(TupleJoin, OtherOutputsOfTheSameInput) {
  const Lists lists;
  TupleJoin whole(lists.view(), lists.view());
  // Its loop and its edges as lists of their own, and edges in other places.
  for (const PatternRows& own : whole.inputs()) {
    TupleJoin part(whole, {own});
    ASSERT_EQ(part.outputs().size(), 1);
    EXPECT_FALSE(part.one_list());
    const size_t number = &own - whole.inputs().data();
    EXPECT_EQ(&part.groups(1, {1}), &whole.groups(1, {1}));
    EXPECT_EQ(part.lookup(0, {0}, 1, {1}), whole.lookup(number, {0}, 1, {1}));
  }
  PatternRows edge{{0, 1}, {0}, {1}, {4, 3}};
  TupleJoin other(whole, {edge});
  EXPECT_EQ(other.lookup(0, {1}, 1, {0}), (std::vector<int64_t>{-1}));
  EXPECT_EQ(other.lookup(0, {0, 1}, 1, {0, 1}), (std::vector<int64_t>{3}));
}

}  // namespace
}  // namespace nsimplex::equivariant
