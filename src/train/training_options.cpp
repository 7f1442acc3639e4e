#include "train/training_options.h"

#include <fmt/format.h>

#include <cmath>

#include "support/error.h"

namespace nsimplex::training {
namespace {

template <class Value>
void require(bool holds, const char* name, const char* expected, Value value) {
  if (!holds) throw InputError(fmt::format("{}: expected {}, got {}", name, expected, value));
}

void at_least(const char* name, int64_t smallest, int64_t value) {
  if (value < smallest) {
    throw InputError(fmt::format("{}: expected at least {}, got {}", name, smallest, value));
  }
}

}  // namespace

void check(const TrainingOptions& o) {
  at_least("steps", 1, o.steps);
  at_least("batch", 1, o.batch);
  at_least("accumulate", 1, o.accumulate);
  at_least("warmup", 0, o.warmup);
  at_least("indexer-warmup", 0, o.indexer_warmup);
  at_least("log-every", 1, o.log_every);
  at_least("eval-every", 0, o.eval_every);
  at_least("eval-tokens", 0, o.eval_tokens);
  at_least("checkpoint-every", 0, o.checkpoint_every);
  require(o.lr > 0 && std::isfinite(o.lr), "lr", "a positive number", o.lr);
  require(o.min_lr >= 0 && o.min_lr <= o.lr, "min-lr", "a number from 0 to lr", o.min_lr);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1", "a number in [0, 1)", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2", "a number in [0, 1)", o.beta2);
  require(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "weight-decay", "0 or more",
          o.weight_decay);
  require(o.clip >= 0, "clip", "0 (unlimited) or more", o.clip);
}

}  // namespace nsimplex::training
