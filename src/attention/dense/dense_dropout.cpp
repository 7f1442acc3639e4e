#include "attention/dense/dense_dropout.h"

#include <ATen/ATen.h>

#include "kernels/common/tuple_hash.h"

// Unsigned numbers in int64 tensors: products and sums wrap to the same bits, and a right shift
// clears the copies of the sign bit.

namespace nsimplex::dense {
namespace {

using at::Tensor;

int64_t as_signed(uint64_t bits) { return static_cast<int64_t>(bits); }

Tensor shift_right(const Tensor& x, int bits) {
  return x.bitwise_right_shift(bits).bitwise_and((int64_t{1} << (64 - bits)) - 1);
}

Tensor low_half(const Tensor& x) { return x.bitwise_and(int64_t{0xFFFFFFFF}); }

Tensor splitmix64(Tensor x) {
  x = x + as_signed(kernels::kGoldenGamma);
  x = x.bitwise_xor(shift_right(x, 30)) * as_signed(0xBF58476D1CE4E5B9u);
  x = x.bitwise_xor(shift_right(x, 27)) * as_signed(0x94D049BB133111EBu);
  return x.bitwise_xor(shift_right(x, 31));
}

Tensor fmix32(Tensor x) {
  x = low_half(x.bitwise_xor(shift_right(x, 16)) * int64_t{0x85EBCA6B});
  x = low_half(x.bitwise_xor(shift_right(x, 13)) * int64_t{0xC2B2AE35});
  return x.bitwise_xor(shift_right(x, 16));
}

}  // namespace

Dropout::Dropout(const Call& call, const Settings& settings) : settings_(settings) {
  if (!active()) return;
  const at::TensorOptions options = call.query.options().dtype(at::kLong);
  const int64_t batch = call.query.size(0), heads = call.query.size(1),
                kv_heads = call.keys[0].size(1);
  const Tensor sequences = at::arange(batch * heads, options).unsqueeze(-1);
  const Tensor queries = at::arange(call.query.size(2), options);
  const int64_t start = as_signed(kernels::splitmix64(static_cast<uint64_t>(settings.seed)));
  rows_ = low_half(splitmix64(splitmix64(sequences.bitwise_xor(start)).bitwise_xor(queries)))
              .view({batch, kv_heads, heads / kv_heads, call.query.size(2)});
  for (int m = 0; m < settings.order; ++m) {
    const uint64_t offset = static_cast<uint64_t>(m + 1) * kernels::kGoldenGamma;
    const Tensor key = at::arange(settings.visible[m].length, options);
    keys_.push_back(low_half(splitmix64(key + as_signed(offset))));
  }
}

Tensor Dropout::factors(const Tile& tile, at::ScalarType type) const {
  Tensor hash = rows_.narrow(3, tile.first_query, tile.queries).unsqueeze(-1);
  for (int m = 0; m < settings_.order; ++m) {
    const Tensor keys = keys_[m].narrow(0, tile.keys[m].begin, tile.keys[m].size());
    if (m > 0) hash = hash.flatten(4, -1).unsqueeze(-1);
    hash = hash.bitwise_xor(keys);
  }
  if (settings_.order == 1) hash = hash.unsqueeze(4);
  const auto threshold = static_cast<int64_t>(kernels::drop_threshold(settings_.dropout_p));
  return fmix32(hash).ge(threshold).to(type) / (1.0 - settings_.dropout_p);
}

}  // namespace nsimplex::dense
