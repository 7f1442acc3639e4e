// Declares the options of a language model's training.

#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string_view>

namespace nsimplex::training {

/// The options of a language model's training. The defaults are meant for small models: a million
/// weights, a few thousand steps.
struct TrainingOptions {
  int64_t steps = 2000;
  int64_t batch = 12;      ///< windows per forward and backward pass
  int64_t accumulate = 1;  ///< passes whose gradients are averaged before one update
  double lr = 3e-3;        ///< learning rate after warm-up
  double min_lr = 0.0;     ///< learning rate of the last step
  int64_t warmup = 100;    ///< steps of linear warm-up
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;
  double clip = 1.0;  ///< largest norm of the whole gradient; 0: unlimited
  bool bf16 = false;  ///< autocast of the forward pass
  /// number of first steps in which layers that choose keys are dense
  int64_t indexer_warmup = 0;
  int64_t log_every = 10;          ///< steps between lines of metrics.jsonl
  int64_t eval_every = 250;        ///< steps between validations; 0: only after the last step
  int64_t eval_tokens = 65536;     ///< validation tokens per evaluation, evenly spread; 0: all
  int64_t checkpoint_every = 250;  ///< 0: only at the start and at the end
  uint64_t seed = 1;               ///< determines the first weights and the batches
  int threads = 0;                 ///< 0: torch's default; sums differ in the last bits with it
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingOptions, steps, batch, accumulate, lr, min_lr, warmup,
                                   beta1, beta2, weight_decay, clip, bf16, indexer_warmup,
                                   log_every, eval_every, eval_tokens, checkpoint_every, seed,
                                   threads)

/// The most steps, epochs or examples that an option may ask for.
inline constexpr int64_t kMostAsked = int64_t{1} << 31;

/// Throws InputError that names the first invalid option.
void check(const TrainingOptions& options);

}  // namespace nsimplex::training
