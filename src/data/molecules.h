// Declares molecules, as npz files hold them, and their graph batches.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/graph.h>

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

/// Some molecules as one batch of graphs: ordered pairs, with both directions of every bond and the
/// loop of every atom.
struct MoleculeGraphs {
  TupleBatch pairs;
  /// fp32 [m, node_channels + edge_channels]: for loops the atom's, for others the bond's; 1 at the
  /// code of each feature, else 0
  at::Tensor features;
};

/// The number of channels of atoms and bonds there: all codes of all features.
int64_t atom_channels(const Molecules& molecules);
int64_t bond_channels(const Molecules& molecules);

inline constexpr int64_t kSizeChannels = 2;  ///< atoms, bonds

/// The number of atoms and bonds of each molecule, in standard deviations from the mean of all:
/// fp32 [B, kSizeChannels].
at::Tensor molecule_sizes(const Molecules& molecules);

/// The molecules with these numbers, int64 [count], in this order. `more`, fp32 [B, c], are further
/// channels of atoms after those of their codes, one row for all atoms of a molecule.
MoleculeGraphs molecule_graphs(const Molecules& molecules, const at::Tensor& numbers,
                               const at::Tensor& more = {});

}  // namespace nsimplex::data
