// What dropout drops, against the scalar hash that defines it.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>

#include <limits>

#include "kernels/common/tuple_hash.h"

namespace nsimplex {
namespace {

using at::Tensor;

constexpr int64_t kBatch = 2, kHeads = 4, kQueries = 3;

// Values whose product over the axes is one-hot in the tuple: channel c stands for the tuple that
// is c in mixed radix. The output's channels are then the tuples' weights.
std::vector<Tensor> indicators(const std::vector<int64_t>& lengths) {
  int64_t tuples = 1;
  for (const int64_t length : lengths) tuples *= length;
  const Tensor channel = at::arange(tuples, at::kLong);
  std::vector<Tensor> values;
  int64_t stride = tuples;
  for (const int64_t length : lengths) {
    stride /= length;
    const Tensor index = channel.div(stride, "trunc").remainder(length);
    const Tensor rows = index.unsqueeze(0).eq(at::arange(length, at::kLong).unsqueeze(1));
    values.push_back(rows.to(at::kFloat).expand({kBatch, 2, length, tuples}));
  }
  return values;
}

// Which tuples are kept: [B, Hq, Tq, tuples].
Tensor kept_by_hash(const std::vector<int64_t>& lengths, double p, int64_t seed) {
  const uint32_t threshold = kernels::drop_threshold(p);
  std::vector<Tensor> rows;
  for (int64_t row = 0; row < kBatch * kHeads; ++row) {
    for (int64_t query = 0; query < kQueries; ++query) {
      std::vector<uint32_t> keys{kernels::hash_row(static_cast<uint64_t>(seed), row, query)};
      for (size_t m = 0; m < lengths.size(); ++m) {
        std::vector<uint32_t> longer;
        for (const uint32_t key : keys) {
          for (int64_t j = 0; j < lengths[m]; ++j) {
            longer.push_back(key ^ kernels::hash_key(static_cast<int>(m), j));
          }
        }
        keys = std::move(longer);
      }
      const Tensor keeps = at::empty({static_cast<int64_t>(keys.size())}, at::kBool);
      for (size_t i = 0; i < keys.size(); ++i) {
        keeps.mutable_data_ptr<bool>()[i] = kernels::keeps_tuple(keys[i], threshold);
      }
      rows.push_back(keeps);
    }
  }
  return at::stack(rows).view({kBatch, kHeads, kQueries, -1});
}

TEST(DenseDropout, DropsWhatTheHashSays) {
  const std::vector<std::vector<int64_t>> shapes{{37}, {5, 9}, {3, 4, 5}};
  for (const std::vector<int64_t>& lengths : shapes) {
    const std::vector<Tensor> values = indicators(lengths);
    std::vector<Tensor> keys;
    for (const int64_t length : lengths) keys.push_back(at::randn({kBatch, 2, length, 4}));
    const Tensor query = at::randn({kBatch, kHeads, kQueries, 4});
    for (const int64_t seed : {int64_t{0}, int64_t{-5}, std::numeric_limits<int64_t>::max()}) {
      for (const double p : {0.25, 0.999}) {
        const AttentionOptions options{.dropout_p = p, .seed = seed};
        const Tensor expected = kept_by_hash(lengths, p, seed);
        const Tensor weights = attention_reference(query, keys, values).out;
        const Tensor dropped = weights * expected / (1 - p);
        for (const auto& function : {attention, attention_reference}) {
          const Tensor out = function(query, keys, values, options).out;
          EXPECT_TRUE(at::equal(out.ne(0), expected)) << "order " << lengths.size();
          EXPECT_TRUE(at::allclose(out, dropped, 1e-4, 1e-6));
        }
      }
    }
  }
}

TEST(DenseDropout, ASeedIsDrawnFromTheDefaultGenerator) {
  const Tensor x = at::randn({1, 1, 20, 4});
  const auto run = [&] { return attention(x, {x, x}, {x, x}, {.dropout_p = 0.5}).out; };
  at::manual_seed(3);
  const Tensor one = run();
  EXPECT_FALSE(at::equal(one, run()));
  at::manual_seed(3);
  EXPECT_TRUE(at::equal(one, run()));
}

}  // namespace
}  // namespace nsimplex
