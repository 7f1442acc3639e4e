#include "data/molecules.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/array_error_of.h"
#include "data/molecule_file.h"
#include "support/tensors.h"

namespace nsimplex::data {
namespace {

using io::npy_file;
using io::raw;
using test::input_error_of;

using test::numbers;

class MoleculesFile : public testing::Test {
 protected:
  Molecules read(const test::Arrays& arrays) {
    return read_molecules(test::write_file(path_, io::zip_file(arrays, true)));
  }

  // What is said where one array is another.
  std::string error(const std::string& name, const std::string& contents) {
    test::Arrays changed = test::molecule_arrays();
    for (auto& [file, bytes] : changed) {
      if (file == name + ".npy") bytes = contents;
    }
    return test::array_error_of(path_, [&] { read(changed); });
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "molecules.npz";
};

TEST_F(MoleculesFile, IsRead) {
  const Molecules molecules = read(test::molecule_arrays());
  EXPECT_EQ(molecules.size(), 3);
  EXPECT_EQ(molecules.fingerprint_bits(), 16);
  EXPECT_EQ(atom_channels(molecules), 5);
  EXPECT_EQ(bond_channels(molecules), 2);
  EXPECT_TRUE(molecules.atom_offsets.equal(numbers({0, 3, 4, 6})));
  EXPECT_TRUE(molecules.bonds.equal(numbers({0, 1, 1, 2, 0, 1}).view({3, 2})));
  EXPECT_TRUE(molecules.targets.equal(at::tensor({1.5, -2.0, 4.0}, at::kDouble)));
}

TEST_F(MoleculesFile, HasNoChannelsForWhatDoesNotOccur) {
  test::Arrays arrays = test::molecule_arrays();
  for (auto& [name, bytes] : arrays) {
    if (name == "atom_categories.npy") bytes = npy_file("<i8", "(2,)", raw<int64_t>({119, 9}));
    if (name == "atoms.npy") {
      bytes = npy_file("|u1", "(6, 2)", raw<uint8_t>({6, 5, 8, 5, 118, 7, 6, 5, 8, 5, 6, 5}));
    }
  }
  const Molecules molecules = read(arrays);
  EXPECT_TRUE(molecules.atom_categories.equal(numbers({3, 2})));
  EXPECT_TRUE(molecules.atoms.select(1, 0).to(at::kLong).equal(numbers({0, 1, 2, 0, 1, 0})));
  EXPECT_TRUE(molecules.atoms.select(1, 1).to(at::kLong).equal(numbers({0, 0, 1, 0, 0, 0})));
}

TEST_F(MoleculesFile, IsRefusedInOneLine) {
  EXPECT_EQ(
      error("atoms", npy_file("|u1", "(6, 2)", raw<uint8_t>({0, 0, 1, 1, 2, 0, 0, 1, 1, 2, 2, 0}))),
      "atoms: row 4: expected codes 0 to 1, got 2");
  EXPECT_EQ(error("atoms", npy_file("|u1", "(6, 1)", raw<uint8_t>({0, 0, 1, 1, 2, 0}))),
            "atoms: expected 2 columns, as many as atom_categories, got shape [6, 1]");
  EXPECT_EQ(error("atom_offsets", npy_file("<i8", "(4,)", raw<int64_t>({0, 3, 4, 7}))),
            "atom_offsets: expected the number of atoms, 6, last, got 7");
  EXPECT_EQ(error("bonds", npy_file("<i4", "(3, 2)", raw<int32_t>({0, 1, 1, 3, 0, 1}))),
            "bonds: row 1: expected ascending pairs of atoms 0 to 2, in order, got (1, 3)");
  EXPECT_EQ(error("bonds", npy_file("<i4", "(3, 2)", raw<int32_t>({0, 1, 0, 1, 0, 1}))),
            "bonds: row 1: expected ascending pairs of atoms 0 to 2, in order, got (0, 1)");
  EXPECT_EQ(error("bonds", npy_file("<i4", "(2, 2)", raw<int32_t>({0, 1, 0, 2}))),
            "bonds: expected 3 rows, one for each row of bond_types, got shape [2, 2]");
  EXPECT_EQ(
      error("targets", npy_file("<f8", "(2,)", raw<double>({1, 2}))),
      "targets: expected one number a molecule: atom_offsets has 3, bond_offsets 3, and these "
      "are 2");
  EXPECT_EQ(error("targets", npy_file("<f8", "(3,)", raw<double>({1, INFINITY, 2}))),
            "targets: row 1: expected finite numbers, got inf");
  EXPECT_EQ(error("fingerprints", npy_file("<i4", "(3, 1)", raw<int32_t>({1, 2, 3}))),
            "fingerprints: expected bytes");
  test::write_file(path_, "smiles,gap");
  EXPECT_EQ(input_error_of([&] { read_molecules(path_); }),
            "cannot read " + path_ + ": expected the npz file of: python -m nsimplex.molecules");
}

TEST_F(MoleculesFile, GivesGraphsWithAtomsOnLoopsAndBondsOnPairs) {
  const Molecules molecules = read(test::molecule_arrays());
  const auto [pairs, features] = molecule_graphs(molecules, numbers({2, 1, 0}));
  check_tuples(pairs);
  EXPECT_TRUE(pairs.node_offsets.equal(numbers({0, 2, 3, 6})));
  EXPECT_TRUE(pairs.tuple_offsets.equal(numbers({0, 4, 5, 12})));
  ASSERT_EQ(features.sizes(), (at::IntArrayRef{12, 7}));
  const at::Tensor tuples = pairs.tuples;
  for (int64_t row = 0; row < 12; ++row) {
    const bool loop = tuples[row][0].equal(tuples[row][1]);
    EXPECT_EQ(features[row].slice(0, 0, 5).sum().item<float>(), loop ? 2 : 0);
    EXPECT_EQ(features[row].slice(0, 5).sum().item<float>(), loop ? 0 : 1);
  }
  // The last molecule of the batch is the first of the file: atoms (0, 0), (1, 1), (2, 0), bonds of
  // types 0 and 1.
  const auto feature = [&](int64_t i, int64_t j) {
    const at::Tensor row = ((tuples.select(1, 0) == i) & (tuples.select(1, 1) == j)).nonzero();
    EXPECT_EQ(row.numel(), 1);
    return features.index_select(0, row.flatten()).flatten();
  };
  const auto expect = [&](int64_t i, int64_t j, std::vector<float> values) {
    EXPECT_TRUE(feature(i, j).equal(at::tensor(values))) << i << ", " << j;
  };
  expect(3, 3, {1, 0, 0, 1, 0, 0, 0});
  expect(4, 4, {0, 1, 0, 0, 1, 0, 0});
  expect(5, 5, {0, 0, 1, 1, 0, 0, 0});
  expect(3, 4, {0, 0, 0, 0, 0, 1, 0});
  expect(4, 3, {0, 0, 0, 0, 0, 1, 0});
  expect(5, 4, {0, 0, 0, 0, 0, 0, 1});
}

TEST_F(MoleculesFile, SizesAreChannelsOfAtomsWhereTheyAreGiven) {
  const Molecules molecules = read(test::molecule_arrays());
  // Of 3, 1 and 2 atoms, 2, 0 and 1 bonds.
  const at::Tensor sizes = molecule_sizes(molecules);
  const float most = std::sqrt(1.5F);
  EXPECT_TRUE(
      sizes.allclose(at::tensor({most, most, -most, -most, 0.0F, 0.0F}).view({3, 2}), 1e-6));
  const auto plain = molecule_graphs(molecules, numbers({2, 0}));
  const auto [pairs, features] = molecule_graphs(molecules, numbers({2, 0}), sizes);
  ASSERT_EQ(features.sizes(), (at::IntArrayRef{11, 9}));
  EXPECT_TRUE(at::cat({features.slice(1, 0, 5), features.slice(1, 7)}, 1).equal(plain.features));
  const at::Tensor loops = pairs.tuples.select(1, 0).eq(pairs.tuples.select(1, 1));
  const at::Tensor of_graph =
      sizes.index_select(0, numbers({2, 0})).repeat_interleave(pairs.tuple_offsets.diff(), 0);
  EXPECT_TRUE(features.slice(1, 5, 7).equal(of_graph * loops.unsqueeze(1)));
}

TEST_F(MoleculesFile, SizesThatAreAllTheSameAreZero) {
  Molecules one = read(test::molecule_arrays());
  one.atom_offsets = numbers({0, 3});
  one.bond_offsets = numbers({0, 2});
  EXPECT_TRUE(molecule_sizes(one).equal(at::zeros({1, 2})));
}

}  // namespace
}  // namespace nsimplex::data
