// The options and arguments of `indexer_loss` in the order of its schema.

#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "attention/common/attention_names.h"
#include "attention/routing/selection.h"

namespace nsimplex::routing {

// weights and lse (with scores softmax) are [B, H, Tq], indices [1 or B, Tq or T, k]; without
// indices all admissible keys count.
#define NSIMPLEX_LOSS_OPTIONS(OPTION)                                   \
  OPTION(OptionalTensor, weights, {}, "Tensor? weights=None")           \
  OPTION(OptionalTensor, lse, {}, "Tensor? lse=None")                   \
  OPTION(OptionalTensor, indices, {}, "Tensor? indices=None")           \
  OPTION(std::string_view, scores, "relu", "str scores='relu'")         \
  OPTION(bool, causal, false, "bool causal=False")                      \
  OPTION(std::optional<double>, scale, {}, "float? scale=None")         \
  OPTION(std::string_view, pattern, "product", "str pattern='product'") \
  OPTION(std::string_view, form, "product", "str form='product'")       \
  OPTION(std::optional<double>, logit_scale, {}, "float? logit_scale=None")

/// The arguments of indexer_loss in the order of the schema (support/flat_call.h).
struct LossCall {
  at::Tensor query_index;  ///< [B, H, Tq, D']
  at::Tensor key_index;    ///< [B, H', T, D']
  at::Tensor query;        ///< [B, Hq, Tq, D]
  at::TensorList keys;     ///< N of [B, Hk, T, D]
  NSIMPLEX_OPTION_FIELDS(NSIMPLEX_LOSS_OPTIONS)

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.query_index, self.key_index, self.query, self.keys),
                          option_fields(self));
  }

  bool softmax() const { return scores == name_of(IndexScores::softmax); }
  bool path() const { return pattern == name_of(TuplePattern::path); }
};

/// Inputs with gradients: query_index, key_index, weights, lse.
inline constexpr int kLossInputs = 4;
using Wanted = std::array<bool, kLossInputs>;

/// The loss and its gradients. Gradients that are not wanted are empty.
using LossOutput = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// Rejects index tensors that topk_keys would reject.
void check_index(const LossCall& call);

/// Rejects a call that is not defined, by shapes and dtypes.
void check(const LossCall& call);

/// Rejects indices that are out of range. It reads their values.
void check_values(const LossCall& call);

/// Loss and gradients of some consecutive queries, not divided by their number.
struct LossPart {
  at::Tensor loss;                                ///< scalar
  at::Tensor queries;                             ///< scalar: the number of queries that count
  at::Tensor grad_query, grad_weights, grad_lse;  ///< rows of the part; undefined if not wanted
};

/// The data that all parts of a call share, in the accumulated dtype.
class LossParts {
 public:
  LossParts(const LossCall& call, const Wanted& wanted);

  int64_t queries() const { return query_index_.size(2); }
  int64_t chunk() const { return chunk_; }

  /// The part of `rows` queries from `first` on. Its gradient by the keys is added to grad_key().
  LossPart part(int64_t first, int64_t rows);

  const at::Tensor& grad_key() const { return grad_key_; }

 private:
  struct Pairs;
  Pairs pairs(int64_t first, int64_t rows) const;
  at::Tensor targets(const Pairs& pairs, int64_t first, int64_t rows) const;
  at::Tensor rows_of(const at::Tensor& tensor, int64_t first, int64_t rows) const;
  at::Tensor grad_pairs(const Pairs& pairs, const at::Tensor& grad_logits, int64_t first,
                        int64_t rows);

  const LossCall& call_;
  Wanted wanted_;
  double scale_;
  at::Tensor query_index_, key_index_, weights_, lse_, table_, grad_key_;
  int64_t chunk_ = 1;
};

}  // namespace nsimplex::routing
