#include "training/match_size.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "support/error.h"

namespace nsimplex::training {
namespace {

constexpr int64_t kLeastRatio = 3;  // hidden units for each channel

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
  for (; size.dim >= size.heads; size.dim -= size.heads) {
    size.hidden = 0;
    const double without = cost(arm, size, equal);
    size.hidden = 1;
    const double unit = cost(arm, size, equal) - without;
    size.hidden = std::llround((target - without) / unit);
    if (size.hidden >= kLeastRatio * size.dim) return size;
  }
  throw InputError("[match] depth: expected layers that fit into the size of one of order " +
                   std::to_string(reference.order) + ", got " + std::to_string(arm.depth) +
                   " of order " + std::to_string(arm.order));
}

}  // namespace nsimplex::training
