// Computes the axis order, buffer sizes, packed layouts and query segments of the dense kernel.

#include "kernels/cpu/shared/geometry.h"

#include <algorithm>

#include "kernels/cpu/shared/wedge.h"

namespace nsimplex::kernels::dense {
namespace {

// The largest number of keys that a query can see; it decides which axis becomes the GEMM's inner
// one.
int64_t widest_range(const Visibility& visible) {
  if (visible.left < 0 || (visible.right < 0 && !visible.causal)) return visible.length;
  return std::min(visible.length, visible.left + (visible.causal ? 0 : visible.right));
}

template <class T>
int longest_window(const DenseProblem<T>& problem) {
  int best = 0;
  for (int m = 1; m < problem.order; ++m) {
    // Ties go to the last axis, the convention of the definition.
    if (widest_range(problem.axes[m].visible) >= widest_range(problem.axes[best].visible)) best = m;
  }
  return best;
}

}  // namespace

template <class T>
Geometry::Geometry(const DenseProblem<T>& problem)
    : order(problem.order),
      group(problem.kv_heads > 0 ? problem.heads / problem.kv_heads : 1),
      items(problem.queries * group),
      logit_scale(problem.logit_scale),
      unit(problem.normalizer == Normalizer::relu ? 1.0 : kLog2E) {
  const int planes = problem.form == Form::determinant ? order + 1 : 1;
  const int64_t chunks = problem.dim / planes, plane = round_up(chunks, kLineChannels);
  lead = {planes, chunks, plane, lead_depth = planes * plane};
  // U is written plane by plane in whole vectors; the last plane's may exceed its chunks.
  depth = round_up((planes - 1) * chunks + plane, kLineChannels);
  // The depth of a matrix tile is 32 numbers of 16 bits.
  const int64_t unit = sizeof(T) == 2 ? 32 : 1;
  inner_key = {planes, chunks, chunks, depth, unit};
  value_depth = round_up(problem.value_dim, kLineChannels);
  value = {1, problem.value_dim, value_depth, value_depth, unit};
  const int last = longest_window(problem);
  int position = 0;
  for (int m = 0; m < order; ++m) {
    if (m != last) axis[position++] = m;
  }
  axis[position] = last;
  // Moving one column behind the later ones swaps neighbours this many times.
  if (problem.form == Form::determinant && (order - 1 - last) % 2 != 0) logit_scale = -logit_scale;
}

int64_t Geometry::level_size(int p) const {
  return lead.planes == 1 ? lead_depth : wedge_table(order).steps[p].targets * lead.stride;
}

int64_t Geometry::levels_size() const {
  int64_t size = 0;
  for (int p = 0; p + 1 < inner(); ++p) size += level_size(p);
  return size;
}

int64_t Geometry::forward_scratch(bool pairs) const {
  return kBlockRows * (depth + 2 * value_depth + 2 * kLineChannels) +
         (pairs ? kWeightPanels : 1) * kBlockRows * kPanelKeys +
         own_panel_size(inner_key.panel_rows()) + lead_depth + kChunkItems * value_depth +
         levels_size() + inner() * value_depth;
}

int64_t Geometry::backward_scratch(bool pairs) const {
  // Copies of U, G, P and dS as pairs along the rows, those of U and G also transposed.
  const int64_t copies = pairs ? kBlockRows * (depth + value_depth + kPanelKeys) : 0;
  return copies + own_panel_size(inner_key.panel_rows()) + own_panel_size(value.panel_rows()) +
         kBackwardRows * (2 * depth + 2 * value_depth + 2 * kPanelKeys + kLineChannels) +
         kChunkItems * (2 * lead_depth + value_depth) + 2 * levels_size() + inner() * value_depth;
}

template <class T>
PackLayout::PackLayout(const DenseProblem<T>& problem, const Geometry& geometry, bool backward)
    : PackLayout(
          problem, geometry, backward,
          {0, round_up(problem.axes[geometry.axis[geometry.inner()]].visible.length, kPanelKeys)}) {
}

template <class T>
PackLayout::PackLayout(const DenseProblem<T>& problem, const Geometry& geometry, bool backward,
                       Range inner_keys)
    : inner_begin(inner_keys.begin) {
  std::fill(keys, keys + kMaxOrder, -1);
  std::fill(values, values + kMaxOrder, -1);
  auto take = [this](int64_t count) {
    const int64_t offset = size;
    size += count;
    return offset;
  };
  for (int p = 0; p < geometry.inner(); ++p) {
    const int64_t length = problem.axes[geometry.axis[p]].visible.length;
    keys[p] = take(length * geometry.lead_depth);
    values[p] = take(length * geometry.value_depth);
  }
  const int inner = geometry.inner();
  const int64_t padded = inner_keys.size();
  keys_t = take(padded * geometry.inner_key.panel_rows());
  values[inner] = take(padded * geometry.value_depth);
  if (backward) {
    keys[inner] = take(padded * geometry.depth);
    values_t = take(padded * geometry.value.panel_rows());
  }
}

template <class T>
Range Segments::queries(const DenseProblem<T>& problem, int64_t segment) const {
  return {std::min(segment * length, problem.queries),
          std::min((segment + 1) * length, problem.queries)};
}

template <class T>
Range Segments::halo(const DenseProblem<T>& problem, const Geometry& geometry, int64_t segment,
                     int position) const {
  Visibility visible = problem.axes[geometry.axis[position]].visible;
  visible.lengths = nullptr;
  const Range seeing = visible.queries(0, problem.queries);
  Range range = queries(problem, segment);
  range = {std::max(range.begin, seeing.begin), std::min(range.end, seeing.end)};
  range = visible_keys_of_batch(visible, problem.batch, range);
  if (position == geometry.inner() && range.size() > 0) {
    range = {range.begin / kPanelKeys * kPanelKeys, round_up(range.end, kPanelKeys)};
  }
  return range;
}

template <class T>
HaloLayout::HaloLayout(const DenseBackward<T>& problem, const Geometry& geometry,
                       const Segments& segments, int64_t segment, int64_t begin)
    : begin(begin), end(begin) {
  for (int p = 0; p < geometry.order; ++p) {
    range[p] = segments.halo(problem, geometry, segment, p);
    // Sums over rows take groups of eight keys from any key on.
    if (p == geometry.inner() && range[p].size() > 0) range[p].end += 8;
    keys[p] = values[p] = -1;
    if (problem.grad_key[geometry.axis[p]].data) {
      keys[p] = end;
      end += range[p].size() * geometry.key_depth(p);
    }
    if (problem.grad_value[geometry.axis[p]].data) {
      values[p] = end;
      end += range[p].size() * geometry.value_depth;
    }
  }
}

template <class T>
HaloLayout halo_layout(const DenseBackward<T>& problem, const Geometry& geometry,
                       const Segments& segments, int64_t segment) {
  HaloLayout layout(problem, geometry, segments, 0, 0);
  for (int64_t s = 1; s <= segment; ++s) {
    layout = HaloLayout(problem, geometry, segments, s, layout.end);
  }
  return layout;
}

template <class T>
Segments make_segments(const DenseProblem<T>& problem, int64_t count) {
  Segments segments;
  segments.length = std::max<int64_t>(1, ceil_div(problem.queries, std::max<int64_t>(count, 1)));
  segments.count = std::max<int64_t>(1, ceil_div(problem.queries, segments.length));
  return segments;
}

template <class T>
Splits::Splits(const DenseProblem<T>& problem, const Geometry& geometry, int64_t count)
    : keys(make_segments(problem, 1).halo(problem, geometry, 0, geometry.inner())),
      length(round_up(ceil_div(keys.size(), count), kPanelKeys)),
      totals(
          round_up(kChunkItems * sizeof(SoftmaxState<Accum<T>>) / sizeof(Accum<T>), kLineChannels)),
      size(totals + geometry.items * geometry.value_depth) {}

template <class T>
int64_t longest_axis(const DenseProblem<T>& problem) {
  int64_t longest = 1;
  for (int m = 0; m < problem.order; ++m) {
    longest = std::max(longest, problem.axes[m].visible.length);
  }
  return longest;
}

#define NSIMPLEX_INSTANTIATE(T)                                                               \
  template Geometry::Geometry(const DenseProblem<T>&);                                        \
  template PackLayout::PackLayout(const DenseProblem<T>&, const Geometry&, bool, Range);      \
  template PackLayout::PackLayout(const DenseProblem<T>&, const Geometry&, bool);             \
  template Range Segments::queries(const DenseProblem<T>&, int64_t) const;                    \
  template Range Segments::halo(const DenseProblem<T>&, const Geometry&, int64_t, int) const; \
  template HaloLayout::HaloLayout(const DenseBackward<T>&, const Geometry&, const Segments&,  \
                                  int64_t, int64_t);                                          \
  template HaloLayout halo_layout(const DenseBackward<T>&, const Geometry&, const Segments&,  \
                                  int64_t);                                                   \
  template Segments make_segments(const DenseProblem<T>&, int64_t);                           \
  template Splits::Splits(const DenseProblem<T>&, const Geometry&, int64_t);                  \
  template int64_t longest_axis(const DenseProblem<T>&);

NSIMPLEX_INSTANTIATE(double)
NSIMPLEX_INSTANTIATE(float)
NSIMPLEX_INSTANTIATE(Bf16)
NSIMPLEX_INSTANTIATE(Fp16)
#undef NSIMPLEX_INSTANTIATE

}  // namespace nsimplex::kernels::dense
