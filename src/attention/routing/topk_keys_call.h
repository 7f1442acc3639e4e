// The options and arguments of `topk_keys` in the order of its schema.

#pragma once

#include <nsimplex/routing.h>

#include <string_view>
#include <tuple>

#include "attention/common/attention_names.h"
#include "attention/routing/selection.h"

// weights and lse are [B, H, Tq], key_lengths [B], adjacency bool [1 or B, Tq, T] and candidates
// int64 [1 or B, Tq, n].
#define NSIMPLEX_TOPK_OPTIONS(OPTION)                                \
  OPTION(OptionalTensor, weights, {}, "Tensor? weights=None")        \
  OPTION(std::string_view, scores, "relu", "str scores='relu'")      \
  OPTION(bool, causal, false, "bool causal=False")                   \
  OPTION(std::optional<double>, scale, {}, "float? scale=None")      \
  OPTION(OptionalTensor, lse, {}, "Tensor? lse=None")                \
  OPTION(OptionalInt64, key_lengths, {}, "Tensor? key_lengths=None") \
  OPTION(OptionalTensor, adjacency, {}, "Tensor? adjacency=None")    \
  OPTION(OptionalTensor, candidates, {}, "Tensor? candidates=None")

namespace nsimplex::routing {

/// The operator's arguments in the order of the schema (support/flat_call.h).
struct Call {
  at::Tensor query;  ///< [B, H, Tq, D]
  at::Tensor key;    ///< [B, Hk, T, D]
  c10::SymInt k;
  NSIMPLEX_OPTION_FIELDS(NSIMPLEX_TOPK_OPTIONS)
  const char* function = "topk_keys";                   ///< the function that errors name
  const char *query_name = "query", *key_name = "key";  ///< the names of the arguments in errors

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.query, self.key, self.k), option_fields(self));
  }

  bool softmax() const { return scores == name_of(IndexScores::softmax); }
};

/// (indices, scores), both [B, Tq, k]
using Output = std::tuple<at::Tensor, at::Tensor>;

/// Rejects a call that is not defined, by shapes and dtypes. Sizes are symbolic, so that meta
/// tensors pass the same checks.
void check(const Call& call);

/// Rejects key lengths and candidates that are out of range. It reads their values.
void check_values(const Call& call);

/// The operator by ATen calls.
Output reference(const Call& call);

/// Calls function(dense call) with the query and key of the call as order 1, in the dtype of the
/// call. Candidates are ignored.
template <class Function>
auto with_pairs(const Call& call, Function&& function) {
  const at::TensorList keys(call.key);
  OptionalTensor mask;
  if (call.adjacency) mask = call.adjacency->unsqueeze(1);
  return function(
      dense::Call{call.query, keys, keys,
                  plain_options(call.causal, "product", call.scale, {}, call.key_lengths, mask)});
}

/// log sum_j exp(logit_hij) over the admissible keys, [B, H, Tq], float32 or float64.
at::Tensor pair_lse(const Call& call);

}  // namespace nsimplex::routing
