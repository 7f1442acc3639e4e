// Declares higher-order transformers for graphs, their output head and a node autoencoder.

#pragma once

#include <nsimplex/equivariant_layers.h>
#include <nsimplex/graph.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <optional>
#include <vector>

#include "lab/graphs/graph_task.h"
#include "lab/graphs/hyperedges.h"

namespace nsimplex::training {

struct GraphHeadOptions {
  int64_t in_channels = 0, out_channels = 0;
  int64_t layers = 0;  ///< number of hidden layers with ReLU; 0: one linear map
  int64_t hidden = 0;  ///< their width
  double dropout = 0.0;
  bool normalised = false;  ///< whether a LayerNorm precedes it
};

/// The output head of a network, applied to each row: MLP(layers, hidden, out).
class GraphHead : public torch::nn::Module {
 public:
  explicit GraphHead(const GraphHeadOptions& options);
  at::Tensor forward(const at::Tensor& x);

 private:
  GraphHeadOptions options_;
  std::vector<torch::nn::Linear> linear_;
  at::Tensor gain_, shift_;  // of the LayerNorm
};

/// For every row (i, j) of a list of pairs, the row of (j, i): int64 [m]. Throws InputError if the
/// list lacks one.
at::Tensor transposed_rows(const TupleBatch& pairs);

/// For every node of a list of pairs, the row of its loop (i, i): int64 [n]. Throws InputError if a
/// node has none.
at::Tensor loop_rows(const TupleBatch& pairs);

struct NodeAutoencoderOptions {
  int64_t channels = 64;
  double dropout = 0.25;  ///< of x
};

/// Features of nodes from their co-occurrence in tuples, learned together with the network that
/// reads them. For node i of type t with its row x_i of a Cooccurrence,
///
///     z_i = tanh(W_t^T x_i + b_t),     feature LayerNorm_t(z_i),
///
/// and the same weights reconstruct x_ij = w_tj . z_i + c_tj. The loss covers only entries with
/// x_ij not 0: it is the sum over types of the mean over nodes of the mean squared error of a row.
/// It computes all nodes at once in O(non-zeros channels).
///
/// Source: Zhang, Zou and Ma, "Hyper-SAGNN", ICLR 2020 (arXiv 1911.02613), section 3.3.
class NodeAutoencoder : public torch::nn::Module {
 public:
  NodeAutoencoder(const data::Cooccurrence& x, const NodeAutoencoderOptions& options);

  at::Tensor forward();  ///< [nodes, channels]

  /// The loss of the last forward().
  at::Tensor reconstruction_loss() const { return loss_; }

 private:
  struct Type {
    at::Tensor offsets, columns, values;  // of x
    at::Tensor rows, weight_of_entry;     // per nonzero entry: its row, its share of the loss
    at::Tensor weight, bias, shift, gain, offset;
  };

  at::Tensor encode(const Type& type);
  at::Tensor error(const Type& type, const at::Tensor& encoded) const;

  NodeAutoencoderOptions options_;
  std::vector<Type> types_;
  at::Tensor loss_;
};

/// A network that reads the features of a NodeAutoencoder instead of those of a batch. Its input is
/// all nodes. Training also minimises 0.01 times the reconstruction loss.
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

/// The random features of the kernel forms.
struct KernelFeatureOptions {
  FeatureMap map = FeatureMap::relu;
  int64_t count = 0;  ///< per head; 0: max(1, floor(d ln d))
};

/// The attention of the last layer, Enc_{k->l}. Whatever is not given is that of the other layers.
struct ReadoutOptions {
  std::optional<AttentionForm> form;
  int64_t heads = 0, head_dim = 0;  ///< 0: those of the other layers
};

struct EncoderNetworkOptions {
  TensorKind input, output;  ///< k and l
  int64_t in_channels = 0;
  int64_t hidden = 0;  ///< d
  int64_t layers = 1;  ///< number of Enc_{k->k} before the last layer, Enc_{k->l}
  int64_t heads = 1;
  int64_t head_dim = 0;  ///< 0: hidden / heads
  AttentionForm form = AttentionForm::softmax;
  ReadoutOptions readout;
  KernelFeatureOptions features;
  AttentionClassOptions classes;
  double dropout = 0.0;
  GraphHeadOptions head;   ///< its in_channels are `hidden`
  bool symmetric = false;  ///< for pairs: the output is the mean of (i, j) and (j, i)
};

/// A higher-order transformer: Linear - Enc_{k->k} x layers - Enc_{k->l} - head. All layers of the
/// kernel forms use the same random directions; a last layer with heads of another width has its
/// own.
///
/// Source: Kim, Oh and Hong, arXiv 2110.14416, table 6.
class EncoderNetwork : public GraphModel {
 public:
  explicit EncoderNetwork(const EncoderNetworkOptions& options);
  Forward prepare(const GraphBatch& batch) override;
  void redraw_features() override;

 private:
  EncoderNetworkOptions options_;
  torch::nn::Linear embedding_{nullptr};
  RandomFeatures features_{nullptr}, readout_features_{nullptr};
  std::vector<EquivariantEncoder> layers_;
  std::shared_ptr<GraphHead> head_;
};

/// A transformer over the nodes of graphs. Their features (of loops, the first `node_channels`) and
/// the lowest `encodings` eigenvectors of the normalised Laplacian are the input of an
/// EncoderNetwork of order 1. In training, each eigenvector of each graph gets a random sign.
///
/// Source: equation 31 of the paper; Dwivedi and Bresson, arXiv 2012.09699.
class LaplacianTransformer : public GraphModel {
 public:
  /// `network` must have input order 1 and node_channels + encodings in_channels.
  LaplacianTransformer(int64_t node_channels, int64_t encodings,
                       const EncoderNetworkOptions& network);
  Forward prepare(const GraphBatch& batch) override;
  void redraw_features() override { network_->redraw_features(); }

 private:
  int64_t node_channels_, encodings_;
  std::shared_ptr<EncoderNetwork> network_;
};

}  // namespace nsimplex::training
