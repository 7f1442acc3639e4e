#include <ATen/ops/empty.h>

#include "data/tokens.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::data {

Batch gather(const Tokens& tokens, std::span<const int64_t> starts, int64_t context) {
  const int64_t rows = static_cast<int64_t>(starts.size());
  const at::Tensor windows = at::empty({rows, context + 1}, at::kLong);
  int64_t* out = windows.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    tokens.copy(starts[row], context + 1, out + row * (context + 1));
  }
  return {windows.narrow(1, 0, context), windows.narrow(1, 1, context)};
}

BatchSampler::BatchSampler(const Tokens& tokens, Slice slice, int64_t batch, int64_t context,
                           uint64_t seed)
    : tokens_(tokens), slice_(slice), batch_(batch), context_(context), seed_(seed) {
  if (slice.size() <= context) {
    throw InputError("the training text has " + std::to_string(slice.size()) +
                     " tokens: too short for a context of " + std::to_string(context));
  }
}

Batch BatchSampler::next() {
  std::vector<int64_t> starts(static_cast<size_t>(batch_));
  const uint64_t choices = static_cast<uint64_t>(slice_.size() - context_);
  for (int64_t& start : starts) {
    start =
        slice_.begin + static_cast<int64_t>(random_below(choices, random_bits(seed_, position_++)));
  }
  return gather(tokens_, starts, context_);
}

}  // namespace nsimplex::data
