#include "training/match.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "support/error.h"
#include "training/adamw.h"
#include "training/diverged.h"
#include "training/match_model.h"
#include "training/parameters.h"
#include "training/schedule.h"
#include "training/statistics.h"
#include "training/stopwatch.h"

namespace nsimplex::training {
namespace {

constexpr int64_t kWarmup = 50;

void require_positive(const char* name, int64_t value) {
  if (value >= 1) return;
  throw InputError("[match] " + std::string(name) + ": expected at least 1, got " +
                   std::to_string(value));
}

bool is_prime(int64_t number) {
  for (int64_t factor = 2; factor <= number / factor; ++factor) {
    if (number % factor == 0) return false;
  }
  return number >= 2;
}

// One arm in training.
class Contestant {
 public:
  Contestant(const MatchOptions& o, const MatchArm& arm, const at::Generator& generator)
      : model_(arm, size_of(o, arm), o.norm, generator),
        optimizer_(named_parameters(model_), {.beta2 = 0.999, .weight_decay = 0.01}) {
    result_.size = size_of(o, arm);
    result_.flops = match_flops(arm, result_.size);
    result_.parameters = parameter_count(model_);
  }

  // Update `number`, counted from 1. Returns the loss.
  double step(int64_t number, const MatchSequences& batch, double rate) {
    const Stopwatch watch;
    const at::Tensor loss =
        at::binary_cross_entropy_with_logits(model_.forward(batch.tokens), batch.labels);
    const at::Tensor indexers = model_.auxiliary_loss();
    optimizer_.zero_grad();
    (indexers.defined() ? loss + indexers : loss).backward();
    const double value = loss.item<double>();
    require_finite(number, value, optimizer_.gradient_norm());
    optimizer_.step(rate);
    times_.push_back(watch.seconds());
    result_.seconds += times_.back();
    return value;
  }

  // The share of right answers after update `number`.
  double evaluate(int64_t number, const MatchSequences& data, int64_t batch) {
    const Stopwatch watch;
    const at::NoGradGuard no_grad;
    int64_t right = 0;
    const auto tokens = data.tokens.split(batch), labels = data.labels.split(batch);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const at::Tensor logits = model_.forward(tokens[i]);
      require_finite_outputs(number, logits);
      right += ((logits > 0) == (labels[i] > 0)).sum().item<int64_t>();
    }
    result_.accuracy = static_cast<double>(right) / static_cast<double>(data.labels.numel());
    result_.seconds += watch.seconds();
    return result_.accuracy;
  }

  MatchResult result() {
    result_.step_seconds = median(times_);
    return result_;
  }

 private:
  MatchModel model_;
  AdamW optimizer_;
  std::vector<double> times_;  // seconds of each step
  MatchResult result_;
};

}  // namespace

MatchSize size_of(const MatchOptions& o, const MatchArm& arm) {
  const MatchArm reference{.order = o.reference_order};
  const MatchSize size{.modulus = o.task.modulus,
                       .length = o.task.length,
                       .heads = o.heads,
                       .dim = o.dim,
                       .hidden = 4 * o.dim};
  return equal_size(arm, reference, size, o.equal);
}

void check_match(const MatchOptions& o, const std::vector<MatchArm>& arms) {
  require_positive("reference_order", o.reference_order);
  require_positive("dim", o.dim);
  require_positive("heads", o.heads);
  require_positive("batch", o.batch);
  require_positive("steps", o.steps);
  require_positive("evaluate_every", o.evaluate_every);
  require_positive("held_out", o.held_out);
  if (!(o.learning_rate > 0)) throw InputError("[match] learning_rate: expected a positive number");
  if (o.dim % o.heads != 0) {
    throw InputError("[match] heads: expected a divisor of dim " + std::to_string(o.dim) +
                     ", got " + std::to_string(o.heads));
  }
  if (arms.empty()) throw InputError("[match] arms: expected at least one");
  for (const MatchArm& arm : arms) {
    require_positive("order", arm.order);
    require_positive("depth", arm.depth);
    if (arm.tuples != MatchTuples::dense) require_positive("topk", arm.topk);
    size_of(o, arm);
  }
  // M is prime, so that no number but 0 matches itself alone. Whether there are sequences is said
  // first: that depends on the size of M.
  const std::string expected = "expected a prime, got " + std::to_string(o.task.modulus);
  const bool prime = is_prime(o.task.modulus);
  try {
    draw_match(1, o.task, at::make_generator<at::CPUGeneratorImpl>(0));
  } catch (const InputError& error) {
    if (prime || o.task.modulus < 2) throw;
    throw InputError(error.what() + ("; " + expected));
  }
  if (!prime) {
    throw InputError("[match" + std::to_string(o.task.arity) + "] modulus: " + expected);
  }
}

std::vector<MatchResult> train_match(
    const MatchOptions& options, const std::vector<MatchArm>& arms, uint64_t seed,
    const std::function<void(size_t arm, const MatchPoint&)>& report) {
  const auto& o = options;
  check_match(o, arms);
  // Streams of their own, so that arms do not depend on each other: each arm's weights start from
  // the same state, and the sequences are theirs in common.
  const auto stream = [&](uint64_t which) {
    return at::make_generator<at::CPUGeneratorImpl>(3 * seed + which);
  };
  const at::Generator fresh = stream(1);
  const MatchSequences held_out = draw_match(o.held_out, o.task, stream(2));
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (const MatchArm& arm : arms) {
    contestants.push_back(std::make_unique<Contestant>(o, arm, stream(0)));
  }

  const Schedule schedule{o.learning_rate, 0.0, std::min(kWarmup, o.steps / 10), o.steps};
  for (int64_t step = 1; step <= o.steps; ++step) {
    const MatchSequences batch = draw_match(o.batch, o.task, fresh);
    const bool due = step % o.evaluate_every == 0 || step == o.steps;
    for (size_t i = 0; i < contestants.size(); ++i) {
      MatchPoint point{step, contestants[i]->step(step, batch, schedule.rate(step - 1)),
                       std::numeric_limits<double>::quiet_NaN()};
      if (due) point.accuracy = contestants[i]->evaluate(step, held_out, o.batch);
      report(i, point);
    }
  }

  const double ones = held_out.labels.mean().item<double>();
  std::vector<MatchResult> results;
  for (const auto& contestant : contestants) {
    results.push_back(contestant->result());
    results.back().majority = std::max(ones, 1.0 - ones);
  }
  return results;
}

}  // namespace nsimplex::training
