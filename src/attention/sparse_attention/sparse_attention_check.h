// Declares the checks of sparse attention, and its settings as numbers.

#pragma once

#include <nsimplex/sparse_attention.h>

#include <array>

#include "attention/sparse_attention/sparse_attention_call.h"

namespace nsimplex::sparse {

/// Rejects a call that is not defined with one line that names the argument, the expectation and
/// the value. Sizes are symbolic, so that meta tensors pass the same checks.
void check(const Call& call);
void check(const BackwardCall& call);

/// Rejects offsets and indices outside the list or an axis. It reads the values, which must be on
/// the CPU. If `indices` and `offsets` (contiguous) are given, it checks them instead of those of
/// the call.
void check_values(const Call& call);
void check_values(const Call& call, const at::Tensor& indices, const at::Tensor& offsets);

/// The settings of a checked call as numbers.
struct Settings {
  int order = 1;
  TuplePattern pattern = TuplePattern::list;
  Form form = Form::product;
  TupleReduce reduce = TupleReduce::product;
  Scale scale;
  int64_t list_entries = 1;  ///< leading dimension of the lists, 1 or B
  int64_t list_groups = 1;   ///< G
};
Settings settings_of(const Call& call);

/// The tensor with one row per query or position: offsets of a list, otherwise the indices.
const at::Tensor& rows_of(const Call& call, TuplePattern pattern);

/// The options that are names. Rejects unknown names.
TuplePattern pattern_of(const Options& options);
TupleReduce reduce_of(const Options& options);

inline bool learned(TupleReduce reduce) {
  return reduce == TupleReduce::mlp || reduce == TupleReduce::mlp_symmetric;
}

/// Sizes of the output: [B, Hq, Tq, Dv].
std::array<c10::SymInt, 4> output_sizes(const Call& call);

}  // namespace nsimplex::sparse
