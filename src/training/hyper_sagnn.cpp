#include "training/hyper_sagnn.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <string>

namespace nsimplex::training {

using at::Tensor;

namespace {

constexpr double kLogitEps = 1e-6;  // a probability in fp32 has no logit at 0 and 1

}  // namespace

HyperSagnn::Norm HyperSagnn::add_norm(const char* name) {
  const std::string prefix = name;
  return {register_parameter(prefix + "_gain", at::ones({options_.channels})),
          register_parameter(prefix + "_shift", at::zeros({options_.channels}))};
}

HyperSagnn::HyperSagnn(const HyperSagnnOptions& options) : options_(options) {
  const int64_t c = options.channels, inner = options.heads * options.head_dim;
  const auto add = [&](const char* name, int64_t in, int64_t out, bool bias) {
    return register_module(name, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias)));
  };
  query_ = add("query", c, inner, false);
  key_ = add("key", c, inner, false);
  value_ = add("value", c, inner, false);
  mix_ = add("mix", inner, c, false);
  judge_ = add("judge", c, 1, true);
  for (const char* name : {"dynamic1", "dynamic2", "static1", "static2"}) {
    mlp_.push_back(add(name, c, c, true));
  }
  const at::NoGradGuard no_grad;
  const double deviation = std::sqrt(2.0 / static_cast<double>(c + options.head_dim));
  for (const auto& layer : {query_, key_, value_}) layer->weight.normal_(0, deviation);
  query_norm_ = add_norm("query_norm");
  key_norm_ = add_norm("key_norm");
  value_norm_ = add_norm("value_norm");
  dynamic_norm_ = add_norm("dynamic_norm");
  static_norm_ = add_norm("static_norm");
  left_norm_ = add_norm("left_norm");
  right_norm_ = add_norm("right_norm");
}

Tensor HyperSagnn::normalise(const Tensor& x, const Norm& norm) const {
  return at::layer_norm(x, {options_.channels}, norm.gain, norm.shift);
}

// x [m, k, C] -> [m, k, C]: every node from the others of its tuple.
Tensor HyperSagnn::attend(const Tensor& x) {
  const int64_t rows = x.size(0), nodes = x.size(1);
  const auto heads = [&](const Tensor& of) {
    return of.view({rows, nodes, options_.heads, options_.head_dim}).transpose(1, 2);
  };
  const Tensor q = heads(query_->forward(normalise(x, query_norm_))),
               k = heads(key_->forward(normalise(x, key_norm_))),
               v = heads(value_->forward(normalise(x, value_norm_)));
  const Tensor itself = at::eye(nodes, x.options().dtype(at::kBool));
  const Tensor scores = (q.matmul(k.transpose(2, 3)) / std::sqrt(options_.head_dim))
                            .masked_fill(itself, -std::numeric_limits<float>::infinity());
  const Tensor mixed = scores.softmax(-1).matmul(v).transpose(1, 2).reshape({rows, nodes, -1});
  return at::dropout(mix_->forward(mixed), options_.attention_dropout, is_training());
}

// The MLP whose layers begin at `first`.
Tensor HyperSagnn::feed(size_t first, const Tensor& x) {
  const Tensor hidden =
      at::dropout(mlp_[first]->forward(x).tanh(), options_.dropout, is_training());
  return mlp_[first + 1]->forward(hidden);
}

Tensor HyperSagnn::logits(const Tensor& x) {
  const Tensor attended = attend(x);
  const Tensor changed = normalise(attended + feed(0, attended), dynamic_norm_),
               alone = normalise(feed(2, x), static_norm_);
  const Tensor difference = normalise(changed, left_norm_) - normalise(alone, right_norm_);
  return judge_->forward(difference.square()).sigmoid().mean(1).logit(kLogitEps);
}

GraphModel::Forward HyperSagnn::prepare(const GraphBatch& batch) {
  return [this, tuples = batch.output.tuples, features = batch.features] {
    return logits(features.index_select(0, tuples.flatten())
                      .view({tuples.size(0), tuples.size(1), options_.channels}));
  };
}

}  // namespace nsimplex::training
