#pragma once

#include <cstdint>
#include <vector>

#include "equivariant/classes/contractions.h"

namespace nsimplex::equivariant {

/// One channel of a dense tensor [n, .., n] over the field of prime_field.h.
struct FieldTensor {
  int64_t order = 0, nodes = 0;
  std::vector<uint64_t> values;  ///< nodes^order
};

/// The dense equivariant linear layer L_{k->l} on one channel, summing, in integers modulo a prime:
///
///     y_j = sum_D w_D sum_i [(i, j) in D] x_i,
///
/// D being the diagrams, b(k + l) of them: (i, j) is in D where all positions of one block of D
/// have one node (those of two blocks may have one, too). A weight for each diagram is one for
/// each class by an invertible change of basis, so that random weights are random in both.
///
/// O(n^max(k, l)): all sums are contractions (22 for 3 -> 3), and what diagrams make of them is
/// added up on as many axes as it varies along, before it is spread out. Source: Maron et al.,
/// arXiv 1812.09902; Kim, Oh and Hong, arXiv 2110.14416, equation 1.
class FieldLayer {
 public:
  FieldLayer(int64_t inputs, int64_t outputs);

  /// `weights`: one of the field for each of diagrams().
  FieldTensor operator()(const FieldTensor& x, std::span<const uint64_t> weights) const;

  /// Random weights, given by the seed.
  std::vector<uint64_t> weights(uint64_t seed) const;

  const std::vector<Partition>& diagrams() const { return diagrams_; }

 private:
  int64_t outputs_;
  std::vector<Partition> diagrams_;
  std::map<Contraction, std::vector<ContractionUse>> contractions_;
};

}  // namespace nsimplex::equivariant
