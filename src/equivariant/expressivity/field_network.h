// Declares networks over integers modulo a prime, which tell graphs apart without rounding.

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

/// A non-linear function of the field into itself that no equation of low degree describes. Each
/// seed gives another one.
constexpr uint64_t mix(uint64_t seed, uint64_t value) { return reduce(random_bits(seed, value)); }

}  // namespace nsimplex::equivariant::field

namespace nsimplex::equivariant {

/// One channel of a dense tensor [n, .., n] over the prime field.
struct FieldTensor {
  int64_t order = 0, nodes = 0;
  std::vector<uint64_t> values;  ///< nodes^order
};

/// The dense equivariant linear layer L_{k->l} on one channel, with sums, in integers modulo a
/// prime:
///
///     y_j = sum_D w_D sum_i [(i, j) in D] x_i,
///
/// over the b(k + l) diagrams D. (i, j) is in D if all positions of each block of D have one node
/// (different blocks may have the same node). An invertible change of basis turns weights of
/// diagrams into weights of classes, so random weights are random in both.
///
/// O(n^max(k, l)). All sums are contractions (22 for 3 -> 3). Their uses by diagrams are added on
/// the axes along which they vary, before they are broadcast. Source: Maron et al., arXiv
/// 1812.09902; Kim, Oh and Hong, arXiv 2110.14416, equation 1.
class FieldLayer {
 public:
  FieldLayer(int64_t inputs, int64_t outputs);

  /// `weights`: one field element per entry of diagrams().
  FieldTensor operator()(const FieldTensor& x, std::span<const uint64_t> weights) const;

  /// Random weights, which the seed determines.
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
  uint64_t seed = 1;       ///< determines the weights
  bool products = false;   ///< layers of PPGN instead, for order 2
};

/// The output of a network for a graph. Graphs that the network cannot distinguish have equal ones.
struct Fingerprint {
  int64_t layers = 0;    ///< layers until the number of distinct rows stopped growing
  int64_t distinct = 0;  ///< distinct rows after the last layer
  uint64_t readout = 0;
  auto operator<=>(const Fingerprint&) const = default;
};

/// A network of equivariant linear layers L_{k->k}, each followed by a non-linear function of the
/// entries, and a readout L_{k->0}. Its input is the relations (neighbours, equal) of all pairs of
/// each k-tuple of nodes. It computes in integers modulo 2^61 - 1 with random weights, without
/// rounding. It adds layers, at least min_layers, until one has no more distinct rows than the
/// previous one. That layer compares the structure of the final colours.
///
/// Relabeled graphs, and graphs that the Weisfeiler-Leman test of this order cannot distinguish,
/// have the same fingerprint for all weights. Others have different fingerprints except for
/// collisions of sums with random weights. m rows have a collision with a probability of about m^2
/// / 2^62, and a wrong result also requires a collision of the readouts.
///
/// One channel is enough, because an entry of 61 random bits identifies everything that is known
/// about its tuple. A bias is not needed, because equality is an input.
///
/// With `products` a layer is that of PPGN, on the n^2 pairs alone:
///
///     X <- mix(X + w m_1(X) m_2(X)),
///
/// where m_1 and m_2 are functions of the entries, multiplied as matrices. Entry (i, j) of the
/// product is a sum over k of functions of (x_ik, x_kj), which is the folklore 2-WL test, as strong
/// as 3-WL. A layer takes O(n^3) time.
///
/// Sources: Maron et al., arXiv 1905.11136 (networks of such layers are as strong as k-WL; PPGN is
/// its "simple" model, section 6).
class FieldNetwork {
 public:
  explicit FieldNetwork(const FieldNetworkOptions& options);

  /// O(n^k log n) time per layer, or O(n^3) of PPGN, and O(n^k) memory. `between_layers`, if given, is called before
  /// every layer and may throw to stop.
  Fingerprint operator()(const io::SimpleGraph& graph,
                         const std::function<void()>& between_layers = {}) const;

 private:
  FieldTensor next(const FieldTensor& x, int64_t layer) const;

  FieldNetworkOptions options_;
  FieldLayer layer_, readout_;
};

}  // namespace nsimplex::equivariant
