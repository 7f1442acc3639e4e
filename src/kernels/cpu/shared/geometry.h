// Declares the axis order, buffer sizes, packed layouts and query segments of the dense kernel.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/attention_problem.h"
#include "kernels/common/rounding.h"
#include "kernels/common/softmax_state.h"
#include "kernels/common/tile_table.h"
#include "kernels/cpu/shared/attention_kernel_plan.h"

// The layout of a dense problem during computation: which axis is the GEMM's inner one, where the
// packed copies of keys and values are, and which keys a segment of queries touches. Sizes and
// offsets count elements of the computing type. Templates are instantiated in geometry.cc for every
// storage type.

namespace nsimplex::kernels::dense {

/// The layout of a row of channels in packed memory: as planes, so that arithmetic on the
/// components of chunks is elementwise. Channel chunk * planes + a is at place a * stride + chunk.
struct Channels {
  int planes = 1;  ///< components of a chunk; 1: channels in their order
  int64_t chunks = 0, stride = 0;
  int64_t padded = 0;  ///< elements of a packed row; zeros between and after the planes
  int64_t unit = 1;    ///< channels of a transposed panel are filled with zeros to a multiple

  int64_t count() const { return planes * chunks; }
  int64_t panel_rows() const { return round_up(count(), unit); }
  int64_t place(int64_t channel) const {
    return planes == 1 ? channel : channel % planes * stride + channel / planes;
  }
};

/// Elements from one channel to the next in an interval's own panel, with room for a packed panel
/// on either side. It is not a power of two, whose rows would share cache lines.
inline constexpr int64_t kOwnRow = kOwnKeys + 2 * kPanelKeys + kLineChannels;
constexpr int64_t own_panel_size(int64_t channels) { return channels * kOwnRow; }

/// Panels whose scores or weights a block keeps with matrix tiles: see ForwardTiles.
inline constexpr int kWeightPanels = 3;

/// Sizes that depend on the problem, with axes in working order: leading axes first, the inner axis
/// last.
struct Geometry {
  int order = 0;
  int axis[kMaxOrder] = {};  ///< position in working order -> axis of the problem
  int64_t group = 1;         ///< query heads of one key/value head
  int64_t items = 0;  ///< (query, head of the group) pairs of one key/value head, query first
  /// Queries and leading keys, whose planes begin at cache lines; U and inner keys, whose planes
  /// have no gaps; values.
  Channels lead, inner_key, value;
  int64_t lead_depth = 0, depth = 0, value_depth = 0;  ///< their padded rows
  double logit_scale = 1.0;  ///< with the sign that working order gives the determinant
  double unit = 1.0;         ///< of scores: log2 e for exponentials, 1 for relu

  template <class T>
  explicit Geometry(const DenseProblem<T>& problem);

  int inner() const { return order - 1; }  ///< position of the inner axis
  const Channels& key(int position) const { return position == inner() ? inner_key : lead; }
  int64_t key_depth(int position) const { return key(position).padded; }

  /// Elements of the query combined with the keys of positions 0 .. p, before the last position.
  int64_t level_size(int p) const;
  /// Elements of all levels but the last, which is U.
  int64_t levels_size() const;

  /// Elements of scratch for a forward or backward task. `pairs`: with operands of two numbers.
  int64_t forward_scratch(bool pairs) const;
  int64_t backward_scratch(bool pairs) const;

  int64_t query_head(int64_t kv_head, int64_t item) const { return kv_head * group + item % group; }
};

/// Offsets, in elements, of one key/value head's packed copies; -1 if there is none. Rows outside
/// the admissible keys are not packed, except zeros that fill the panels of the inner axis.
struct PackLayout {
  int64_t keys[kMaxOrder], values[kMaxOrder];  ///< [length, depth], [length, value_depth]
  int64_t keys_t = 0, values_t = -1;           ///< inner axis: panels of [channels, kPanelKeys]
  int64_t inner_begin = 0;                     ///< first stored key of the inner axis
  int64_t size = 0;

  /// For the keys `inner` (whole panels) of the inner axis and all keys of the others. The backward
  /// also needs the inner keys by rows and the inner values by panels.
  template <class T>
  PackLayout(const DenseProblem<T>& problem, const Geometry& geometry, bool backward, Range inner);
  template <class T>
  PackLayout(const DenseProblem<T>& problem, const Geometry& geometry, bool backward);
};

/// One head's packed copies.
template <class R>
struct HeadPack {
  const R* keys[kMaxOrder];
  const R* values[kMaxOrder];
  const R* keys_t;
  const R* values_t;
  int64_t inner_begin;

  HeadPack(const PackLayout& layout, const R* base)
      : keys_t(base + layout.keys_t),
        values_t(layout.values_t < 0 ? nullptr : base + layout.values_t),
        inner_begin(layout.inner_begin) {
    for (int p = 0; p < kMaxOrder; ++p) {
      keys[p] = layout.keys[p] < 0 ? nullptr : base + layout.keys[p];
      values[p] = layout.values[p] < 0 ? nullptr : base + layout.values[p];
    }
  }
};

/// The largest number of segments of a head's queries.
inline constexpr int64_t kMaxSegments = 64;

/// The split of one head's queries into the segments of the backward pass. Every segment owns
/// gradients of the keys and values that its queries may see: its halo.
struct Segments {
  int64_t count = 0, length = 0;  ///< number of segments, queries of each

  template <class T>
  Range queries(const DenseProblem<T>& problem, int64_t segment) const;

  /// Keys of the axis at `position` that a segment may touch in any batch entry; whole panels for
  /// the inner axis.
  template <class T>
  Range halo(const DenseProblem<T>& problem, const Geometry& geometry, int64_t segment,
             int position) const;
};

/// Offsets, in elements, of a segment's private gradients; -1 if the gradient is not wanted.
struct HaloLayout {
  Range range[kMaxOrder];
  int64_t keys[kMaxOrder], values[kMaxOrder];
  int64_t begin = 0, end = 0;

  template <class T>
  HaloLayout(const DenseBackward<T>& problem, const Geometry& geometry, const Segments& segments,
             int64_t segment, int64_t begin);
};

/// The halo layouts of all segments before `segment`, one after the other, then its own.
template <class T>
HaloLayout halo_layout(const DenseBackward<T>& problem, const Geometry& geometry,
                       const Segments& segments, int64_t segment);

/// Decoding: few items see many keys, which are split into parts of whole panels. Every part leaves
/// its items' softmax states and totals for the merge.
struct Splits {
  Range keys;          ///< of the inner axis, that some query may see; whole panels
  int64_t length = 0;  ///< keys of one part
  int64_t totals = 0;  ///< offset of the totals after the states, in elements
  int64_t size = 0;    ///< elements that one part leaves

  template <class T>
  Splits(const DenseProblem<T>& problem, const Geometry& geometry, int64_t count);

  Range part(int64_t index) const {
    return {keys.begin + index * length, std::min(keys.end, keys.begin + (index + 1) * length)};
  }
};

template <class T>
Segments make_segments(const DenseProblem<T>& problem, int64_t count);

/// Row panels per packing task, and keys per task that adds gradients.
inline constexpr int64_t kPackRows = 512;
inline constexpr int64_t kAddRows = 256;

/// The longest axis, which determines the number of packing and adding tasks.
template <class T>
int64_t longest_axis(const DenseProblem<T>& problem);

/// The parts of a task number: (batch, kv head, block), blocks fastest.
struct TaskIndex {
  int64_t batch, head, block;
  template <class T>
  TaskIndex(const DenseProblem<T>& problem, int64_t blocks, int64_t task)
      : batch(task / blocks / problem.kv_heads),
        head(task / blocks % problem.kv_heads),
        block(task % blocks) {}
};

}  // namespace nsimplex::kernels::dense
