// Declares the plan of the sums of a sparse equivariant layer.

#pragma once

#include <nsimplex/equivariant_classes.h>

#include <cstdint>
#include <vector>

#include "equivariant/join/tuple_join.h"

// The sums of every class of a sparse equivariant layer, as numbers in flat arrays.
//
// Let P and Q be the patterns of an input and an output tuple. A class matches some blocks of P
// with blocks of Q. The inputs that count agree on these blocks and differ on all others. Both
// sides are distinct within themselves, so inclusion-exclusion runs over partial matchings of the
// other blocks. For a matching s
//
//     S_s(j) = sum over matchings t that extend s of (-1)^(|t| - |s|) G_t(j)
//
// where G_t(j) sums all inputs of pattern P that agree with j on the blocks of t. It is a look-up
// in a table of groups, or a single input tuple if t matches all of P.

namespace nsimplex::equivariant {

/// Outputs of one pattern have `classes` sums, made of `lookups` look-ups by `terms` terms.
struct PatternPart {
  int64_t rows = 0, lookups = 0, terms = 0;
  /// numbers of classes of the layer; classes that are absent have sum zero
  std::vector<int64_t> classes;
  int64_t bias_class = 0;  ///< number into the classes of 0 -> l
};

/// A source is an input tuple (a number below `sources`) or a group of them (a larger number). All
/// numbers are int32, so more than 2^31 - 1 look-ups are rejected.
struct SumPlan {
  int64_t sources = 0;                 ///< m
  std::vector<int32_t> group_offsets;  ///< [groups + 1]
  std::vector<int32_t> group_rows;     ///< input tuples of each group
  std::vector<int32_t> row_offsets;    ///< [m + 1], the transpose of the groups:
  std::vector<int32_t> row_sources;    ///< the sources that contain an input tuple, itself first
  std::vector<int32_t> lookups;        ///< part by part [rows, lookups]: a source or -1
  /// part by part [rows, classes]: number of inputs that contribute
  std::vector<int32_t> counts;
  std::vector<int32_t> source_offsets;  ///< [sources + groups + 1], the transpose of lookups:
  std::vector<int32_t> source_lookups;  ///< the look-ups of each source
  std::vector<int32_t> terms;           ///< part by part [terms, 3]: class, look-up, coefficient
  std::vector<int64_t> output_places;   ///< [m']: the place of an output tuple, part by part
  std::vector<PatternPart> parts;

  int64_t groups() const { return static_cast<int64_t>(group_offsets.size()) - 1; }
};

/// The plan of a layer between the two lists of `join`; `input` is the kind of the first.
SumPlan make_sum_plan(TupleJoin& join, int64_t input_rows, const TensorKind& input,
                      const std::vector<EquivariantClass>& classes,
                      const std::vector<EquivariantClass>& bias_classes);

/// The plan of sums of at most one input row: `lookups` [rows, columns] has the rows, or -1.
SumPlan make_gather_plan(std::vector<int32_t> lookups, int64_t columns, int64_t input_rows);

/// The places of the numbers 0, 1, .. in a permutation.
std::vector<int64_t> inverse(const std::vector<int64_t>& permutation);

/// The transpose of a relation given as offsets and numbers below `limit`: for every number its
/// places, ascending. Negative numbers are skipped.
struct Transposed {
  std::vector<int32_t> offsets, places;
};
Transposed transpose(const std::vector<int32_t>& numbers, int64_t limit);

}  // namespace nsimplex::equivariant
