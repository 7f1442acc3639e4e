#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

/// The duration of the steps of causal encodings (section G.4 of Xu et al., arXiv 2509.16629) in
/// seconds of processor time, which does not grow on a busy machine. With one thread on a quiet
/// machine this equals the time on the clock.
namespace nsimplex::training {

/// Seconds of an epoch of Step I as in the paper (StructureEstimator::paper). It times the batches
/// that begin within `budget` seconds, at least one, and scales their time to the whole epoch.
struct EpochSeconds {
  double seconds;
  int64_t batches, timed;  ///< batches of the epoch, and how many of them were timed
};
EpochSeconds time_structure_epoch(const at::Tensor& table, double budget,
                                  const std::function<void()>& checkpoint = {});

/// Seconds of one step over all nodes of Step II with the tangent optimiser, mean of `steps`.
double time_embedding_step(const at::Tensor& graph, int64_t dimension, int64_t steps,
                           const std::function<void()>& checkpoint = {});

/// Seconds of a whole fit with the default estimator, `order`.
double time_order(const at::Tensor& table, const std::function<void()>& checkpoint = {});

}  // namespace nsimplex::training
