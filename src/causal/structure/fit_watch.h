// Declares the numbers through which a fit and its caller tell each other of progress and stopping.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>

#include <cstdint>
#include <optional>

/// What a fit tells while it runs, and how it is asked to end.
namespace nsimplex::causal {

/// Whether the estimator searches an order of the columns.
inline bool is_order(StructureEstimator estimator) {
  return estimator == StructureEstimator::automatic || estimator == StructureEstimator::order;
}

/// Whether the estimator has a graph that an interruption keeps.
bool keeps_graph(StructureEstimator estimator);

/// How often a fit of a table with this number of rows calls its checkpoint, if that is known:
/// `paper` and `paper_lowrank` go through at most this number of batches. 0 for the others, which
/// stop at convergence.
int64_t steps_of(const CausalFitOptions& options, int64_t rows);

/// Four numbers that a fit shares with the threads of its caller, int64 [4]: the steps done, the
/// steps in all or 0, whether the fit is asked to end, and whether it ended early with the best
/// graph so far. Keeps a reference to the tensor.
class FitWatch {
 public:
  /// c10::ValueError "[causal_fit] watch: ..". Without a tensor nothing is shared.
  explicit FitWatch(const std::optional<at::Tensor>& shared);

  bool shared() const { return at_ != nullptr; }
  void expect(int64_t steps) const { set(1, steps); }
  void step(int64_t done) const { set(0, done); }
  bool asked_to_end() const;
  void ended_early() const { set(3, 1); }

 private:
  void set(int64_t place, int64_t value) const;

  int64_t* at_ = nullptr;
};

}  // namespace nsimplex::causal
