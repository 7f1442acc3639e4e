#pragma once

#include <cstdint>
#include <functional>

#include "equivariant/expressivity/field_layer.h"
#include "io/graph6.h"

namespace nsimplex::equivariant {

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
