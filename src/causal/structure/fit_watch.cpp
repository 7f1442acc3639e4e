// Shares the progress of a fit with its caller, and the wish to end it.

#include "causal/structure/fit_watch.h"

#include <c10/util/Exception.h>

#include <atomic>

#include "causal/structure/cape_structure.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kAskedToEnd = 2, kNumbers = 4;

}  // namespace

bool keeps_graph(StructureEstimator estimator) {
  return is_order(estimator) || estimator == StructureEstimator::spectral;
}

int64_t steps_of(const CausalFitOptions& options, int64_t rows) {
  const bool in_batches = options.estimator == StructureEstimator::paper ||
                          options.estimator == StructureEstimator::paper_lowrank;
  return in_batches ? kPaperLoops * kPaperEpochs * paper_batches(rows) : 0;
}

FitWatch::FitWatch(const std::optional<at::Tensor>& shared) {
  if (!shared) return;
  TORCH_CHECK_VALUE(
      shared->scalar_type() == at::kLong && shared->is_cpu() && shared->is_contiguous() &&
          shared->dim() == 1 && shared->size(0) == kNumbers,
      "[causal_fit] watch: expected contiguous int64 [", kNumbers, "] on the CPU, got ",
      shared->scalar_type(), " ", shared->sizes(), " on ", shared->device());
  at_ = shared->mutable_data_ptr<int64_t>();
}

// Only the numbers themselves are shared, so no order between them is needed.
bool FitWatch::asked_to_end() const {
  return shared() && std::atomic_ref(at_[kAskedToEnd]).load(std::memory_order_relaxed) != 0;
}

void FitWatch::set(int64_t place, int64_t value) const {
  if (shared()) std::atomic_ref(at_[place]).store(value, std::memory_order_relaxed);
}

}  // namespace nsimplex::causal
