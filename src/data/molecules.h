#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/graph.h>

#include <string>

namespace nsimplex::data {

/// Molecules one after the other, as the npz files of `python -m nsimplex.molecules` hold them, but
/// that codes are numbered anew: those of a feature that occur in the file, from 0 on.
struct Molecules {
  at::Tensor atoms;            ///< uint8 [n, a]: a code of each categorical feature
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

/// Throws InputError, of one line with the file and the array, where one is missing, does not fit
/// to the others or holds something else.
Molecules read_molecules(const std::string& path);

/// Some molecules as one batch of graphs: ordered pairs, both directions of every bond and the loop
/// of every atom.
struct MoleculeGraphs {
  TupleBatch pairs;
  at::Tensor features;  ///< fp32 [m, node_channels + edge_channels]: of loops the atom's, of others
                        ///< the bond's; 1 at the code of each feature, else 0
};

/// How many channels atoms and bonds have there: all codes of all features.
int64_t atom_channels(const Molecules& molecules);
int64_t bond_channels(const Molecules& molecules);

inline constexpr int64_t kSizeChannels = 2;  ///< atoms, bonds

/// How many atoms and bonds each molecule has, in standard deviations from the mean of all: fp32
/// [B, kSizeChannels].
at::Tensor molecule_sizes(const Molecules& molecules);

/// The molecules of these numbers, int64 [count], in this order. `more`, fp32 [B, c], are further
/// channels of atoms after those of their codes, one row for all atoms of a molecule.
MoleculeGraphs molecule_graphs(const Molecules& molecules, const at::Tensor& numbers,
                               const at::Tensor& more = {});

}  // namespace nsimplex::data
