#pragma once

#include <nsimplex/equivariant_classes.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

// Queries and keys of a class are made by light layers k -> u, u the number of distinct nodes of
// the tuple they belong to: one weight for every way in which the k positions of an input tuple can
// be filled with these u nodes. Where the order of the input's positions, or of the nodes, says
// nothing, ways that differ in it alone share a weight.

namespace nsimplex::equivariant {

/// A way of filling positions with blocks, up to what makes no difference: of every block its kind
/// and which positions it fills (or how many), as a set.
using MapSignature = std::vector<std::pair<int64_t, int64_t>>;

/// What tells blocks of a tuple apart, a number each: blocks of one number may be exchanged.
using BlockKinds = std::vector<int64_t>;

/// Blocks of a key: by their place, or of an undirected input by their size and whether they are
/// shared with the query.
BlockKinds key_blocks(const Partition& pattern, const std::vector<int8_t>& match,
                      const TensorKind& input);
/// Blocks of a query: by their place, or of an undirected output by their size.
BlockKinds query_blocks(const Partition& pattern, const TensorKind& output);

/// The signature of a light class k -> u without loops, as equivariant_classes() has them.
MapSignature map_signature(const EquivariantClass& light, const TensorKind& input,
                           const BlockKinds& blocks);

/// The weights of the maps to the blocks of one side of a class: signature to number.
using MapWeights = std::map<MapSignature, int64_t>;

/// All maps, numbered as they come; of these those that `allowed` (a function of the light class).
template <class Allowed>
MapWeights map_weights(const std::vector<EquivariantClass>& light, const TensorKind& input,
                       const BlockKinds& blocks, Allowed&& allowed) {
  MapWeights weights;
  for (const EquivariantClass& each : light) {
    if (allowed(each)) {
      weights.try_emplace(map_signature(each, input, blocks), std::ssize(weights));
    }
  }
  return weights;
}

/// Whether a light class fills all positions with one block that `match` does not match: a key that
/// sees a node alone.
bool sees_one_free_node(const EquivariantClass& light, const TensorKind& input,
                        const std::vector<int8_t>& match);

}  // namespace nsimplex::equivariant
