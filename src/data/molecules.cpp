// Reads molecules from npz files.

#include "data/molecules.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "data/observations.h"
#include "io/input_file.h"

namespace nsimplex::data {

using at::Tensor;

namespace {

// Renumbers codes, so that those of a feature that occur have numbers from 0 on, and counts them.
// Models need no channels for codes that a file lacks.
std::pair<Tensor, Tensor> number_what_occurs(std::vector<uint8_t> codes, int64_t rows,
                                             int64_t features) {
  std::vector<int64_t> counts;
  for (int64_t feature = 0; feature < features; ++feature) {
    std::array<bool, 256> occurs{};
    for (int64_t row = 0; row < rows; ++row) occurs[codes[row * features + feature]] = true;
    std::array<uint8_t, 256> number{};
    int64_t next = 0;
    for (size_t code = 0; code < occurs.size(); ++code) {
      number[code] = static_cast<uint8_t>(next);
      next += occurs[code];
    }
    for (int64_t row = 0; row < rows; ++row) {
      uint8_t& code = codes[row * features + feature];
      code = number[code];
    }
    counts.push_back(next);
  }
  return {at::tensor(codes, at::kByte).view({rows, features}), at::tensor(counts, at::kLong)};
}

// Codes [rows, features] and the number of codes of each feature that occur.
std::pair<Tensor, Tensor> read_codes(const io::Npz& npz, const std::string& name,
                                     const std::string& categories) {
  const io::Array array = npz.read(name);
  expect_dimensions(array, 2);
  const std::vector<int64_t> limits = read_integers(npz, categories);
  if (std::ssize(limits) != array.shape[1]) {
    array.fail("expected " + std::to_string(limits.size()) + " columns, as many as " + categories +
               ", got shape " + array.shape_text());
  }
  const std::vector<int64_t> values = array.integers();
  std::vector<uint8_t> codes;
  codes.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t limit = std::min<int64_t>(limits[i % limits.size()], 256);
    if (values[i] < 0 || values[i] >= limit) {
      array.fail("row " + std::to_string(i / limits.size()) + ": expected codes 0 to " +
                 std::to_string(limit - 1) + ", got " + std::to_string(values[i]));
    }
    codes.push_back(static_cast<uint8_t>(values[i]));
  }
  return number_what_occurs(std::move(codes), array.shape[0], array.shape[1]);
}

// Bonds of each molecule: different ascending pairs of its atoms, in lexicographic order.
Tensor read_bonds(const io::Npz& npz, const std::vector<int64_t>& offsets,
                  const std::vector<int64_t>& atoms, int64_t rows) {
  const io::Array array = npz.read("bonds");
  expect_dimensions(array, 2);
  expect_rows(array, rows, "row of bond_types");
  if (array.shape[1] != 2) array.fail("expected two columns, got shape " + array.shape_text());
  const std::vector<int64_t> ends = array.integers();
  for (size_t molecule = 0; molecule + 1 < offsets.size(); ++molecule) {
    const int64_t count = atoms[molecule + 1] - atoms[molecule];
    for (int64_t bond = offsets[molecule]; bond < offsets[molecule + 1]; ++bond) {
      const int64_t i = ends[2 * bond], j = ends[2 * bond + 1];
      const bool ascends = bond == offsets[molecule] || ends[2 * bond - 2] < i ||
                           (ends[2 * bond - 2] == i && ends[2 * bond - 1] < j);
      if (0 <= i && i < j && j < count && ascends) continue;
      array.fail("row " + std::to_string(bond) + ": expected ascending pairs of atoms 0 to " +
                 std::to_string(count - 1) + ", in order, got (" + std::to_string(i) + ", " +
                 std::to_string(j) + ")");
    }
  }
  return at::tensor(ends, at::kLong).view({-1, 2});
}

Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace

Molecules read_molecules(const std::string& path) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  if (!source.starts_with(io::kZipMagic)) {
    source.fail("expected the npz file of: python -m nsimplex.molecules");
  }
  const io::Npz npz(source);
  Molecules molecules;
  std::tie(molecules.atoms, molecules.atom_categories) =
      read_codes(npz, "atoms", "atom_categories");
  std::tie(molecules.bond_types, molecules.bond_categories) =
      read_codes(npz, "bond_types", "bond_categories");
  const auto atoms = read_offsets(npz, "atom_offsets", molecules.atoms.size(0), "atoms");
  const auto bonds = read_offsets(npz, "bond_offsets", molecules.bond_types.size(0), "bonds");
  const io::Array targets = npz.read("targets"), fingerprints = npz.read("fingerprints");
  expect_dimensions(targets, 1);
  if (bonds.size() != atoms.size() || targets.shape[0] + 1 != std::ssize(atoms)) {
    targets.fail("expected one number a molecule: atom_offsets has " +
                 std::to_string(atoms.size() - 1) + ", bond_offsets " +
                 std::to_string(bonds.size() - 1) + ", and these are " +
                 std::to_string(targets.shape[0]));
  }
  expect_dimensions(fingerprints, 2);
  expect_rows(fingerprints, targets.shape[0], "molecule");
  if (fingerprints.width != 1) fingerprints.fail("expected bytes");
  molecules.bonds = read_bonds(npz, bonds, atoms, molecules.bond_types.size(0));
  molecules.atom_offsets = longs(atoms);
  molecules.bond_offsets = longs(bonds);
  molecules.targets = at::tensor(finite_numbers(targets), at::kDouble);
  molecules.fingerprints =
      at::tensor(fingerprints.data, at::kByte).view({targets.shape[0], fingerprints.shape[1]});
  return molecules;
}

}  // namespace nsimplex::data
