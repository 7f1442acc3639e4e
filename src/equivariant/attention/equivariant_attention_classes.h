// Declares the plan of attention between two tuple lists, and how classes share weights.

#pragma once

#include <nsimplex/equivariant_classes.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "equivariant/join/tuple_join.h"
#include "equivariant/linear/sum_plan.h"
#include "graph/tuple_lists.h"

// Queries and keys of a class are made by light layers k -> u, where u is the number of distinct
// nodes of the tuple to which they belong. There is one weight per way of filling the k positions
// of an input tuple with these u nodes. Ways that differ only in an order without meaning (of the
// input's positions, or of the nodes) share a weight.

namespace nsimplex::equivariant {

/// A way of filling positions with blocks, up to equivalence. It is a set with one entry per block:
/// the kind of the block, and the positions that it fills (or their number).
using MapSignature = std::vector<std::pair<int64_t, int64_t>>;

/// The kind of each block of a tuple, as a number. Blocks of one kind may be exchanged.
using BlockKinds = std::vector<int64_t>;

/// The kinds of the blocks of a key: their places, or for an undirected input their sizes and
/// whether they are shared with the query.
BlockKinds key_blocks(const Partition& pattern, const std::vector<int8_t>& match,
                      const TensorKind& input);
/// The kinds of the blocks of a query: their places, or for an undirected output their sizes.
BlockKinds query_blocks(const Partition& pattern, const TensorKind& output);

/// The signature of a light class k -> u without loops, as in equivariant_classes().
MapSignature map_signature(const EquivariantClass& light, const TensorKind& input,
                           const BlockKinds& blocks);

/// The weights of the maps to the blocks of one side of a class: signature to number.
using MapWeights = std::map<MapSignature, int64_t>;

/// Numbers all maps in the order in which they come, and selects those that `allowed` (a function
/// of the light class).
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

/// Whether a light class fills all positions with one block that `match` does not match. Then the
/// key depends on one node only.
bool sees_one_free_node(const EquivariantClass& light, const TensorKind& input,
                        const std::vector<int8_t>& match);

}  // namespace nsimplex::equivariant

// The plan of attention between two lists of tuples, as numbers in flat arrays. Plain C++. Each
// structure is defined once, for plans whose arrays are vectors (during their construction) and for
// plans whose arrays are tensors (in operators). docs/equivariant/plan.md defines the words.

namespace nsimplex::equivariant {

/// A class of attention, and the weights of its queries and keys.
struct AttentionClass {
  EquivariantClass own;
  MapWeights query_maps, key_maps;
};

/// The arrays of a plan during its construction. equivariant_attention_call.h has those of tensors.
struct InVectors {
  template <class T>
  using Array = std::vector<T>;
  using Gather = SumPlan;
};

template <class In>
using Int32s = typename In::template Array<int32_t>;
template <class In>
using Int64s = typename In::template Array<int64_t>;

/// Columns in which few input tuples serve all rows, like x_aa for all pairs (a, b). Products with
/// these tuples are computed once per tuple and then looked up.
template <class In>
struct SharedColumnsIn {
  std::vector<int64_t> counts;  ///< number of input tuples per column
  typename In::Gather gather;   ///< [sum of counts, 1]: the input tuples of all columns
  Int32s<In> places;            ///< [rows, columns]: a number among these, or -1
  Int32s<In> offsets;           ///< [sum of counts + 1], the transpose:
  Int32s<In> rows;              ///< the rows that use each
};

/// Tuples of one pattern as tuples of distinct nodes, from which queries or keys are computed. Each
/// reads the input through light maps, with one column per map: an input tuple, or none.
template <class In>
struct AttentionSourceIn {
  int64_t rows = 0;
  int64_t columns = 0;         ///< number of columns that are not shared, which come first
  int64_t value_column = 0;    ///< for keys: the column of the tuple itself
  typename In::Gather gather;  ///< [rows, columns]
  SharedColumnsIn<In> shared;
  Int32s<In> nodes;   ///< [blocks, rows]
  Int64s<In> graphs;  ///< [rows]
};

/// Queries and keys that agree on some nodes, group by group.
template <class In>
struct AttentionRelationIn {
  Int32s<In> key_offsets, keys, query_offsets, queries;
};

/// The rows of one side that agree on some nodes, for all rows of a pattern.
template <class In>
struct RowGroupsIn {
  Int32s<In> offsets, rows;
};

/// Tables of several relations that the rows of a side read together. Rows of one group of a
/// relation are in the same group of the others.
struct TableMeeting {
  int64_t rows = -1;  ///< a number of RowGroups; -1: the groups of its only relation
  struct Member {
    int64_t relation = 0, sign = 0;
    int64_t groups = -1;  ///< a number of group maps if `rows` is not -1
  };
  std::vector<Member> members;
};

/// The pairs of a relation that share nothing else. By inclusion-exclusion these are the pairs of
/// the relation and, with alternating signs, those of relations that share more.
struct AttentionTerm {
  int64_t relation = 0;
  std::vector<int64_t> query_only;  ///< blocks of the query without partner
  struct Extension {
    int64_t relation = 0, sign = 0;
  };
  std::vector<Extension> extensions;
  std::vector<TableMeeting> queries_meet, keys_meet;  ///< of the relation and all extensions
};

/// One class at the outputs of one pattern.
template <class In>
struct AttentionPartIn {
  int64_t number = 0;             ///< number of the class
  int64_t queries = 0, keys = 0;  ///< sources
  /// number of orders of an undirected hyperedge beyond those in the terms
  int64_t multiplicity = 1;
  std::vector<int64_t> key_only;  ///< blocks of the key without partner
  std::vector<AttentionTerm> terms;
  /// [columns of the source]: rows of the weights, or -1.
  Int64s<In> query_weights, key_weights;
  /// [rows of queries]: the number of admissible keys; empty in plans without tables.
  Int32s<In> counts;
};

template <class In>
struct AttentionPlanIn {
  /// [m']: the place of each output tuple if output tuples are listed pattern by pattern.
  Int64s<In> output_places;
  std::vector<int64_t> outputs;  ///< sources, in the order of output patterns
  std::vector<AttentionSourceIn<In>> sources;
  std::vector<AttentionRelationIn<In>> relations;
  std::vector<RowGroupsIn<In>> row_groups;
  /// For each of RowGroups, the groups of a relation, or -1.
  std::vector<Int32s<In>> group_maps;
  std::vector<AttentionPartIn<In>> parts;
};

using SharedColumns = SharedColumnsIn<InVectors>;
using AttentionSource = AttentionSourceIn<InVectors>;
using AttentionRelation = AttentionRelationIn<InVectors>;
using RowGroups = RowGroupsIn<InVectors>;
using AttentionPart = AttentionPartIn<InVectors>;
using AttentionPlan = AttentionPlanIn<InVectors>;

/// The light classes k -> u from which queries and keys of u nodes are made, and their bias
/// classes.
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
