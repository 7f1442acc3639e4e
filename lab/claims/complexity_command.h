#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

/// How long the steps of causal encodings take (section G.4 of Xu et al., arXiv 2509.16629), in
/// seconds of processor time, which a busy machine does not stretch; of one thread they are those
/// of the clock on a quiet one.
namespace nsimplex::training {

/// Seconds of an epoch of Step I as the paper has it, StructureEstimator::paper: of as many of its
/// batches as begin within `budget` seconds, at least one, scaled to all of them.
struct EpochSeconds {
  double seconds;
  int64_t batches, timed;  ///< of the epoch; of these so many were timed
};
EpochSeconds time_structure_epoch(const at::Tensor& table, double budget,
                                  const std::function<void()>& checkpoint = {});

/// Seconds of one step over all nodes of Step II with the tangent optimiser, mean of `steps`.
double time_embedding_step(const at::Tensor& graph, int64_t dimension, int64_t steps,
                           const std::function<void()>& checkpoint = {});

/// Seconds of a whole fit with the default estimator, `order`.
double time_order(const at::Tensor& table, const std::function<void()>& checkpoint = {});

}  // namespace nsimplex::training
