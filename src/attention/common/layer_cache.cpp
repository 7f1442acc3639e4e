// Stores the last rows of a growing sequence in a ring.

#include "attention/common/layer_cache.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <c10/core/InferenceMode.h>

namespace nsimplex::cache {
namespace {

// The initial number of rows, so that appending single tokens does not begin with many small
// copies.
constexpr int64_t kFirstCapacity = 64;

}  // namespace

// Allocates storage for `rows` rows, with the current rows in their slots.
void Ring::reserve(const at::Tensor& like, int64_t rows) {
  const int64_t before = rows_.defined() ? rows_.size(2) : 0;
  if (rows_.defined() && rows <= before) return;
  int64_t capacity = std::max({rows, 2 * before, kFirstCapacity});
  if (window_ >= 0) capacity = std::min(capacity, window_);
  // Storage outlives this call and must be writable outside inference mode.
  const c10::InferenceMode ordinary_tensors(false);
  at::Tensor grown =
      at::empty({like.size(0), like.size(1), capacity, like.size(3)}, like.options());
  if (before > 0) grown.narrow(2, 0, held()).copy_(in_slots());
  rows_ = std::move(grown);
}

void Ring::append(const at::Tensor& rows) {
  const int64_t added = rows.size(2);
  const int64_t kept = window_ < 0 ? added : std::min(added, window_);
  reserve(rows, std::min(position_ + added, window_ < 0 ? position_ + added : window_));
  const int64_t capacity = rows_.size(2);
  for (int64_t done = added - kept; done < added;) {
    const int64_t slot = (position_ + done) % capacity;
    const int64_t count = std::min(added - done, capacity - slot);
    rows_.narrow(2, slot, count).copy_(rows.narrow(2, done, count));
    done += count;
  }
  position_ += added;
}

at::Tensor Ring::last(int64_t count) const {
  const int64_t capacity = rows_.size(2);
  const int64_t slot = capacity > 0 ? (position_ - count) % capacity : 0;
  const int64_t first = std::min(count, capacity - slot);
  const at::Tensor part = rows_.narrow(2, slot, first);
  return first == count ? part : at::cat({part, rows_.narrow(2, 0, count - first)}, 2);
}

void Ring::reset() {
  position_ = 0;
  rows_ = at::Tensor();
}

void Ring::select(const at::Tensor& entries) {
  const c10::InferenceMode ordinary_tensors(false);
  rows_ = rows_.index_select(0, entries);
}

void Ring::restore(const at::Tensor& rows, int64_t position) {
  reset();
  position_ = position - rows.size(2);
  append(rows);
}

void check_entries(const char* at, const at::Tensor& entries, int64_t batch) {
  TORCH_CHECK_TYPE(entries.scalar_type() == at::kLong, at, "entries: expected int64, got ",
                   entries.scalar_type());
  TORCH_CHECK_VALUE(entries.dim() == 1 && entries.numel() > 0, at,
                    "entries: expected shape [B'] with at least 1 entry, got ", entries.sizes());
  TORCH_CHECK_VALUE(batch > 0, at,
                    "entries: expected a cache that holds tokens to select from, got an empty one");
  const int64_t lowest = entries.min().item<int64_t>(), highest = entries.max().item<int64_t>();
  TORCH_CHECK_VALUE(lowest >= 0 && highest < batch, at, "entries: expected 0 to ", batch - 1,
                    ", got ", lowest < 0 ? lowest : highest);
}

}  // namespace nsimplex::cache
