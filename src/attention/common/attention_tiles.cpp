// Divides a call of the reference into tiles whose temporaries stay small.

#include "attention/common/attention_tiles.h"

#include <algorithm>

namespace nsimplex::dense {
namespace {

// Elements of the largest temporary of a tile: 4 MB in fp32, so that the few temporaries of a tile
// stay near the cache. A tile of one query and one leading tuple may exceed it; it is then O(T).
constexpr int64_t kTileElements = int64_t{1} << 20;

// On other devices each of these calls is a kernel launch, and a small tile would not occupy the
// device: 128 MB.
constexpr int64_t kDeviceTileElements = int64_t{1} << 25;

// Queries of a block share the union of their windows. A block much longer than the narrowest
// window would compute mostly masked tuples. Below 8 queries the overhead of the calls dominates.
constexpr int64_t kMinimumBlock = 8;

}  // namespace

Tiling::Tiling(const Call& call, const Settings& settings)
    : settings_(settings),
      queries_(call.query.size(2)),
      sequences_(call.query.size(0) * call.query.size(1)),
      channels_(call.query.size(3) + call.values[0].size(3)) {
  // Exterior products of N - 1 vectors have N / 2 times as many components.
  if (settings.form == Form::determinant) {
    channels_ += call.query.size(3) * ((settings.order - 1) / 2);
  }
  // Positions are data, possibly on a device for which the CPU does not wait. Then a tile has all
  // keys.
  if (call.options.query_positions) {
    for (kernels::Visibility& visible : settings_.visible) {
      visible = {.length = visible.length, .offset = visible.offset};
    }
  }
  const int64_t most = call.query.is_cpu() ? kTileElements : kDeviceTileElements;
  block_ = std::max<int64_t>(queries_, 1);
  for (int m = 0; m < settings.order; ++m) {
    const kernels::Visibility& visible = settings_.visible[m];
    step_[m] = std::max<int64_t>(visible.length, 1);
    const bool bounded_right = visible.right >= 0 || visible.causal;
    if (visible.left < 0 || !bounded_right) continue;
    const int64_t width = visible.left + (visible.causal ? 0 : visible.right);
    block_ = std::min(block_, std::max(kMinimumBlock, width));
  }
  while (block_ > 1 && elements(block_) > most) block_ = (block_ + 1) / 2;
  for (int m = 0; m + 1 < settings.order; ++m) {
    while (step_[m] > 1 && elements(block_) > most) step_[m] = (step_[m] + 1) / 2;
  }
}

kernels::Range Tiling::seen(int axis, int64_t first_query, int64_t queries) const {
  const kernels::Visibility& visible = settings_.visible[axis];
  return {visible.of(0, first_query).begin, visible.of(0, first_query + queries - 1).end};
}

// Elements of the scores and the combined rows of one tile, for a block in the middle of the
// sequence, which is the widest one.
int64_t Tiling::elements(int64_t queries) const {
  int64_t leading = 1;
  const auto keys = [&](int m) {
    const kernels::Visibility& visible = settings_.visible[m];
    const bool bounded = visible.left >= 0 && (visible.right >= 0 || visible.causal);
    if (!bounded) return visible.length;
    return std::min(visible.length,
                    visible.left + (visible.causal ? 0 : visible.right) + queries - 1);
  };
  for (int m = 0; m + 1 < settings_.order; ++m) leading *= std::min(step_[m], keys(m));
  return sequences_ * queries * leading * (keys(settings_.order - 1) + channels_);
}

std::vector<Tile> Tiling::tiles(int64_t first_query, int64_t queries) const {
  Tile whole{first_query, queries, {}};
  if (queries == 0) return {};
  for (int m = 0; m < settings_.order; ++m) {
    whole.keys[m] = seen(m, first_query, queries);
    if (whole.keys[m].size() == 0) return {};
  }
  std::vector<Tile> tiles{whole};
  for (int m = 0; m + 1 < settings_.order; ++m) {
    std::vector<Tile> cut;
    for (const Tile& tile : tiles) {
      for (int64_t begin = whole.keys[m].begin; begin < whole.keys[m].end; begin += step_[m]) {
        cut.push_back(tile);
        cut.back().keys[m] = {begin, std::min(begin + step_[m], whole.keys[m].end)};
      }
    }
    tiles = std::move(cut);
  }
  return tiles;
}

}  // namespace nsimplex::dense
