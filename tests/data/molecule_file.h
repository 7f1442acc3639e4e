#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/samples.h"
#include "temporary_folder.h"

namespace nsimplex::test {

using Arrays = std::vector<std::pair<std::string, std::string>>;

/// The arrays of three molecules, a chain of three atoms, a single one, a pair: atoms have features
/// of 3 and of 2 codes, bonds one of 2; two bytes of fingerprint.
inline Arrays molecule_arrays() {
  using io::npy_file;
  using io::raw;
  return {
      {"atoms.npy", npy_file("|u1", "(6, 2)", raw<uint8_t>({0, 0, 1, 1, 2, 0, 0, 1, 1, 0, 2, 1}))},
      {"atom_offsets.npy", npy_file("<i8", "(4,)", raw<int64_t>({0, 3, 4, 6}))},
      {"atom_categories.npy", npy_file("<i8", "(2,)", raw<int64_t>({3, 2}))},
      {"bonds.npy", npy_file("<i4", "(3, 2)", raw<int32_t>({0, 1, 1, 2, 0, 1}))},
      {"bond_types.npy", npy_file("|u1", "(3, 1)", raw<uint8_t>({0, 1, 1}))},
      {"bond_offsets.npy", npy_file("<i8", "(4,)", raw<int64_t>({0, 2, 2, 3}))},
      {"bond_categories.npy", npy_file("<i8", "(1,)", raw<int64_t>({2}))},
      {"targets.npy", npy_file("<f8", "(3,)", raw<double>({1.5, -2, 4}))},
      {"fingerprints.npy", npy_file("|u1", "(3, 2)", raw<uint8_t>({128, 1, 0, 0, 255, 0}))},
  };
}

}  // namespace nsimplex::test
