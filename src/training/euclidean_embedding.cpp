#include "training/euclidean_embedding.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <numbers>

#include "causal/embedding/balance.h"
#include "causal/embedding/embed.h"
#include "causal/tensors.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// sum over h <= hops of decay^(h - 1) |A|^h, without loops.
Tensor path_weights(const Tensor& adjacency, int64_t hops, double decay) {
  const Tensor magnitude = adjacency.to(at::kDouble).abs().fill_diagonal_(0);
  Tensor power = magnitude, sum = magnitude.clone();
  for (int64_t hop = 2; hop <= hops; ++hop) {
    power = decay * power.matmul(magnitude);
    sum += power;
  }
  return sum.fill_diagonal_(0);
}

// The magnitudes that count, without loops.
Tensor weights(const Tensor& adjacency, bool balanced) {
  const Tensor magnitude = adjacency.to(at::kDouble).abs().fill_diagonal_(0).contiguous();
  if (!balanced) return magnitude;
  const causal::SparseGraph graph = causal::view_matrix(magnitude).sparseView();
  return causal::to_tensor(causal::Matrix(causal::balanced(graph)));
}

// log cosh of distances.
Tensor log_cosh(const Tensor& distance) {
  return distance + (-2 * distance).exp().log1p() - std::numbers::ln2;
}

}  // namespace

Tensor euclidean_embedding(const Tensor& given, const CausalEmbeddingOptions& options) {
  const int64_t nodes = given.size(0);
  const Tensor adjacency = weights(given, options.balanced);
  const Tensor paths = path_weights(adjacency, options.hops.value_or(2), options.decay);
  const Tensor joined = (paths + paths.t()).gt(0);
  const Tensor weight = options.weight == AttractionWeight::paths ? paths + paths.t() : adjacency;
  const Tensor others = joined.logical_not().fill_diagonal_(false);
  // The generality of nodes depends on the graph alone; no step moves a point.
  CausalEmbeddingOptions none = options;
  none.steps = 0;
  const Tensor generality = causal_embed(given, none).generality;
  const Tensor attracted = weight.masked_fill(joined.logical_not(), 0).sum(1);
  const Tensor pull = causal::to_tensor(
      causal::pulls(causal::view_matrix(attracted.unsqueeze(1)).col(0).array(),
                    causal::view_matrix(generality.unsqueeze(1)).col(0).array(), options)
          .matrix());
  const Tensor strength = pull.squeeze(1);

  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  Tensor points = 1e-2 * at::randn({nodes, options.dimension}, generator, at::kDouble);
  const double rate = options.learning_rate.value_or(0.1);
  for (int64_t step = 0; step < options.steps; ++step) {
    if (options.checkpoint) options.checkpoint(step);
    const Tensor at_step = points.detach().requires_grad_();
    const Tensor apart = at_step.unsqueeze(1) - at_step.unsqueeze(0);
    const Tensor distance = (apart.square().sum(2) + 1e-12).sqrt();
    const Tensor repelling = (-distance).exp().masked_fill(others.logical_not(), 0).sum(1, true);
    const Tensor attraction = weight * (distance + ((-distance).exp() + repelling).log());
    const Tensor radius = (at_step.square().sum(1) + 1e-12).sqrt();
    const Tensor loss = attraction.masked_select(joined).sum() +
                        (strength * (options.relative ? log_cosh(radius) : radius)).sum();
    const Tensor gradient = torch::autograd::grad({loss}, {at_step})[0];
    points = points - rate / static_cast<double>(nodes) * gradient;
  }
  return points;
}

}  // namespace nsimplex::training
