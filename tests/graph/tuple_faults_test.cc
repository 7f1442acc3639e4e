#include "graph/tuple_lists.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "graph/view_of.h"

namespace nsimplex::graph {
namespace {

std::string fault_of(const Tuples& batch) { return find_tuple_fault(batch.view()).value_or(""); }

// Two graphs, of three and of two nodes.
Tuples two_graphs() { return {{0, 1, 1, 2, 2, 2, 4, 3}, {0, 3, 4}, {0, 3, 5}}; }

TEST(TupleFaults, AProperBatchHasNone) {
  EXPECT_EQ(fault_of(two_graphs()), "");
  EXPECT_EQ(fault_of(Tuples{{}, {0}, {0}}), "");
  EXPECT_EQ(fault_of(Tuples{{}, {0, 0, 0}, {0, 0, 4}}), "");
}

TEST(TupleFaults, NamesBadOffsets) {
  Tuples batch = two_graphs();
  batch.tuple_offsets = {};
  EXPECT_EQ(fault_of(batch), "tuple_offsets: expected at least one entry, got none");
  batch.tuple_offsets = {1, 3, 4};
  EXPECT_EQ(fault_of(batch), "tuple_offsets: expected 0 first, got 1");
  batch.tuple_offsets = {0, 5, 4};
  EXPECT_EQ(fault_of(batch),
            "tuple_offsets: expected numbers that do not fall, got 4 after 5 at 2");
  batch.tuple_offsets = {0, 3, 5};
  EXPECT_EQ(fault_of(batch), "tuple_offsets: expected the number of tuples, 4, last, got 5");
  batch.tuple_offsets = {0, 4};
  EXPECT_EQ(fault_of(batch), "node_offsets: expected 2 entries as tuple_offsets has, got 3");
  batch = two_graphs();
  batch.node_offsets = {0, 5, 3};
  EXPECT_EQ(fault_of(batch), "node_offsets: expected numbers that do not fall, got 3 after 5 at 2");
}

TEST(TupleFaults, NamesMoreNodesThanMemoryHolds) {
  EXPECT_EQ(fault_of(Tuples::of(int64_t{1} << 29, {0, 1})), "");
  EXPECT_EQ(fault_of(Tuples::of((int64_t{1} << 29) + 1, {0, 1})),
            "node_offsets: expected at most 536870912 nodes, got 536870913");
}

TEST(TupleFaults, NamesANodeOfAnotherGraph) {
  Tuples batch = two_graphs();
  batch.values[6] = 2;
  EXPECT_EQ(fault_of(batch), "tuples: expected nodes 3 to 4 in graph 1, got 2 in row 3");
  batch.values[6] = 5;
  EXPECT_EQ(fault_of(batch), "tuples: expected nodes 3 to 4 in graph 1, got 5 in row 3");
  batch.values[6] = -1;
  EXPECT_EQ(fault_of(batch), "tuples: expected nodes 3 to 4 in graph 1, got -1 in row 3");
}

TEST(TupleFaults, NamesARepetition) {
  Tuples batch = two_graphs();
  batch.values = {1, 2, 0, 1, 1, 2, 4, 3};
  EXPECT_EQ(fault_of(batch), "tuples: expected every tuple once, got (1, 2) in rows 0 and 2");
  EXPECT_EQ(fault_of(Tuples{{}, {0, 1, 2}, {0, 3, 5}, 0}), "");
  EXPECT_EQ(fault_of(Tuples{{}, {0, 2, 3}, {0, 3, 5}, 0}),
            "tuples: expected the empty tuple at most once in a graph, got 2 times in graph 0");
}

TEST(TupleFaults, HoldsTuplesAgainstTheirSymmetry) {
  Tuples batch = two_graphs();
  batch.symmetry = Symmetry::loop_free;
  EXPECT_EQ(fault_of(batch),
            "tuples: expected distinct nodes in a loop-free tuple, got (2, 2) in row 2");
  batch.symmetry = Symmetry::undirected;
  EXPECT_EQ(fault_of(batch),
            "tuples: expected ascending nodes in an undirected tuple, got (4, 3) in row 3");
  batch.values = {0, 1, 1, 2, 2, 2, 3, 4};
  EXPECT_EQ(fault_of(batch), "");
  EXPECT_EQ(fault_of(Tuples{{0, 1, 0}, {0, 1}, {0, 2}, 3, Symmetry::loop_free}),
            "tuples: expected distinct nodes in a loop-free tuple, got (0, 1, 0) in row 0");
}

TEST(TupleFaults, AgreesWithTheDefinition) {
  rc::check([] {
    Tuples batch;
    batch.width = *rc::gen::inRange<int64_t>(1, 4);
    batch.symmetry =
        *rc::gen::element(Symmetry::ordered, Symmetry::loop_free, Symmetry::undirected);
    const auto rows = *rc::gen::inRange<int64_t>(0, 6);
    batch.values = *rc::gen::container<std::vector<int64_t>>(rows * batch.width,
                                                             rc::gen::inRange<int64_t>(0, 4));
    batch.tuple_offsets = {0, rows};
    batch.node_offsets = {0, 4};
    bool good = true;
    std::set<std::vector<int64_t>> seen;
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = batch.values.begin() + row * batch.width;
      const std::vector<int64_t> tuple(begin, begin + batch.width);
      good &= seen.insert(tuple).second;
      const auto distinct = std::set<int64_t>(tuple.begin(), tuple.end()).size();
      good &= batch.symmetry != Symmetry::loop_free || distinct == tuple.size();
      good &= batch.symmetry != Symmetry::undirected || std::is_sorted(tuple.begin(), tuple.end());
    }
    RC_ASSERT(fault_of(batch).empty() == good);
  });
}

}  // namespace
}  // namespace nsimplex::graph
