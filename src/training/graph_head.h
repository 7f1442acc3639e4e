#pragma once

#include <nsimplex/graph.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <vector>

namespace nsimplex::training {

struct GraphHeadOptions {
  int64_t in_channels = 0, out_channels = 0;
  int64_t layers = 0;  ///< hidden ones, with ReLU; 0: one linear map
  int64_t hidden = 0;  ///< their width
  double dropout = 0.0;
  bool normalised = false;  ///< LayerNorm of what comes in
};

/// What answers at the end of a network, row by row: MLP(layers, hidden, out).
class GraphHead : public torch::nn::Module {
 public:
  explicit GraphHead(const GraphHeadOptions& options);
  at::Tensor forward(const at::Tensor& x);

 private:
  GraphHeadOptions options_;
  std::vector<torch::nn::Linear> linear_;
  at::Tensor gain_, shift_;  // of the LayerNorm
};

/// The row of (j, i) for every row (i, j) of a list of pairs that holds both: int64 [m]. Throws
/// InputError for other lists.
at::Tensor transposed_rows(const TupleBatch& pairs);

/// The row of the loop (i, i) of every node of a list of pairs: int64 [n]. Throws InputError where
/// a node has none.
at::Tensor loop_rows(const TupleBatch& pairs);

}  // namespace nsimplex::training
