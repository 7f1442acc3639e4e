#pragma once

#include <nsimplex/equivariant_classes.h>

#include <cstdint>
#include <vector>

#include "equivariant/join/tuple_join.h"

// The sums of every class of a sparse equivariant layer, as numbers into flat arrays.
//
// Let P and Q be the patterns of an input and an output tuple. A class matches some blocks of P
// with blocks of Q; the inputs that count agree on these and differ on all others. Both sides being
// distinct within themselves, what must be left out are partial matchings of the other blocks, so
// that for a matching s
//
//     S_s(j) = sum over matchings t that extend s of (-1)^(|t| - |s|) G_t(j)
//
// where G_t(j) sums all inputs of pattern P that agree with j on the blocks of t: a look-up in a
// table of groups, or a single input tuple where t matches all of P.

namespace nsimplex::equivariant {

/// Outputs of one pattern have `classes` sums made of `lookups` look-ups by `terms` terms.
struct PatternPart {
  int64_t rows = 0, lookups = 0, terms = 0;
  std::vector<int64_t> classes;  ///< numbers into the classes of the layer; absent: always zero
  int64_t bias_class = 0;        ///< number into the classes of 0 -> l
};

/// A source is an input tuple (below `sources`) or, above, a group of them. All numbers are int32:
/// 2^31 look-ups are refused.
struct SumPlan {
  int64_t sources = 0;                  ///< m
  std::vector<int32_t> group_offsets;   ///< [groups + 1]
  std::vector<int32_t> group_rows;      ///< input tuples of each group
  std::vector<int32_t> row_offsets;     ///< [m + 1], the transpose of the groups:
  std::vector<int32_t> row_sources;     ///< the sources that hold an input tuple, itself first
  std::vector<int32_t> lookups;         ///< part by part [rows, lookups]: a source or -1
  std::vector<int32_t> counts;          ///< part by part [rows, classes]: inputs that contribute
  std::vector<int32_t> source_offsets;  ///< [sources + groups + 1], the transpose of lookups:
  std::vector<int32_t> source_lookups;  ///< where each source is looked up
  std::vector<int32_t> terms;           ///< part by part [terms, 3]: class, look-up, coefficient
  std::vector<int64_t> output_places;   ///< [m']: the place of an output tuple, part by part
  std::vector<PatternPart> parts;

  int64_t groups() const { return static_cast<int64_t>(group_offsets.size()) - 1; }
};

/// The plan of a layer between the two lists of `join`; `input` is the kind of the first.
SumPlan make_sum_plan(TupleJoin& join, int64_t input_rows, const TensorKind& input,
                      const std::vector<EquivariantClass>& classes,
                      const std::vector<EquivariantClass>& bias_classes);

/// The plan of sums that are one input row or none: `lookups` [rows, columns] has the rows, or -1.
SumPlan make_gather_plan(std::vector<int32_t> lookups, int64_t columns, int64_t input_rows);

/// The places of numbers 0, 1, .. in a permutation of them.
std::vector<int64_t> inverse(const std::vector<int64_t>& permutation);

/// The transpose of a relation given as offsets and numbers below `limit`: for every number, where
/// it stands, ascending. Negative numbers are skipped.
struct Transposed {
  std::vector<int32_t> offsets, places;
};
Transposed transpose(const std::vector<int32_t>& numbers, int64_t limit);

}  // namespace nsimplex::equivariant
