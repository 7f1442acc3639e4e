#pragma once

#include <nsimplex/equivariant_classes.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "equivariant/join/tuple_join.h"
#include "equivariant/linear/sum_plan.h"
#include "graph/tuple_lists.h"

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

// What attention between two lists of tuples looks up, as numbers into flat arrays. Plain C++.

namespace nsimplex::equivariant {

/// A class that attends, and the weights of its queries and keys.
struct AttentionClass {
  EquivariantClass own;
  MapWeights query_maps, key_maps;
};

/// Columns in which few input tuples serve all rows, as x_aa does for all pairs (a, b): products
/// with these tuples are made once each, and then looked up.
struct SharedColumns {
  std::vector<int64_t> counts;   ///< input tuples of each column
  SumPlan gather;                ///< [sum of counts, 1]: those of all columns
  std::vector<int32_t> places;   ///< [rows, columns]: a number among these or -1
  std::vector<int32_t> offsets;  ///< [sum of counts + 1], the transpose:
  std::vector<int32_t> rows;     ///< the rows that see each
};

/// Tuples of one pattern as tuples of distinct nodes: what queries or keys are made for. Each sees
/// the input through light maps, one column a map: an input tuple, or none.
struct AttentionSource {
  int64_t rows = 0;
  int64_t columns = 0;       ///< that are not shared, which come first
  int64_t value_column = 0;  ///< of keys: that of the tuple itself
  SumPlan gather;            ///< [rows, columns]
  SharedColumns shared;
  std::vector<int32_t> nodes;   ///< [blocks, rows]
  std::vector<int64_t> graphs;  ///< [rows]
};

/// Queries and keys that agree on some nodes, group by group.
struct AttentionRelation {
  std::vector<int32_t> key_offsets, keys, query_offsets, queries;
};

/// Rows of one side that agree on some nodes, all rows of a pattern.
struct RowGroups {
  std::vector<int32_t> offsets, rows;
};

/// Tables that the rows of a side meet: those of several relations at once, where rows that see the
/// same group of one see the same group of the others.
struct TableMeeting {
  int64_t rows = -1;  ///< a number of RowGroups; -1: the groups of its only relation
  struct Member {
    int64_t relation = 0, sign = 0;
    int64_t groups = -1;  ///< a number of group maps, where `rows` is not -1
  };
  std::vector<Member> members;
};

/// Pairs of a relation that share nothing else. By inclusion-exclusion: the relation's, and with
/// alternating signs those of relations that share more.
struct AttentionTerm {
  int64_t relation = 0;
  std::vector<int64_t> query_only;  ///< blocks of the query
  struct Extension {
    int64_t relation = 0, sign = 0;
  };
  std::vector<Extension> extensions;
  std::vector<TableMeeting> queries_meet, keys_meet;  ///< of the relation and all extensions
};

/// One class at the outputs of one pattern.
struct AttentionPart {
  int64_t number = 0;             ///< of the class
  int64_t queries = 0, keys = 0;  ///< sources
  int64_t multiplicity = 1;       ///< orders of an undirected hyperedge beyond those in the terms
  std::vector<int64_t> key_only;  ///< blocks of the key
  std::vector<AttentionTerm> terms;
  std::vector<int64_t> query_weights, key_weights;  ///< of every column of the sources, or -1
  std::vector<int32_t> counts;  ///< [rows of queries]: keys that are met; of plans with tables
};

struct AttentionPlan {
  std::vector<AttentionSource> sources;
  std::vector<AttentionRelation> relations;
  std::vector<RowGroups> row_groups;
  std::vector<std::vector<int32_t>> group_maps;  ///< of each of RowGroups a relation's group or -1
  std::vector<AttentionPart> parts;
  std::vector<int64_t> outputs;      ///< sources, in the order of output patterns
  std::vector<int64_t> output_rows;  ///< output tuples, pattern by pattern
};

/// The light classes k -> u that queries and keys of u nodes are made of, and their bias classes.
struct LightClasses {
  std::vector<EquivariantClass> maps, bias;
};

/// The plan of the classes `classes` between two lists. `light` holds the light classes for u = 0,
/// 1, .. nodes. With `tables` the plan has extensions and counts.
AttentionPlan make_attention_plan(const graph::TupleView& input, const graph::TupleView& output,
                                  const TensorKind& input_kind, const TensorKind& output_kind,
                                  const std::vector<AttentionClass>& classes,
                                  const std::vector<LightClasses>& light, bool tables);

}  // namespace nsimplex::equivariant
