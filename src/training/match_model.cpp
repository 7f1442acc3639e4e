#include "training/match_model.h"

#include <nsimplex/sparse_layers.h>

#include <cmath>
#include <memory>

namespace nsimplex::training {
namespace {

constexpr double kEmbeddingDeviation = 1.0;  // numbers are symbols: far apart from the first step

SimplicialAttention make_attention(const MatchArm& arm, const MatchSize& size, HeadNorm norm) {
  SimplicialAttentionOptions attention;
  attention.dim = size.dim;
  attention.heads = size.heads;
  attention.order = arm.order;
  attention.norm = norm;
  if (arm.tuples == MatchTuples::dense) return SimplicialAttention(attention);
  SelectionOptions selection;
  selection.pattern = arm.tuples == MatchTuples::path ? TuplePattern::path : TuplePattern::product;
  selection.keys = arm.topk;
  // Any weight would do: the loss reaches the indexer alone, and AdamW's steps do not depend on the
  // scale of a gradient.
  selection.loss_weight = 1.0;
  // A first layer has no layer before it whose scores could be reused.
  selection.indexer = {.heads = kMatchIndexHeads,
                       .index_dim = kMatchIndexDim,
                       .source = IndexSource::light,
                       .scores = IndexScores::relu};
  const std::shared_ptr<SimplicialAttentionImpl> layer =
      std::make_shared<SparseAttentionImpl>(attention, selection);
  return SimplicialAttention(layer);
}

}  // namespace

MatchModel::MatchModel(const MatchArm& arm, const MatchSize& size, HeadNorm norm,
                       const at::Generator& generator) {
  const FeedForwardOptions mlp{.hidden = size.hidden, .activation = Activation::gelu};
  for (int64_t layer = 0; layer < arm.depth; ++layer) {
    blocks_->push_back(TransformerBlock(make_attention(arm, size, norm), mlp));
  }
  register_module("blocks", blocks_);
  embedding_ = register_module("embedding", torch::nn::Embedding(size.modulus, size.dim));
  norm_ = register_module("norm", RMSNorm(size.dim));
  head_ = register_module("head", torch::nn::Linear(size.dim, 1));

  const at::NoGradGuard no_grad;
  embedding_->weight.normal_(0.0, kEmbeddingDeviation, generator);
  // The branches of all blocks together start with the variance that those of one have.
  const double gain = 1.0 / std::sqrt(static_cast<double>(arm.depth));
  for (size_t i = 0; i < blocks_->size(); ++i) {
    blocks_->at<TransformerBlockImpl>(i).reset_parameters({generator, gain});
  }
  head_->weight.normal_(0.0, 1.0 / std::sqrt(3.0 * static_cast<double>(size.dim)), generator);
  head_->bias.zero_();
}

at::Tensor MatchModel::forward(const at::Tensor& tokens) {
  at::Tensor x = embedding_->forward(tokens);
  for (size_t i = 0; i < blocks_->size(); ++i) {
    x = blocks_->at<TransformerBlockImpl>(i).forward(x);
  }
  return head_->forward(norm_->forward(x)).squeeze(-1);
}

at::Tensor MatchModel::auxiliary_loss() const {
  at::Tensor sum;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const auto attention = blocks_->at<TransformerBlockImpl>(i).attention().ptr();
    const auto sparse = std::dynamic_pointer_cast<SparseAttentionImpl>(attention);
    if (!sparse || !sparse->auxiliary_loss().defined()) continue;
    sum = sum.defined() ? sum + sparse->auxiliary_loss() : sparse->auxiliary_loss();
  }
  return sum;
}

}  // namespace nsimplex::training
