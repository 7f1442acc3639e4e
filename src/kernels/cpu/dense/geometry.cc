#include "kernels/cpu/dense/geometry.h"

#include <algorithm>

#include "kernels/common/softmax_state.h"

namespace nsimplex::kernels::dense {
namespace {

// Keys a query can see at most: what decides which axis is worth being the GEMM's inner one.
int64_t widest_range(const Visibility& visible) {
  if (visible.left < 0 || (visible.right < 0 && !visible.causal)) return visible.length;
  return std::min(visible.length, visible.left + (visible.causal ? 0 : visible.right));
}

int longest_window(const DenseProblem<float>& problem) {
  int best = 0;
  for (int m = 1; m < problem.order; ++m) {
    // Ties go to the last axis, the convention of the definition.
    if (widest_range(problem.axes[m].visible) >= widest_range(problem.axes[best].visible)) best = m;
  }
  return best;
}

}  // namespace

Geometry::Geometry(const DenseProblem<float>& problem)
    : order(problem.order),
      group(problem.kv_heads > 0 ? problem.heads / problem.kv_heads : 1),
      items(problem.queries * group),
      depth(round_up(problem.dim, kLineFloats)),
      value_depth(round_up(problem.value_dim, kLineFloats)) {
  const int last = longest_window(problem);
  int position = 0;
  for (int m = 0; m < order; ++m) {
    if (m != last) axis[position++] = m;
  }
  axis[position] = last;
}

PackLayout::PackLayout(const DenseProblem<float>& problem, const Geometry& geometry, bool backward)
    : PackLayout(
          problem, geometry, backward,
          {0, round_up(problem.axes[geometry.axis[geometry.inner()]].visible.length, kPanelKeys)}) {
}

PackLayout::PackLayout(const DenseProblem<float>& problem, const Geometry& geometry, bool backward,
                       Range inner_keys)
    : inner_begin(inner_keys.begin) {
  std::fill(keys, keys + kMaxOrder, -1);
  std::fill(values, values + kMaxOrder, -1);
  auto take = [this](int64_t floats) {
    const int64_t offset = size;
    size += floats;
    return offset;
  };
  for (int p = 0; p < geometry.inner(); ++p) {
    const int64_t length = problem.axes[geometry.axis[p]].visible.length;
    keys[p] = take(length * geometry.depth);
    values[p] = take(length * geometry.value_depth);
  }
  const int inner = geometry.inner();
  const int64_t padded = inner_keys.size();
  keys_t = take(padded * problem.dim);
  values[inner] = take(padded * geometry.value_depth);
  if (backward) {
    keys[inner] = take(padded * geometry.depth);
    values_t = take(padded * problem.value_dim);
  }
}

HeadPack::HeadPack(const PackLayout& layout, const float* base)
    : keys_t(base + layout.keys_t),
      values_t(layout.values_t < 0 ? nullptr : base + layout.values_t),
      inner_begin(layout.inner_begin) {
  for (int p = 0; p < kMaxOrder; ++p) {
    keys[p] = layout.keys[p] < 0 ? nullptr : base + layout.keys[p];
    values[p] = layout.values[p] < 0 ? nullptr : base + layout.values[p];
  }
}

Range Segments::queries(const DenseProblem<float>& problem, int64_t segment) const {
  return {std::min(segment * length, problem.queries),
          std::min((segment + 1) * length, problem.queries)};
}

Range Segments::halo(const DenseProblem<float>& problem, const Geometry& geometry, int64_t segment,
                     int position) const {
  // Key lengths differ by batch entry and only shrink the range: the layout ignores them.
  Visibility visible = problem.axes[geometry.axis[position]].visible;
  visible.lengths = nullptr;
  const Range seeing = visible.queries(0, problem.queries);
  Range range = queries(problem, segment);
  range = {std::max(range.begin, seeing.begin), std::min(range.end, seeing.end)};
  range = visible_keys(visible, 0, range);
  if (position == geometry.inner() && range.size() > 0) {
    range = {range.begin / kPanelKeys * kPanelKeys, round_up(range.end, kPanelKeys)};
  }
  return range;
}

HaloLayout::HaloLayout(const DenseBackward<float>& problem, const Geometry& geometry,
                       const Segments& segments, int64_t segment, int64_t begin)
    : begin(begin), end(begin) {
  for (int p = 0; p < geometry.order; ++p) {
    range[p] = segments.halo(problem, geometry, segment, p);
    keys[p] = values[p] = -1;
    if (problem.grad_key[geometry.axis[p]].data) {
      keys[p] = end;
      end += range[p].size() * geometry.depth;
    }
    if (problem.grad_value[geometry.axis[p]].data) {
      values[p] = end;
      end += range[p].size() * geometry.value_depth;
    }
  }
}

HaloLayout halo_layout(const DenseBackward<float>& problem, const Geometry& geometry,
                       const Segments& segments, int64_t segment) {
  HaloLayout layout(problem, geometry, segments, 0, 0);
  for (int64_t s = 1; s <= segment; ++s) {
    layout = HaloLayout(problem, geometry, segments, s, layout.end);
  }
  return layout;
}

Segments make_segments(const DenseProblem<float>& problem, int64_t count) {
  Segments segments;
  segments.length = std::max<int64_t>(1, ceil_div(problem.queries, std::max<int64_t>(count, 1)));
  segments.count = std::max<int64_t>(1, ceil_div(problem.queries, segments.length));
  return segments;
}

Splits::Splits(const DenseProblem<float>& problem, const Geometry& geometry, int64_t count)
    : keys(make_segments(problem, 1).halo(problem, geometry, 0, geometry.inner())),
      length(round_up(ceil_div(keys.size(), count), kPanelKeys)),
      totals(round_up(kChunkItems * sizeof(SoftmaxState) / sizeof(float), kLineFloats)),
      size(totals + geometry.items * geometry.value_depth) {}

int64_t longest_axis(const DenseProblem<float>& problem) {
  int64_t longest = 1;
  for (int m = 0; m < problem.order; ++m) {
    longest = std::max(longest, problem.axes[m].visible.length);
  }
  return longest;
}

}  // namespace nsimplex::kernels::dense
