#pragma once

#include <nsimplex/equivariant_layers.h>

#include <vector>

#include "training/graph_head.h"
#include "training/graph_task.h"

namespace nsimplex::training {

struct LinearNetworkOptions {
  TensorKind input, output;  ///< k and l
  int64_t in_channels = 0;
  int64_t hidden = 0;
  int64_t layers = 1;                     ///< L_{k->k} before the last, L_{k->l}
  ClassSet last_classes = ClassSet::all;  ///< light for l > k: no sum over the input
  Pooling pooling = Pooling::mean;
  GraphHeadOptions head;   ///< its in_channels are `hidden`
  bool symmetric = false;  ///< of pairs: the mean of (i, j) and (j, i)

  /// As dense tensors: of batches of one graph with all its tuples (complete_tuples()).
  bool dense = false;
};

/// The invariant MLP and its kin: [L_{k->k} - ReLU] x layers - L_{k->l} - head. For sets and pairs
/// (k = 1, l = 2) with light classes in the last layer it is S2G, with all of them S2G+.
///
/// Sources: Maron et al., arXiv 1812.09902; Serviansky et al., arXiv 2002.08772.
class LinearNetwork : public GraphModel {
 public:
  explicit LinearNetwork(const LinearNetworkOptions& options);
  Forward prepare(const GraphBatch& batch) override;

 private:
  Forward prepare_dense(const GraphBatch& batch);
  at::Tensor answer(const at::Tensor& x);

  LinearNetworkOptions options_;
  std::vector<EquivariantLinear> layers_;
  std::shared_ptr<GraphHead> head_;
};

}  // namespace nsimplex::training
