// Declares the task of predicting one number per molecule.

#pragma once

#include <array>
#include <memory>

#include "data/molecules.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_task.h"

namespace nsimplex::training {

/// Some molecules as one batch of graphs: ordered pairs, with both directions of every bond and the
/// loop of every atom.
struct MoleculeGraphs {
  TupleBatch pairs;
  /// fp32 [m, node_channels + edge_channels]: for loops the atom's, for others the bond's; 1 at the
  /// code of each feature, else 0
  at::Tensor features;
};

/// The number of channels of atoms and bonds there: all codes of all features.
int64_t atom_channels(const data::Molecules& molecules);
int64_t bond_channels(const data::Molecules& molecules);

inline constexpr int64_t kSizeChannels = 2;  ///< atoms, bonds

/// The number of atoms and bonds of each molecule, in standard deviations from the mean of all:
/// fp32 [B, kSizeChannels].
at::Tensor molecule_sizes(const data::Molecules& molecules);

/// The molecules with these numbers, int64 [count], in this order. `more`, fp32 [B, c], are further
/// channels of atoms after those of their codes, one row for all atoms of a molecule.
MoleculeGraphs molecule_graphs(const data::Molecules& molecules, const at::Tensor& numbers,
                               const at::Tensor& more = {});

struct MoleculeSplits {
  double validation = 0.1, test = 0.1;  ///< shares of the molecules
  int64_t most = 0;                     ///< number of molecules drawn from the file; 0: all
};

/// Predicts one number per molecule. Input: pairs of atoms, with both directions of every bond and
/// all loops, and the features of molecule_graphs(). With `sizes`, atoms also have the features of
/// molecule_sizes(). Output: one row per molecule. The splits have a separate seed, which is
/// the same for every training seed.
///
/// Targets [B, 2]: (y - mean) / deviation over the training split, and the number of the molecule.
/// The loss is the mean absolute difference of the first.
class MoleculeTask : public GraphTask {
 public:
  /// Throws InputError if a split would be empty.
  MoleculeTask(std::shared_ptr<const data::Molecules> molecules, const MoleculeSplits& splits,
               uint64_t split_seed, bool sizes = false);

  int64_t size(GraphSplit split) const override;
  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator& generator) override;
  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override;

  /// Metric: mae, in the units of the file.
  std::unique_ptr<GraphScorer> scorer() const override;
  bool higher_is_better() const override { return false; }

  /// The median of the training split as a constant prediction.
  std::vector<std::pair<std::string, Scores>> references() const override;

 private:
  std::shared_ptr<const data::Molecules> molecules_;
  at::Tensor sizes_;                   // if they are features
  std::array<at::Tensor, 3> numbers_;  // per split
  double mean_ = 0.0, deviation_ = 1.0;
};

/// An MLP on Morgan fingerprints, which the second column of the targets selects. It does not read
/// the graphs.
class FingerprintNetwork : public GraphModel {
 public:
  /// `head` has as many in_channels as fingerprints have bits; the constructor sets them.
  FingerprintNetwork(std::shared_ptr<const data::Molecules> molecules, GraphHeadOptions head);
  Forward prepare(const GraphBatch& batch) override;

 private:
  std::shared_ptr<const data::Molecules> molecules_;
  std::shared_ptr<GraphHead> head_;
};

}  // namespace nsimplex::training
