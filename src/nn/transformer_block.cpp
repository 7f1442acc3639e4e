// RMSNorm, the MLP and the pre-norm block, with tokens chosen by a router if wanted.

#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <nsimplex/sparse_layers.h>

#include "nn/initialize.h"
#include "support/require.h"

namespace nsimplex {
namespace {

FeedForwardOptions complete(FeedForwardOptions o) {
  require(o.dim > 0, "[FeedForward] dim: expected a positive width, got ", o.dim);
  require(o.hidden >= 0, "[FeedForward] hidden: expected a positive width, got ", o.hidden);
  if (o.hidden == 0) {
    // With 8/3 the gated MLP, which has three matrices, is as large as the plain one with two.
    const int64_t usual = o.activation == Activation::swiglu ? (8 * o.dim + 2) / 3 : 4 * o.dim;
    o.hidden = (usual + 7) / 8 * 8;
  }
  return o;
}

FeedForwardOptions with_dim(FeedForwardOptions o, int64_t dim) {
  require(o.dim == 0 || o.dim == dim, "[TransformerBlock] mlp.dim: expected 0 or attention.dim ",
          dim, ", got ", o.dim);
  o.dim = dim;
  return o;
}

AttentionMasks masks_of(const SelectedTokens& tokens) {
  return {.key_lengths = tokens.key_lengths,
          .positions = tokens.positions,
          .adjacency = tokens.adjacency};
}

}  // namespace

RMSNormImpl::RMSNormImpl(int64_t dim, double eps) : eps_(eps) {
  require(dim > 0, "[RMSNorm] dim: expected a positive width, got ", dim);
  weight_ = register_parameter("weight", at::ones({dim}));
}

void RMSNormImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  weight_.fill_(1.0);
}

at::Tensor RMSNormImpl::forward(const at::Tensor& x) {
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) == weight_.size(0), "[RMSNorm] x: expected shape [.., ",
              weight_.size(0), "], got ", x.sizes());
  return at::rms_norm(x, weight_.sizes(), weight_, eps_);
}

FeedForwardImpl::FeedForwardImpl(const FeedForwardOptions& options) : options_(complete(options)) {
  const auto& o = options_;
  const int64_t rows = o.activation == Activation::swiglu ? 2 * o.hidden : o.hidden;
  up_ = register_module("up", torch::nn::Linear(torch::nn::LinearOptions(o.dim, rows).bias(false)));
  down_ = register_module("down",
                          torch::nn::Linear(torch::nn::LinearOptions(o.hidden, o.dim).bias(false)));
  reset_parameters();
}

void FeedForwardImpl::reset_parameters(const Initialization& init) {
  detail::initialize(up_->weight, init.generator);
  detail::initialize(down_->weight, init.generator, init.residual_gain);
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x) {
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) == options_.dim, "[FeedForward] x: expected shape [.., ",
              options_.dim, "], got ", x.sizes());
  const at::Tensor up = up_->forward(x);
  if (options_.activation == Activation::gelu) return down_->forward(at::gelu(up));
  const auto halves = up.chunk(2, -1);
  return down_->forward(at::silu(halves[0]) * halves[1]);
}

TransformerBlockImpl::TransformerBlockImpl(const TransformerBlockOptions& options)
    : TransformerBlockImpl(SimplicialAttention(options.attention), options.mlp) {}

TransformerBlockImpl::TransformerBlockImpl(SimplicialAttention attention, FeedForwardOptions mlp)
    : attention_(std::move(attention)) {
  add_parts(attention_->options().dim, mlp);
}

TransformerBlockImpl::TransformerBlockImpl(const ExpertChoice& attention, FeedForwardOptions mlp)
    : attention_(attention->attention()), choice_(attention.ptr()) {
  add_parts(choice_->dim(), mlp);
}

void TransformerBlockImpl::add_parts(int64_t dim, FeedForwardOptions mlp) {
  attention_norm_ = register_module("attention_norm", RMSNorm(dim));
  if (choice_) {
    register_module("attention", choice_);
  } else {
    register_module("attention", attention_);
  }
  mlp_norm_ = register_module("mlp_norm", RMSNorm(dim));
  mlp_ = register_module("mlp", FeedForward(with_dim(mlp, dim)));
}

void TransformerBlockImpl::choose_tokens(const RouterOptions& router,
                                         const std::optional<at::Generator>& generator) {
  require(!choice_, "[TransformerBlock] attention: expected none that chooses tokens already");
  choice_ = std::make_shared<ExpertChoiceImpl>(attention_, router);
  choice_->reset_router(generator);
  replace_module("attention", choice_);
}

void TransformerBlockImpl::reset_parameters(const Initialization& init) {
  attention_norm_->reset_parameters();
  if (choice_) {
    choice_->reset_parameters(init);
  } else {
    attention_->reset_parameters(init);
  }
  mlp_norm_->reset_parameters();
  mlp_->reset_parameters(init);
}

// What the attention adds to x, whose normalised rows it reads.
at::Tensor TransformerBlockImpl::attend(const at::Tensor& x, const AttentionMasks& masks,
                                        at::TensorList contexts) {
  const at::Tensor rows = attention_norm_->forward(x);
  if (!choice_) return attention_->forward_masked(rows, masks, contexts);
  const char* at = "[ExpertChoice] ";
  TORCH_CHECK_VALUE(contexts.empty(), at, "contexts: expected none, got ", contexts.size());
  TORCH_CHECK_VALUE(masks.key_masks.empty(), at, "key_masks: expected none, got ",
                    masks.key_masks.size());
  TORCH_CHECK_VALUE(!masks.cu_seqlens, at, "cu_seqlens: expected none, got ",
                    masks.cu_seqlens->sizes());
  TORCH_CHECK_VALUE(!masks.mask, at, "mask: expected none, got ", masks.mask->sizes());
  return choice_->change(rows, masks.key_lengths, masks.adjacency, masks.positions);
}

at::Tensor TransformerBlockImpl::add_branches(const at::Tensor& x, const at::Tensor& attended) {
  const at::Tensor h = x + attended;
  return h + mlp_->forward(mlp_norm_->forward(h));
}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x, at::TensorList contexts,
                                         const std::optional<at::Tensor>& key_lengths) {
  if (choice_) return forward_masked(x, {.key_lengths = key_lengths}, contexts);
  return add_branches(x, attention_->forward(attention_norm_->forward(x), contexts, key_lengths));
}

at::Tensor TransformerBlockImpl::forward_masked(const at::Tensor& x, const AttentionMasks& masks,
                                                at::TensorList contexts) {
  return add_branches(x, attend(x, masks, contexts));
}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x, LayerCache& cache) {
  if (choice_) choice_->make_cache();  // throws
  return add_branches(x, attention_->forward(attention_norm_->forward(x), cache));
}

at::Tensor TransformerBlockImpl::forward_selected(const at::Tensor& x,
                                                  const SelectedTokens& tokens) {
  return add_branches(x, attend(x, masks_of(tokens), {}));
}

at::Tensor TransformerBlockImpl::change_selected(const at::Tensor& x,
                                                 const SelectedTokens& tokens) {
  const at::Tensor change = attend(x, masks_of(tokens), {});
  return change + mlp_->forward(mlp_norm_->forward(x + change));
}

std::shared_ptr<LayerCache> TransformerBlockImpl::make_cache(int64_t unbounded) const {
  return choice_ ? choice_->make_cache() : attention_->make_cache(unbounded);
}

}  // namespace nsimplex
