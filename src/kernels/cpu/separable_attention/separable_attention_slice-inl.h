// One slice of one key head, chunk of queries by chunk: the shared part of forward and backward,
// for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_SLICE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_SLICE_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_SLICE_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_SLICE_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

/// The keys of one axis that a chunk's queries see: the keys `common` to all of them, and the
/// number of keys before and after these that each query also sees.
struct ChunkKeys {
  Range first;  ///< of the first query
  Range common;
  int32_t entered[kChunkQueries];  ///< keys [common.end, common.end + entered)
  int32_t left[kChunkQueries];     ///< keys [first.begin, first.begin + left) are no longer visible
  int64_t entering = 0, leaving = 0;  ///< the largest of each
};

/// Adds outer products of keys and values to states.
template <class T>
struct AddKeys {
  KeyRows<T> keys;
  int64_t count, rows, width;
  T* state;

  template <int kRows, int kVectors>
  HWY_INLINE void tile(int64_t r, int64_t c) const {
    Tile<T, kRows, kVectors> sum;
    sum.load(state + r * width + c, width);
    for (int64_t j = 0; j < count; ++j) {
      sum.add_outer(keys.key + j * rows + r, keys.value + j * width + c);
    }
    sum.store(state + r * width + c, width);
  }
};

/// The states of a slice. For axis m and query i the state is S^m_i = sum k_j[r] v_j over the keys
/// that i sees. A channel of ones after the values makes its last column the sum of the features.
///
/// Within a chunk, S^m_i = (sum over common keys) + (those entered so far) + (those not yet left).
/// The second part grows from the chunk's first query on, the third from its last query backwards,
/// so nothing is ever subtracted. (A running sum minus its old terms loses, after T terms, all
/// digits of a window that holds little of what passed through it.) The sum over the common keys of
/// a sliding axis comes from whole blocks of kBlockKeys keys and the few keys at their ends.
template <class T>
class Slice : protected Task<T> {
 protected:
  using Task<T>::group_, Task<T>::plan_, Task<T>::problem_, Task<T>::queries_;

 public:
  Slice(const SeparableProblem<T>& problem, const SeparablePlan& plan, int64_t task, bool backward,
        void* scratch)
      : Task<T>(problem, plan, task), scratch_(problem, plan, backward, scratch) {}

 protected:
  int64_t state_size() const { return plan_.rows * plan_.width; }

  // state += sum over a range of any length.
  void add_keys(int m, Range range, T* state) const {
    for (int64_t begin = range.begin; begin < range.end; begin += kBlockKeys) {
      const Range block{begin, std::min(begin + kBlockKeys, range.end)};
      this->pack_keys(m, block, scratch_.bulk);
      for_each_tile<T>(plan_.rows, plan_.width,
                       AddKeys<T>{scratch_.bulk, block.size(), plan_.rows, plan_.width, state});
    }
  }

  void sum_blocks() {
    for (int m = 0; m < problem_.order; ++m) {
      const AxisScratch<T>& axis = scratch_.axes[m];
      std::fill(axis.blocks, axis.blocks + axis.block_count * state_size(), T{0});
      for (int64_t b = 0; b < axis.block_count; ++b) {
        add_keys(m, {b * kBlockKeys, (b + 1) * kBlockKeys}, axis.blocks + b * state_size());
      }
    }
  }

  // Whole blocks inside a range, and the keys of the range before and after them.
  struct Blocks {
    Range before, whole, behind;
  };
  static Blocks blocks_of(Range keys) {
    const Range whole{ceil_div(keys.begin, kBlockKeys), keys.end / kBlockKeys};
    if (whole.size() == 0) return {keys, {0, 0}, {keys.end, keys.end}};
    return {{keys.begin, whole.begin * kBlockKeys}, whole, {whole.end * kBlockKeys, keys.end}};
  }

  void enter_chunk(int64_t chunk) {
    queries_ = {chunk * plan_.chunk, std::min((chunk + 1) * plan_.chunk, problem_.queries)};
    for (int m = 0; m < problem_.order; ++m) {
      const SeparableAxis<T>& axis = problem_.axes[m];
      ChunkKeys& keys = keys_[m];
      keys.first = axis.keys(queries_.begin);
      keys.common = {axis.keys(queries_.end - 1).begin, keys.first.end};
      for (int64_t i = 0; i < queries_.size(); ++i) {
        const Range seen = axis.keys(queries_.begin + i);
        keys.entered[i] = static_cast<int32_t>(seen.end - keys.common.end);
        keys.left[i] = static_cast<int32_t>(seen.begin - keys.first.begin);
      }
      keys.entering = keys.entered[queries_.size() - 1];
      keys.leaving = keys.left[queries_.size() - 1];
      const AxisScratch<T>& scratch = scratch_.axes[m];
      this->pack_keys(m, {keys.common.end, keys.common.end + keys.entering}, scratch.entering);
      if (keys.leaving > 0) {
        this->pack_keys(m, {keys.first.begin, keys.common.begin}, scratch.leaving);
      }
    }
    this->pack_heads(problem_.query, this->first_row_, this->valid_rows_, plan_.rows,
                     scratch_.query);
  }

  // The state of a sliding axis over the common keys of the chunk.
  void load_common(int m) {
    T* HWY_RESTRICT state = scratch_.axes[m].state;
    std::fill(state, state + state_size(), T{0});
    const Blocks blocks = blocks_of(keys_[m].common);
    for (int64_t b = blocks.whole.begin; b < blocks.whole.end; ++b) {
      const T* HWY_RESTRICT block = scratch_.axes[m].blocks + b * state_size();
      for (int64_t k = 0; k < state_size(); ++k) state[k] += block[k];
    }
    add_keys(m, blocks.before, state);
    add_keys(m, blocks.behind, state);
  }

  // S^m_i of one tile for every query of the chunk. Afterwards the state is that of the last one.
  template <int kRows, int kVectors>
  HWY_INLINE void scan(int m, int64_t r, int64_t c) {
    using ThisTile = Tile<T, kRows, kVectors>;
    const ChunkKeys& keys = keys_[m];
    const AxisScratch<T>& axis = scratch_.axes[m];
    const int64_t count = queries_.size(), rows = plan_.rows, width = plan_.width;
    const auto add = [&](ThisTile& sum, const KeyRows<T>& from, int64_t j) HWY_ATTR {
      sum.add_outer(from.key + j * rows + r, from.value + j * width + c);
    };
    if (keys.leaving > 0) {
      ThisTile staying;
      staying.zero();
      for (int64_t i = count - 1, j = keys.leaving; i >= 0; --i) {
        while (j > keys.left[i]) add(staying, axis.leaving, --j);
        staying.store(scratch_.suffix + i * kTileElements, ThisTile::kStride);
      }
    }
    ThisTile sum;
    sum.load(axis.state + r * width + c, width);
    for (int64_t i = 0, j = 0; i < count; ++i) {
      if (j < keys.entered[i]) add(sum, axis.entering, j++);
      if (keys.leaving > 0) {
        ThisTile all = sum;
        all.add(scratch_.suffix + i * kTileElements);
        all.store(axis.sums + i * kTileElements, ThisTile::kStride);
      } else {
        sum.store(axis.sums + i * kTileElements, ThisTile::kStride);
      }
    }
    sum.store(axis.state + r * width + c, width);
  }

  // prod_m S^m_i of the tile that was scanned last.
  template <int kRows, int kVectors>
  HWY_INLINE void load_product(int64_t i, Tile<T, kRows, kVectors>& product) const {
    product.load(scratch_.axes[0].sums + i * kTileElements, product.kStride);
    for (int m = 1; m < problem_.order; ++m) {
      product.multiply(scratch_.axes[m].sums + i * kTileElements);
    }
  }

  Scratch<T> scratch_;
  ChunkKeys keys_[kMaxOrder];
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
