// Draws sequences of the Match tasks, and counts parameters and operations of the models.

#include "lab/match/match_data.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/error.h"

namespace nsimplex::training {
namespace {

constexpr int64_t kCandidates = 2048;  // drawn at a time
constexpr int64_t kRarest = 2000;      // candidates a kept sequence may cost on average

std::string at_task(const MatchTask& task) { return "[match" + std::to_string(task.arity) + "] "; }

void check(const MatchTask& task) {
  const auto at_least_two = [&](const char* name, int64_t value) {
    if (value < 2) {
      throw InputError(at_task(task) + name + ": expected at least 2, got " +
                       std::to_string(value));
    }
  };
  at_least_two("arity", task.arity);
  at_least_two("length", task.length);
  at_least_two("modulus", task.modulus);
}

// Labels one sequence after the other and keeps the sets in between.
class Labeller {
 public:
  explicit Labeller(const MatchTask& task) : task_(task), is_sum_(task.modulus) {}

  // Writes the labels of x and returns the number of ones.
  int64_t label(const int64_t* x, float* labels) {
    sums_ = {0};
    for (int64_t m = 1; m < task_.arity; ++m) add_one_of(x);
    for (const int64_t sum : sums_) is_sum_[sum] = 1;
    int64_t ones = 0;
    for (int64_t i = 0; i < task_.length; ++i) {
      const bool matched = is_sum_[(task_.modulus - x[i]) % task_.modulus];
      labels[i] = matched ? 1.0F : 0.0F;
      ones += matched;
    }
    for (const int64_t sum : sums_) is_sum_[sum] = 0;
    return ones;
  }

 private:
  // sums := {s + x_j mod M} without repetitions: sums with one position more.
  void add_one_of(const int64_t* x) {
    larger_.clear();
    for (const int64_t sum : sums_) {
      for (int64_t j = 0; j < task_.length; ++j) {
        const int64_t next = (sum + x[j]) % task_.modulus;
        if (!is_sum_[next]) larger_.push_back(next);
        is_sum_[next] = 1;
      }
    }
    for (const int64_t sum : larger_) is_sum_[sum] = 0;
    std::swap(sums_, larger_);
  }

  const MatchTask& task_;
  std::vector<char> is_sum_;  // all zero between calls
  std::vector<int64_t> sums_, larger_;
};

}  // namespace

MatchTask match_task(int64_t arity) {
  // Half of the labels are 1 if M is near T, T^2 / 2 and T^3 / 6 divided by log 2. A smaller
  // modulus is easier to learn and leaves enough sequences with balanced labels.
  switch (arity) {
    case 2:
      return {.arity = 2, .modulus = 13, .length = 8};
    case 3:
      return {.arity = 3, .modulus = 37, .length = 8};
    case 4:
      return {.arity = 4, .modulus = 127, .length = 8};
    default:
      throw InputError("[match] arity: expected 2, 3 or 4, got " + std::to_string(arity));
  }
}

MatchSequences draw_match(int64_t count, const MatchTask& task, const at::Generator& generator) {
  check(task);
  const int64_t length = task.length;
  MatchSequences kept{at::empty({count, length}, at::kLong),
                      at::empty({count, length}, at::kFloat)};
  int64_t* tokens = kept.tokens.mutable_data_ptr<int64_t>();
  float* kept_labels = kept.labels.mutable_data_ptr<float>();
  Labeller labeller(task);
  std::vector<float> candidate_labels(length);

  for (int64_t filled = 0, drawn = 0; filled < count; drawn += kCandidates) {
    if (drawn > kRarest * (filled + 16)) {
      throw InputError(at_task(task) + "modulus: sequences of length " + std::to_string(length) +
                       " modulo " + std::to_string(task.modulus) +
                       " rarely have balanced labels; try a modulus near length^" +
                       std::to_string(task.arity - 1) +
                       (task.arity == 2   ? ""
                        : task.arity == 3 ? " / 2"
                                          : " / 6"));
    }
    const at::Tensor candidates =
        at::randint(task.modulus, {kCandidates, length}, generator, at::kLong);
    const int64_t* x = candidates.const_data_ptr<int64_t>();
    for (int64_t c = 0; c < kCandidates && filled < count; ++c, x += length) {
      const int64_t wanted = (length + filled % 2) / 2;
      const int64_t ones = labeller.label(x, candidate_labels.data());
      if (task.labels == MatchLabels::balanced && ones != wanted) continue;
      std::copy_n(x, length, tokens + filled * length);
      std::copy_n(candidate_labels.data(), length, kept_labels + filled * length);
      ++filled;
    }
  }
  return kept;
}

namespace {

constexpr int64_t kLeastRatio = 3;  // hidden units per channel

int64_t index_weights(const MatchArm& arm, const MatchSize& size) {
  if (arm.tuples == MatchTuples::dense) return 0;
  return (kMatchIndexHeads * kMatchIndexDim + kMatchIndexDim + kMatchIndexHeads) * size.dim;
}

int64_t block_weights(const MatchArm& arm, const MatchSize& size) {
  return (2 * arm.order + 2) * size.dim * size.dim + 2 * size.dim * size.hidden;
}

double keys_of(const MatchArm& arm, const MatchSize& size) {
  const bool dense = arm.tuples == MatchTuples::dense;
  return static_cast<double>(dense ? size.length : std::min(arm.topk, size.length));
}

double index_flops(const MatchArm& arm, const MatchSize& size, double tuples) {
  if (arm.tuples == MatchTuples::dense) return 0;
  constexpr double kChannels = kMatchIndexHeads * kMatchIndexDim;
  return 4 * static_cast<double>(index_weights(arm, size)) +
         kChannels * (2 * static_cast<double>(size.length) + 6 * keys_of(arm, size)) +
         2 * static_cast<double>(size.dim) * tuples;
}

double cost(const MatchArm& arm, const MatchSize& size, MatchEqual equal) {
  return equal == MatchEqual::flops ? match_flops(arm, size)
                                    : static_cast<double>(match_parameters(arm, size));
}

}  // namespace

int64_t match_parameters(const MatchArm& arm, const MatchSize& size) {
  const int64_t norms = 2 * size.dim;
  return size.modulus * size.dim +
         arm.depth * (block_weights(arm, size) + norms + index_weights(arm, size)) + 2 * size.dim +
         1;
}

double match_flops(const MatchArm& arm, const MatchSize& size) {
  const double tuples = std::pow(keys_of(arm, size), static_cast<double>(arm.order));
  const auto dim = static_cast<double>(size.dim);
  const double block = 6 * static_cast<double>(block_weights(arm, size)) + 16 * dim * tuples +
                       index_flops(arm, size, tuples);
  return static_cast<double>(arm.depth) * block + 6 * dim;
}

MatchSize equal_size(const MatchArm& arm, const MatchArm& reference,
                     const MatchSize& reference_size, MatchEqual equal) {
  const double target = cost(reference, reference_size, equal);
  MatchSize size = reference_size;
  const int64_t step = size.heads * (arm.form == Form::determinant ? arm.order + 1 : 1);
  for (size.dim -= size.dim % step; size.dim >= step; size.dim -= step) {
    size.hidden = 0;
    const double without = cost(arm, size, equal);
    size.hidden = 1;
    const double unit = cost(arm, size, equal) - without;
    size.hidden = std::llround((target - without) / unit);
    if (size.hidden >= kLeastRatio * size.dim) return size;
  }
  throw InputError("--depth: expected layers that fit into the size of one of order " +
                   std::to_string(reference.order) + ", got " + std::to_string(arm.depth) +
                   " of order " + std::to_string(arm.order));
}

}  // namespace nsimplex::training
