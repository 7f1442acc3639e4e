#pragma once

#include <nsimplex/sparse_attention.h>

#include <array>

#include "attention/sparse_attention/sparse_attention_call.h"

namespace nsimplex::sparse {

/// Refuses a call that is not defined with one line that names the argument, what was expected and
/// what came. Sizes are symbolic, so that meta tensors pass the same door.
void check(const Call& call);
void check(const BackwardCall& call);

/// Refuses offsets and indices that would lead out of the list or of an axis. Reads the values:
/// they lie on the CPU. With `indices` and `offsets`, contiguous, it checks those in place of the call's.
void check_values(const Call& call);
void check_values(const Call& call, const at::Tensor& indices, const at::Tensor& offsets);

/// What a checked call asks for, in numbers.
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

/// The tensor that has one row a query or position: offsets of a list, else the indices.
const at::Tensor& rows_of(const Call& call, TuplePattern pattern);

/// The options that are names. Refuses unknown ones.
TuplePattern pattern_of(const Options& options);
TupleReduce reduce_of(const Options& options);

inline bool learned(TupleReduce reduce) {
  return reduce == TupleReduce::mlp || reduce == TupleReduce::mlp_symmetric;
}

/// Sizes of the output: [B, Hq, Tq, Dv].
std::array<c10::SymInt, 4> output_sizes(const Call& call);

}  // namespace nsimplex::sparse
