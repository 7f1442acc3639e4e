#include "training/causal_timing.h"

#include <ATen/ATen.h>
#include <nsimplex/causal_embedding.h>
#include <nsimplex/causal_structure.h>

#include <ctime>

#include "causal/structure/paper_schedule.h"

namespace nsimplex::training {
namespace {

struct Enough {};  // thrown from a checkpoint to end a fit

// Seconds that the processors worked for this process since it was made.
class ProcessorStopwatch {
 public:
  double seconds() const {
    return static_cast<double>(std::clock() - start_) / static_cast<double>(CLOCKS_PER_SEC);
  }

 private:
  std::clock_t start_ = std::clock();
};

}  // namespace

EpochSeconds time_structure_epoch(const at::Tensor& table, double budget,
                                  const std::function<void()>& checkpoint) {
  const int64_t batches = causal::paper_batches(table.size(0));
  ProcessorStopwatch watch;
  int64_t begun = 0;
  double seconds = 0;
  CausalFitOptions options;
  options.estimator = StructureEstimator::paper;
  options.checkpoint = [&] {  // before each batch
    if (checkpoint) checkpoint();
    seconds = watch.seconds();
    if (begun == 0) {
      watch = ProcessorStopwatch();  // what went before belongs to no epoch
      seconds = 0;
    }
    if (begun == batches || (begun > 0 && seconds > budget)) throw Enough();
    ++begun;
  };
  try {
    causal_fit(table, options);
  } catch (const Enough&) {
  }
  const double share = static_cast<double>(begun) / static_cast<double>(batches);
  return {seconds / share, batches, begun};
}

double time_embedding_step(const at::Tensor& graph, int64_t dimension, int64_t steps,
                           const std::function<void()>& checkpoint) {
  CausalEmbeddingOptions options;
  options.dimension = dimension;
  options.steps = steps;
  options.negatives = 0;  // all of them, as the paper has it
  ProcessorStopwatch watch;
  options.checkpoint = [&](int64_t step) {
    if (checkpoint) checkpoint();
    if (step == 0) watch = ProcessorStopwatch();
  };
  causal_embed(graph, options);
  return watch.seconds() / static_cast<double>(steps);
}

double time_order(const at::Tensor& table, const std::function<void()>& checkpoint) {
  CausalFitOptions options;
  options.checkpoint = checkpoint;
  const ProcessorStopwatch watch;
  causal_fit(table, options);
  return watch.seconds();
}

}  // namespace nsimplex::training
