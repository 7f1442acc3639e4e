#pragma once

#include <nsimplex/routing.h>

#include <string_view>
#include <tuple>

#include "attention/routing/selection.h"

namespace nsimplex::routing {

/// The operator's arguments as the schema lists them.
struct Call {
  const at::Tensor& query;  ///< [B, H, Tq, D]
  const at::Tensor& key;    ///< [B, Hk, T, D]
  c10::SymInt k;
  const OptionalTensor& weights;  ///< [B, H, Tq]
  std::string_view scores;
  bool causal;
  std::optional<double> scale;
  const OptionalTensor& lse;                            ///< [B, H, Tq]
  dense::OptionalInt64 key_lengths;                     ///< [B]
  const OptionalTensor& adjacency;                      ///< bool [1 or B, Tq, T]
  const OptionalTensor& candidates;                     ///< int64 [1 or B, Tq, n]
  const char* function = "topk_keys";                   ///< that errors name
  const char *query_name = "query", *key_name = "key";  ///< as errors call them

  bool softmax() const { return scores == "softmax"; }
};

/// (indices, scores), both [B, Tq, k]
using Output = std::tuple<at::Tensor, at::Tensor>;

/// Adapts a function of a Call to the dispatcher's flat argument list.
template <auto function>
Output flat(const at::Tensor& query, const at::Tensor& key, c10::SymInt k,
            const OptionalTensor& weights, std::string_view scores, bool causal,
            std::optional<double> scale, const OptionalTensor& lse,
            const OptionalTensor& key_lengths, const OptionalTensor& adjacency,
            const OptionalTensor& candidates) {
  return function(Call{query, key, std::move(k), weights, scores, causal, scale, lse, key_lengths,
                       adjacency, candidates});
}

/// Refuses a call that is not defined, by shapes and dtypes. Sizes are symbolic: meta tensors pass
/// the same door.
void check(const Call& call);

/// Refuses key lengths and candidates that are out of range. Reads them.
void check_values(const Call& call);

/// The operator from plain ATen calls.
Output reference(const Call& call);

/// The operator's name of the enumerator.
std::string_view name_of(IndexScores scores);

/// Calls function(dense call) with the pairs of the call as order 1, in the call's own dtype.
/// Candidates have no part in it.
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
