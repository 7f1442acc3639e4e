// Checks the options of a language model's training.

#include "train/training_options.h"

#include <fmt/format.h>

#include <cmath>

#include "support/require.h"

namespace nsimplex::training {
void check(const TrainingOptions& o) {
  require_at_least("--steps", 1, o.steps);
  require_at_least("--batch", 1, o.batch);
  require_at_least("--accumulate", 1, o.accumulate);
  require_at_least("--warmup", 0, o.warmup);
  require_at_least("--indexer-warmup", 0, o.indexer_warmup);
  require_at_least("--log-every", 1, o.log_every);
  require_at_least("--eval-every", 0, o.eval_every);
  require_at_least("--eval-tokens", 0, o.eval_tokens);
  require_at_least("--checkpoint-every", 0, o.checkpoint_every);
  require_argument(o.lr > 0 && std::isfinite(o.lr), "--lr", "a positive number", o.lr);
  require_argument(o.min_lr >= 0 && o.min_lr <= o.lr, "--min-lr", "a number from 0 to --lr",
                   o.min_lr);
  require_argument(o.beta1 >= 0 && o.beta1 < 1, "--beta1", "a number in [0, 1)", o.beta1);
  require_argument(o.beta2 >= 0 && o.beta2 < 1, "--beta2", "a number in [0, 1)", o.beta2);
  require_argument(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "--weight-decay",
                   "0 or more", o.weight_decay);
  require_argument(o.clip >= 0, "--clip", "0 (unlimited) or more", o.clip);
}

}  // namespace nsimplex::training
