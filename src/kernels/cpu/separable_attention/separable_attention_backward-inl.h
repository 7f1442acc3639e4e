// Backward pass of the separable kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_BACKWARD_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_BACKWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_BACKWARD_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_slice-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

// With h_i the gradient that reaches (num_i, den_i) and P_i = prod_m S^m_i:
//
//     dq_i[r]     = h_i . P_i[r]
//     dS^m_i[r]   = sum_heads q_i[r] h_i o prod_{m' != m} S^m'_i[r]
//     E^m_j       = sum dS^m_i over the queries that see key j
//     dk^m_j[r]   = E^m_j[r] . v_j        dv^m_j = sum_r k_j[r] E^m_j[r]
//
// E is gathered like S, in the opposite direction: keys that enter during a chunk take the part
// from its last query backwards, keys that leave take the part from its first query on, and the
// common keys take all of it.

/// Gradients of keys that all use the same E.
template <class T>
struct KeyGradients {
  KeyRows<T> keys, grads;
  int64_t count, rows, width;
  const T* grad_state;

  template <int kRows, int kVectors>
  HWY_INLINE void tile(int64_t r, int64_t c) const {
    Tile<T, kRows, kVectors> e;
    e.load(grad_state + r * width + c, width);
    for (int64_t j = 0; j < count; ++j) {
      e.add_to_column(keys.value + j * width + c, grads.key + j * rows + r);
      e.add_to_row(keys.key + j * rows + r, grads.value + j * width + c);
    }
  }
};

template <class T>
class BackwardSlice : Slice<T> {
  using Base = Slice<T>;
  using Base::group_, Base::keys_, Base::plan_, Base::problem_, Base::queries_, Base::scratch_;

 public:
  BackwardSlice(const SeparableBackward<T>& problem, const SeparablePlan& plan, int64_t task,
                void* scratch)
      : Base(problem, plan, task, /*backward=*/true, scratch), backward_(problem) {}

  void run() {
    const int64_t chunks = ceil_div(problem_.queries, plan_.chunk);
    this->sum_blocks();
    for (int m = 0; m < problem_.order; ++m) {
      this->clear_key_gradients(backward_, m, {0, problem_.axes[m].visible.length});
      const AxisScratch<T>& axis = scratch_.axes[m];
      std::fill_n(axis.grad_state, this->state_size(), T{0});
      std::fill_n(axis.grad_blocks, axis.block_count * this->state_size(), T{0});
      if (!problem_.axes[m].sliding()) save_checkpoints(m, chunks);
    }
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) run_chunk(chunk);
    for (int m = 0; m < problem_.order; ++m) {
      const AxisScratch<T>& axis = scratch_.axes[m];
      for (int64_t b = 0; b < axis.block_count; ++b) {
        add_gradients(m, {b * kBlockKeys, (b + 1) * kBlockKeys},
                      axis.grad_blocks + b * this->state_size());
      }
    }
  }

  template <int kRows, int kVectors>
  HWY_INLINE void tile(int64_t r, int64_t c) {
    for (int m = 0; m < problem_.order; ++m) this->template scan<kRows, kVectors>(m, r, c);
    for (int64_t i = 0; i < queries_.size(); ++i) differentiate_query<kRows, kVectors>(i, r, c);
    for (int m = 0; m < problem_.order; ++m) {
      take_entering<kRows, kVectors>(m, r, c);
      if (keys_[m].leaving > 0) take_leaving<kRows, kVectors>(m, r, c);
    }
  }

 private:
  // Keys that an axis gathers from the previous chunk's last query to this chunk's first.
  Range gathered_before(int m, int64_t chunk) const {
    const SeparableAxis<T>& axis = problem_.axes[m];
    const int64_t first = chunk * plan_.chunk;
    return {chunk == 0 ? 0 : axis.keys(first - 1).end, axis.keys(first).end};
  }

  // The state of an axis that only gathers, at the first query of every plan.checkpoint-th chunk.
  void save_checkpoints(int m, int64_t chunks) {
    int64_t gathered = 0;
    T* state = scratch_.axes[m].checkpoints;
    for (int64_t chunk = 0; chunk < chunks; chunk += plan_.checkpoint) {
      if (chunk == 0) {
        std::fill_n(state, this->state_size(), T{0});
      } else {
        std::copy_n(state, this->state_size(), state + this->state_size());
        state += this->state_size();
      }
      const int64_t end = gathered_before(m, chunk).end;
      this->add_keys(m, {gathered, end}, state);
      gathered = end;
    }
  }

  // The state at the chunk's first query. The states of a whole run of chunks are computed again,
  // once, from the saved one before them.
  void load_state(int m, int64_t chunk) {
    const AxisScratch<T>& axis = scratch_.axes[m];
    const int64_t saved = chunk / plan_.checkpoint, first = saved * plan_.checkpoint;
    if (axis.run != saved) {
      const int64_t end = std::min(first + plan_.checkpoint, chunk + 1);
      for (int64_t c = first; c < end; ++c) {
        T* const state = axis.run_states + (c - first) * this->state_size();
        if (c == first) {
          std::copy_n(axis.checkpoints + saved * this->state_size(), this->state_size(), state);
          continue;
        }
        std::copy_n(state - this->state_size(), this->state_size(), state);
        this->add_keys(m, {gathered_before(m, c - 1).end, gathered_before(m, c).end}, state);
      }
      scratch_.axes[m].run = saved;
    }
    std::copy_n(axis.run_states + (chunk - first) * this->state_size(), this->state_size(),
                axis.state);
  }

  void run_chunk(int64_t chunk) {
    this->enter_chunk(chunk);
    for (int m = 0; m < problem_.order; ++m) {
      const AxisScratch<T>& axis = scratch_.axes[m];
      if (problem_.axes[m].sliding()) {
        this->load_common(m);
        std::fill_n(axis.grad_state, this->state_size(), T{0});
        std::fill_n(axis.grad_leaving.key, keys_[m].leaving * plan_.rows, T{0});
        std::fill_n(axis.grad_leaving.value, keys_[m].leaving * plan_.width, T{0});
      } else {
        load_state(m, chunk);
      }
      std::fill_n(axis.grad_entering.key, keys_[m].entering * plan_.rows, T{0});
      std::fill_n(axis.grad_entering.value, keys_[m].entering * plan_.width, T{0});
    }
    this->pack_grad_sums(backward_, scratch_.total);
    std::fill_n(scratch_.grad_query, queries_.size() * group_ * plan_.rows, T{0});
    for_each_tile<T>(plan_.rows, plan_.width, *this);

    this->write_grad_query(backward_, scratch_.grad_query);
    for (int m = 0; m < problem_.order; ++m) {
      const AxisScratch<T>& axis = scratch_.axes[m];
      const ChunkKeys& keys = keys_[m];
      const Range entering{keys.common.end, keys.common.end + keys.entering};
      this->add_key_gradients(backward_, m, entering, axis.grad_entering);
      if (problem_.axes[m].sliding()) {
        const Range leaving{keys.first.begin, keys.first.begin + keys.leaving};
        this->add_key_gradients(backward_, m, leaving, axis.grad_leaving);
        give_to_common(m);
      } else {
        add_gradients(m, gathered_before(m, chunk), axis.grad_state);
      }
    }
  }

  // dq_i, and dS^m_i of every axis, of one tile.
  template <int kRows, int kVectors>
  HWY_INLINE void differentiate_query(int64_t i, int64_t r, int64_t c) {
    using ThisTile = Tile<T, kRows, kVectors>;
    ThisTile product, outer;
    this->load_product(i, product);
    outer.zero();
    for (int64_t g = i * group_; g < (i + 1) * group_; ++g) {
      const T* const gradient = scratch_.total + g * plan_.width + c;
      product.add_to_column(gradient, scratch_.grad_query + g * plan_.rows + r);
      outer.add_outer(scratch_.query + g * plan_.rows + r, gradient);
    }
    for (int m = 0; m < problem_.order; ++m) {
      ThisTile gradient = outer;
      for (int other = 0; other < problem_.order; ++other) {
        if (other != m) gradient.multiply(scratch_.axes[other].sums + i * kTileElements);
      }
      gradient.store(scratch_.axes[m].grad_sums + i * kTileElements, ThisTile::kStride);
    }
  }

  template <int kRows, int kVectors>
  HWY_INLINE void take_key(const Tile<T, kRows, kVectors>& e, const KeyRows<T>& keys,
                           const KeyRows<T>& grads, int64_t j, int64_t r, int64_t c) const {
    e.add_to_column(keys.value + j * plan_.width + c, grads.key + j * plan_.rows + r);
    e.add_to_row(keys.key + j * plan_.rows + r, grads.value + j * plan_.width + c);
  }

  // From the last query backwards; the part that remains at the first one is for earlier keys.
  template <int kRows, int kVectors>
  HWY_INLINE void take_entering(int m, int64_t r, int64_t c) {
    const ChunkKeys& keys = keys_[m];
    const AxisScratch<T>& axis = scratch_.axes[m];
    Tile<T, kRows, kVectors> e;
    e.load(axis.grad_state + r * plan_.width + c, plan_.width);
    for (int64_t i = queries_.size() - 1, j = keys.entering; i >= 0; --i) {
      e.add(axis.grad_sums + i * kTileElements);
      if (i > 0 && j > keys.entered[i - 1])
        take_key(e, axis.entering, axis.grad_entering, --j, r, c);
    }
    e.store(axis.grad_state + r * plan_.width + c, plan_.width);
  }

  template <int kRows, int kVectors>
  HWY_INLINE void take_leaving(int m, int64_t r, int64_t c) {
    const ChunkKeys& keys = keys_[m];
    const AxisScratch<T>& axis = scratch_.axes[m];
    Tile<T, kRows, kVectors> e;
    e.zero();
    for (int64_t i = 0, j = 0; i + 1 < queries_.size(); ++i) {
      e.add(axis.grad_sums + i * kTileElements);
      if (j < keys.left[i + 1]) take_key(e, axis.leaving, axis.grad_leaving, j++, r, c);
    }
  }

  // For a sliding axis: adds the chunk's E to the keys that all its queries see, by whole blocks.
  void give_to_common(int m) {
    const AxisScratch<T>& axis = scratch_.axes[m];
    const typename Base::Blocks blocks = Base::blocks_of(keys_[m].common);
    const T* HWY_RESTRICT gradient = axis.grad_state;
    for (int64_t b = blocks.whole.begin; b < blocks.whole.end; ++b) {
      T* HWY_RESTRICT block = axis.grad_blocks + b * this->state_size();
      for (int64_t k = 0; k < this->state_size(); ++k) block[k] += gradient[k];
    }
    add_gradients(m, blocks.before, gradient);
    add_gradients(m, blocks.behind, gradient);
  }

  // Gradients of a range of keys, of any length, that use the same E.
  void add_gradients(int m, Range range, const T* grad_state) {
    const KeyRows<T>& grads = scratch_.grad_bulk;
    for (int64_t begin = range.begin; begin < range.end; begin += kBlockKeys) {
      const Range block{begin, std::min(begin + kBlockKeys, range.end)};
      this->pack_keys(m, block, scratch_.bulk);
      std::fill_n(grads.key, block.size() * plan_.rows, T{0});
      std::fill_n(grads.value, block.size() * plan_.width, T{0});
      for_each_tile<T>(
          plan_.rows, plan_.width,
          KeyGradients<T>{scratch_.bulk, grads, block.size(), plan_.rows, plan_.width, grad_state});
      this->add_key_gradients(backward_, m, block, grads);
    }
  }

  const SeparableBackward<T>& backward_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
