// Declares the formula of sparse attention on one chunk of tuples.

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "attention/common/attention_channels.h"
#include "attention/sparse_attention/sparse_attention_check.h"
#include "attention/sparse_attention/sparse_attention_reference.h"

namespace nsimplex::sparse {

/// Combines the values of tuples, for the reference version. Values are N tensors [B, H, n, Dv].
class TupleReducer {
 public:
  /// `weights` are those for the heads of the values, in the dtype of the computation.
  TupleReducer(TupleReduce reduce, std::vector<at::Tensor> weights)
      : reduce_(reduce), weights_(std::move(weights)) {}

  /// reduce(v1, .., vN): [B, H, n, Dv].
  at::Tensor combine(const std::vector<at::Tensor>& values) const;

  /// Gradients of the values and of the weights from that of combine().
  struct Gradients {
    std::vector<at::Tensor> values, weights;
  };
  Gradients backward(const std::vector<at::Tensor>& values, const at::Tensor& grad) const;

 private:
  /// Layer `index` applied to channels: x W^T + b.
  at::Tensor layer(size_t index, const at::Tensor& x) const;
  /// The gradient of x. The gradients of the weights are inserted at the front of the list.
  at::Tensor layer_backward(size_t index, const at::Tensor& x, const at::Tensor& grad,
                            std::vector<at::Tensor>& weights) const;

  TupleReduce reduce_;
  std::vector<at::Tensor> weights_;
};

}  // namespace nsimplex::sparse

// The formula on one chunk of tuples, in ATen calls, for the reference version.
//
// Names of dimensions: B batch entries and H key heads of the list, G query heads of one key head,
// R queries of the chunk, n tuples.

namespace nsimplex::sparse {

/// The data that the chunks of one list share, in the dtype of the computation.
struct ListPart {
  const Settings& settings;
  dense::LeadingRows form;
  at::Tensor query;                      ///< [B, H, G, Tq, D], times s1
  std::vector<at::Tensor> keys, values;  ///< N of [B, H, T_m, D or Dv]
  TupleReducer reducer;

  ListPart(const Call& call, const Settings& settings, const TupleList& list);
};

class ChunkTerms {
 public:
  ChunkTerms(const ListPart& part, const TupleChunk& chunk);

  /// s1 form: [B, H, G, n].
  at::Tensor logits() const;

  /// reduce(v_J): [B, H, n, Dv].
  at::Tensor combined_values() const { return part_.reducer.combine(values_); }

  /// The part of a [B, H, G, Tq, ...] tensor for the queries of the chunk: [B, H, G, R, ...].
  at::Tensor rows(const at::Tensor& tensor) const;
  /// Every tuple's row: [B, H, G, R, ...] -> [B, H, G, n, ...].
  at::Tensor spread(const at::Tensor& rows) const;
  /// Sums over the tuples of a row: [B, H, G, n, ...] -> [B, H, G, R, ...].
  at::Tensor sum_to_rows(const at::Tensor& terms) const;
  /// The largest of every row, without gradients: [B, H, G, n] -> [B, H, G, R]; -inf for none.
  at::Tensor largest_of_rows(const at::Tensor& terms) const;

  /// Gradients of queries [B, H, G, R, D] (without s1) and of every tuple's keys [B, H, n, D], from
  /// that of the logits.
  struct FormGradients {
    at::Tensor query;
    std::vector<at::Tensor> keys;
  };
  FormGradients form_backward(const at::Tensor& grad_logits) const;

  TupleReducer::Gradients reduce_backward(const at::Tensor& grad) const {
    return part_.reducer.backward(values_, grad);
  }

 private:
  const ListPart& part_;
  const TupleChunk& chunk_;
  std::vector<at::Tensor> keys_;     ///< [B, H, 1, n, D]
  std::vector<at::Tensor> values_;   ///< [B, H, n, Dv]
  std::vector<at::Tensor> leading_;  ///< products of the keys of axes 1 .. m, for m < N
  at::Tensor query_, combined_;      ///< [B, H, G, n, D]
};

}  // namespace nsimplex::sparse
