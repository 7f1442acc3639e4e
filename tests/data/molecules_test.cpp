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
  EXPECT_TRUE(molecules.atom_categories.equal(numbers({3, 2})));
  EXPECT_TRUE(molecules.bond_categories.equal(numbers({2})));
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

}  // namespace
}  // namespace nsimplex::data
