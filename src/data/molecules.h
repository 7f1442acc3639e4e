// Declares molecules, as npz files hold them.

#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace nsimplex::data {

/// Molecules one after the other, as in the npz files of `python -m nsimplex.molecules`. Codes are
/// renumbered: those of a feature that occur in the file have numbers from 0 on.
struct Molecules {
  at::Tensor atoms;            ///< uint8 [n, a]: one code per categorical feature
  at::Tensor atom_offsets;     ///< int64 [B + 1], from 0 to n
  at::Tensor atom_categories;  ///< int64 [a]: codes of each feature
  at::Tensor bonds;            ///< int64 [E, 2]: atoms of the molecule from 0 on, ascending
  at::Tensor bond_types;       ///< uint8 [E, b]
  at::Tensor bond_offsets;     ///< int64 [B + 1], from 0 to E
  at::Tensor bond_categories;  ///< int64 [b]
  at::Tensor targets;          ///< float64 [B]
  at::Tensor fingerprints;     ///< uint8 [B, f]: 8 bits each, the first one highest

  int64_t size() const { return targets.size(0); }  ///< B
  int64_t fingerprint_bits() const { return 8 * fingerprints.size(1); }
};

/// Throws InputError, with one line that names the file and the array, if an array is missing, does
/// not fit the others or has invalid contents.
Molecules read_molecules(const std::string& path);

}  // namespace nsimplex::data
