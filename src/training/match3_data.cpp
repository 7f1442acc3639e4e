#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/error.h"
#include "training/match3.h"

namespace nsimplex::training {
namespace {

constexpr int64_t kCandidates = 2048;  // drawn at a time
constexpr int64_t kRarest = 2000;      // candidates a kept sequence may cost on average

// Writes the labels of one sequence and returns their number of ones. `is_pair_sum` is scratch of
// `modulus` entries.
int64_t label(const int64_t* x, int64_t length, int64_t modulus, std::vector<char>& is_pair_sum,
              float* labels) {
  std::fill(is_pair_sum.begin(), is_pair_sum.end(), 0);
  for (int64_t a = 0; a < length; ++a) {
    for (int64_t b = a; b < length; ++b) is_pair_sum[(x[a] + x[b]) % modulus] = 1;
  }
  int64_t ones = 0;
  for (int64_t i = 0; i < length; ++i) {
    const bool matched = is_pair_sum[(modulus - x[i]) % modulus];
    labels[i] = matched ? 1.0F : 0.0F;
    ones += matched;
  }
  return ones;
}

}  // namespace

Match3Sequences draw_match3(int64_t count, int64_t length, int64_t modulus, Match3Labels labels,
                            const at::Generator& generator) {
  if (length < 2)
    throw InputError("[match3] length: expected at least 2, got " + std::to_string(length));
  if (modulus < 2) {
    throw InputError("[match3] modulus: expected at least 2, got " + std::to_string(modulus));
  }
  Match3Sequences kept{at::empty({count, length}, at::kLong),
                       at::empty({count, length}, at::kFloat)};
  int64_t* tokens = kept.tokens.mutable_data_ptr<int64_t>();
  float* kept_labels = kept.labels.mutable_data_ptr<float>();
  std::vector<char> scratch(modulus);
  std::vector<float> candidate_labels(length);

  for (int64_t filled = 0, drawn = 0; filled < count; drawn += kCandidates) {
    if (drawn > kRarest * (filled + 16)) {
      throw InputError("[match3] modulus: sequences of length " + std::to_string(length) +
                       " modulo " + std::to_string(modulus) +
                       " hardly ever have balanced labels; try a modulus near length^2 / 2");
    }
    const at::Tensor candidates = at::randint(modulus, {kCandidates, length}, generator, at::kLong);
    const int64_t* x = candidates.const_data_ptr<int64_t>();
    for (int64_t c = 0; c < kCandidates && filled < count; ++c, x += length) {
      const int64_t wanted = (length + filled % 2) / 2;
      const int64_t ones = label(x, length, modulus, scratch, candidate_labels.data());
      if (labels == Match3Labels::balanced && ones != wanted) continue;
      std::copy_n(x, length, tokens + filled * length);
      std::copy_n(candidate_labels.data(), length, kept_labels + filled * length);
      ++filled;
    }
  }
  return kept;
}

}  // namespace nsimplex::training
