// Checks the options of trainings.

#include "train/training_options.h"

#include <fmt/format.h>

#include <cmath>

#include "support/require.h"

namespace nsimplex::training {

void check(const TrainingOptions& o) {
  require_within("--steps", 1, kMostAsked, o.steps);
  require_within("--batch", 1, kMostAsked, o.batch);
  require_within("--accumulate", 1, kMostAsked, o.accumulate);
  require_within("--warmup", 0, kMostAsked, o.warmup);
  require_within("--indexer-warmup", 0, kMostAsked, o.indexer_warmup);
  require_within("--log-every", 1, kMostAsked, o.log_every);
  require_within("--eval-every", 0, kMostAsked, o.eval_every);
  require_within("--eval-tokens", 0, kMostAsked, o.eval_tokens);
  require_within("--checkpoint-every", 0, kMostAsked, o.checkpoint_every);
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
