#include "lab/graphs/set_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>

#include "data/array_error_of.h"
#include "io/samples.h"
#include "support/tensors.h"
#include "temporary_folder.h"

namespace nsimplex::data {
namespace {

using io::npy_file;
using io::raw;
using test::input_error_of;

using test::numbers;

using Arrays = std::vector<std::pair<std::string, std::string>>;

// Sets of three, none and two points.
Arrays arrays() {
  return {{"points.npy", npy_file("<f8", "(5, 2)", raw<double>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))},
          {"offsets.npy", npy_file("<i8", "(4,)", raw<int64_t>({0, 3, 3, 5}))},
          {"labels.npy", npy_file("<i4", "(5,)", raw<int32_t>({7, 2, 7, 4, 4}))},
          {"kinds.npy", npy_file("|u1", "(3,)", raw<uint8_t>({2, 0, 1}))}};
}

class LabelledSetsFile : public testing::Test {
 protected:
  LabelledSets read(const Arrays& arrays) {
    return read_labelled_sets(test::write_file(path_, io::zip_file(arrays, true)));
  }

  std::string error(size_t array, const std::string& contents) {
    Arrays changed = arrays();
    changed[array].second = contents;
    return test::array_error_of(path_, [&] { read(changed); });
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "sets.npz";
};

TEST_F(LabelledSetsFile, IsRead) {
  const LabelledSets sets = read(arrays());
  EXPECT_EQ(sets.size(), 3);
  EXPECT_TRUE(sets.points.equal(at::arange(10, at::kFloat).view({5, 2})));
  EXPECT_TRUE(sets.node_offsets.equal(numbers({0, 3, 3, 5})));
  EXPECT_TRUE(sets.labels.equal(numbers({7, 2, 7, 4, 4})));
  EXPECT_TRUE(sets.kinds.equal(numbers({2, 0, 1})));
  Arrays without = arrays();
  without.pop_back();
  EXPECT_EQ(read(without).kinds.numel(), 0);
}

TEST_F(LabelledSetsFile, IsRefusedInOneLine) {
  EXPECT_EQ(error(0, npy_file("<f8", "(4,)", raw<double>({0, 1, 2, 3}))),
            "points: expected 2 dimensions, got shape [4]");
  EXPECT_EQ(error(0, npy_file("<f8", "(5, 1)", raw<double>({0, NAN, 2, 3, 4}))),
            "points: row 1: expected finite numbers, got nan");
  EXPECT_EQ(error(1, npy_file("<i8", "(3,)", raw<int64_t>({1, 3, 5}))),
            "offsets: expected 0 first");
  EXPECT_EQ(error(1, npy_file("<i8", "(3,)", raw<int64_t>({0, 5, 3}))),
            "offsets: expected numbers that do not fall, got 3 after 5");
  EXPECT_EQ(error(1, npy_file("<i8", "(2,)", raw<int64_t>({0, 4}))),
            "offsets: expected the number of points, 5, last, got 4");
  EXPECT_EQ(error(2, npy_file("<i8", "(2,)", raw<int64_t>({0, 4}))),
            "labels: expected 5 rows, one for each point, got shape [2]");
  EXPECT_EQ(error(2, npy_file("<i8", "(5, 1)", raw<int64_t>({0, 4, 0, 0, 0}))),
            "labels: expected 1 dimension, got shape [5, 1]");
  EXPECT_EQ(error(3, npy_file("<i8", "(2,)", raw<int64_t>({0, 4}))),
            "kinds: expected 3 rows, one for each set, got shape [2]");
  EXPECT_EQ(error(3, npy_file("<i8", "(3,)", raw<int64_t>({0, 4, -1}))),
            "kinds: expected numbers from 0 on, got -1");
  Arrays without = arrays();
  without.erase(without.begin() + 2);
  EXPECT_EQ(input_error_of([&] { read(without); }),
            "cannot read " + path_ + ": expected an array \"labels\", got points, offsets, kinds");
  test::write_file(path_, "points");
  EXPECT_EQ(input_error_of([&] { read_labelled_sets(path_); }),
            "cannot read " + path_ + ": expected an npz file");
}

TEST_F(LabelledSetsFile, GivesEdgesAndSelections) {
  const LabelledSets sets = read(arrays());
  const TupleBatch edges = label_cliques(sets.labels, sets.node_offsets);
  check_tuples(edges);
  EXPECT_TRUE(edges.tuples.equal(numbers({0, 2, 3, 4}).view({2, 2})));
  EXPECT_TRUE(edges.tuple_offsets.equal(numbers({0, 1, 1, 2})));
  const LabelledSets chosen = select_sets(sets, numbers({2, 0, 1}));
  EXPECT_TRUE(chosen.node_offsets.equal(numbers({0, 2, 5, 5})));
  EXPECT_TRUE(chosen.labels.equal(numbers({4, 4, 7, 2, 7})));
  EXPECT_TRUE(chosen.kinds.equal(numbers({1, 2, 0})));
  EXPECT_TRUE(chosen.points.select(1, 0).equal(at::tensor({6.F, 8.F, 0.F, 2.F, 4.F})));
}

}  // namespace
}  // namespace nsimplex::data
