#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "data/hyperedges.h"
#include "training/graph_task.h"

namespace nsimplex::training {

struct NodeAutoencoderOptions {
  int64_t channels = 64;
  double dropout = 0.25;  ///< of x
};

/// Features of nodes from the company they keep, learned together with what reads them. For node i
/// of type t with its row x_i of a Cooccurrence,
///
///     z_i = tanh(W_t^T x_i + b_t),     feature LayerNorm_t(z_i),
///
/// and the same weights give back x_ij = w_tj . z_i + c_tj, which is judged where x_ij is not zero:
/// the sum over types of the mean over nodes of the mean squared error of a row. All nodes at once,
/// in O(non-zeros channels).
///
/// Source: Zhang, Zou and Ma, "Hyper-SAGNN", ICLR 2020 (arXiv 1911.02613), section 3.3.
class NodeAutoencoder : public torch::nn::Module {
 public:
  NodeAutoencoder(const data::Cooccurrence& x, const NodeAutoencoderOptions& options);

  at::Tensor forward();  ///< [nodes, channels]

  /// Of the last forward().
  at::Tensor reconstruction_loss() const { return loss_; }

 private:
  struct Type {
    at::Tensor offsets, columns, values;  // of x
    at::Tensor rows, weight_of_entry;     // of each non-zero: its row, its share of the loss
    at::Tensor weight, bias, shift, gain, offset;
  };

  at::Tensor encode(const Type& type);
  at::Tensor error(const Type& type, const at::Tensor& encoded) const;

  NodeAutoencoderOptions options_;
  std::vector<Type> types_;
  at::Tensor loss_;
};

/// A network that reads the features of a NodeAutoencoder in place of a batch's own. Its input is
/// all nodes; 0.01 times the reconstruction loss is minimised besides.
class AutoencodedNetwork : public GraphModel {
 public:
  AutoencodedNetwork(const data::Cooccurrence& x, const NodeAutoencoderOptions& options,
                     std::shared_ptr<GraphModel> network);
  Forward prepare(const GraphBatch& batch) override;
  at::Tensor auxiliary_loss() const override;
  void redraw_features() override { network_->redraw_features(); }

 private:
  std::shared_ptr<NodeAutoencoder> nodes_;
  std::shared_ptr<GraphModel> network_;
};

}  // namespace nsimplex::training
