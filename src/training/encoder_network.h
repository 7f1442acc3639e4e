#pragma once

#include <nsimplex/equivariant_encoder.h>

#include <memory>
#include <vector>

#include "training/graph_head.h"
#include "training/graph_task.h"

namespace nsimplex::training {

/// The random features of the kernel forms.
struct KernelFeatureOptions {
  FeatureMap map = FeatureMap::relu;
  int64_t count = 0;  ///< of a head; 0: max(1, floor(d ln d))
};

struct EncoderNetworkOptions {
  TensorKind input, output;  ///< k and l
  int64_t in_channels = 0;
  int64_t hidden = 0;  ///< d
  int64_t layers = 1;  ///< Enc_{k->k} before the last, Enc_{k->l}
  int64_t heads = 1;
  int64_t head_dim = 0;  ///< 0: hidden / heads
  AttentionForm form = AttentionForm::softmax;
  KernelFeatureOptions features;
  AttentionClassOptions classes;
  double dropout = 0.0;
  GraphHeadOptions head;   ///< its in_channels are `hidden`
  bool symmetric = false;  ///< of pairs: the mean of (i, j) and (j, i)
};

/// A higher-order transformer: Linear - Enc_{k->k} x layers - Enc_{k->l} - head. The kernel forms
/// share one set of random directions.
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
  RandomFeatures features_{nullptr};
  std::vector<EquivariantEncoder> layers_;
  std::shared_ptr<GraphHead> head_;
};

/// A transformer over the nodes of graphs: their features (of loops, the first `node_channels`) and
/// the lowest `encodings` eigenvectors of the normalised Laplacian, through an EncoderNetwork of
/// order 1. While training, each eigenvector of each graph has a random sign.
///
/// Source: equation 31 of the paper; Dwivedi and Bresson, arXiv 2012.09699.
class LaplacianTransformer : public GraphModel {
 public:
  /// `network` has input order 1 and as many in_channels as node_channels + encodings.
  LaplacianTransformer(int64_t node_channels, int64_t encodings,
                       const EncoderNetworkOptions& network);
  Forward prepare(const GraphBatch& batch) override;
  void redraw_features() override { network_->redraw_features(); }

 private:
  int64_t node_channels_, encodings_;
  std::shared_ptr<EncoderNetwork> network_;
};

}  // namespace nsimplex::training
