#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "equivariant/classes/partitions.h"
#include "io/graph_formats.h"
#include "support/random.h"

// Integers modulo the Mersenne prime 2^61 - 1, in [0, kPrime).

namespace nsimplex::equivariant::field {

inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

constexpr uint64_t reduce(uint64_t value) {
  const uint64_t folded = (value & kPrime) + (value >> 61);
  return folded >= kPrime ? folded - kPrime : folded;
}

constexpr uint64_t add(uint64_t a, uint64_t b) { return reduce(a + b); }

constexpr uint64_t multiply(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return reduce((static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61));
}

/// A non-linear function of the field into itself that no equation of low degree describes: one of
/// as many as there are seeds.
constexpr uint64_t mix(uint64_t seed, uint64_t value) { return reduce(random_bits(seed, value)); }

}  // namespace nsimplex::equivariant::field

namespace nsimplex::equivariant {

/// One channel of a dense tensor [n, .., n] over the prime field.
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

struct FieldNetworkOptions {
  int64_t order = 3;       ///< k: tuples are all of [n]^k; 2 or 3
  int64_t min_layers = 5;  ///< 1 or more
  uint64_t seed = 1;       ///< of the weights
};

/// What a network says of a graph. Graphs that the network takes for the same have equal ones.
struct Fingerprint {
  int64_t layers = 0;    ///< until the number of distinct rows stopped growing
  int64_t distinct = 0;  ///< rows behind the last layer
  uint64_t readout = 0;
  auto operator<=>(const Fingerprint&) const = default;
};

/// A network of equivariant linear layers L_{k->k}, each followed by a non-linear function of the
/// entries, and a readout L_{k->0}, on the relations (neighbours, equal) of all pairs of each
/// k-tuple of nodes, computed in integers modulo 2^61 - 1 with random weights: nothing is rounded.
/// Layers follow, min_layers at least, until one has no more distinct rows than the one before; it
/// is the one that compares the structure of what has settled.
///
/// Relabeled graphs, and all that Weisfeiler-Leman tests of the order take for the same, have the
/// same fingerprint, whatever the weights. Others have different ones but for collisions of sums
/// with random weights: m rows have one with a probability of about m^2 / 2^62, and a collision
/// of rows still has to meet one of readouts.
///
/// One channel is enough, since an entry of 61 random bits is a name for all that is known of its
/// tuple; a bias is not needed, since equality is an input.
///
/// Sources: Maron et al., arXiv 1905.11136 (networks of such layers are as strong as k-WL).
class FieldNetwork {
 public:
  explicit FieldNetwork(const FieldNetworkOptions& options);

  /// O(n^k log n) time a layer and O(n^k) memory. `between_layers`, where given, is called before
  /// every layer, to stop by an exception.
  Fingerprint operator()(const io::SimpleGraph& graph,
                         const std::function<void()>& between_layers = {}) const;

 private:
  FieldNetworkOptions options_;
  FieldLayer layer_, readout_;
};

}  // namespace nsimplex::equivariant
