// The six products of the backward pass on a block of rows, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_BLOCK_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_BLOCK_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_BLOCK_INL_H_
#endif

#include <cstring>

#include "kernels/cpu/shared/backward_general-inl.h"
#include "kernels/cpu/shared/backward_rows-inl.h"
#include "kernels/cpu/shared/block_products-inl.h"
#include "kernels/cpu/shared/own_panel-inl.h"
#include "kernels/cpu/shared/simd.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The targets of a block's gradients of the inner axis (null: not wanted), and the gradients that
/// its rows pass on.
template <class R>
struct BlockGradients {
  R* inner_key;  ///< rows of the inner axis from inner_begin on; see HaloGradients
  R* inner_value;
  int64_t inner_begin;
  bool want_ds, want_du, want_y;
};

/// A block's rows with the panels of the inner axis, six products in one pass:
///   P  = 2^(U K^T - lse)                    dV += P^T G        Y  += P V
///   dS = P o (G V^T + share - delta)        dK += dS^T U       dU += dS K        sums += P 1
template <class T, class E>
class BackwardBlock : public BackwardRows<T> {
  using Base = BackwardRows<T>;
  using R = Accum<T>;

 public:
  BackwardBlock(const DenseProblem<T>& problem, const Geometry& geometry, const HeadPack<R>& pack,
                const BlockGradients<R>& gradients, TupleFilter<T>& filter,
                const MaskGradients<T>& masks, Arena<R>& arena)
      : Base(geometry, kNumbers<E> == 2 ? kBlockRows : kBackwardRows, arena),
        problem_(problem),
        score_scale_(static_cast<R>(score_scale<E>(geometry))),
        pack_(pack),
        gradients_(gradients),
        filter_(filter),
        general_(problem, *this, filter, masks),
        u_deep_(take_deep(u, geometry.depth, arena)),
        g_deep_(take_deep(g, geometry.value_depth, arena)),
        p_deep_(take_deep(p, kPanelKeys, arena)),
        ds_deep_(take_deep(ds, kPanelKeys, arena)),
        u_turned_(kTiled<E> ? arena.take(kBlockRows / 2 * geometry.depth) : nullptr),
        g_turned_(kTiled<E> ? arena.take(kBlockRows / 2 * geometry.value_depth) : nullptr),
        own_keys_(geometry.inner_key.panel_rows(), arena),
        own_values_(geometry.value.panel_rows(), arena) {}

  /// Processes the rows that `block` holds.
  void run() {
    this->start_block();
    if constexpr (kTiled<E>) clear_padding(block, geometry, u);
    pair(u, u_deep_, geometry.depth, 0, block.padded_rows());
    pair(g, g_deep_, geometry.value_depth, 0, block.padded_rows());
    if constexpr (kTiled<E>) {
      turn_slots(block, u_deep_, geometry.depth, u_turned_);
      turn_slots(block, g_deep_, geometry.value_depth, g_turned_);
    }
    const Range hull = block.hull();
    // Pairs of keys cannot be split at every key.
    if constexpr (kNumbers<E> == 1) {
      if (!filter_.general() && OwnPanel<R>::pays(block)) {
        own_keys_.load(pack_.keys_t, pack_.inner_begin, hull);
        if (gradients_.want_ds) own_values_.load(pack_.values_t, pack_.inner_begin, hull);
        for (int64_t first = hull.begin; first < hull.end; first += kPanelKeys) {
          keys_ = own_keys_.view(first);
          values_ = own_values_.view(first);
          add_panel(first, hull);
        }
        return;
      }
    }
    for (int64_t first = hull.begin / kPanelKeys * kPanelKeys; first < hull.end;
         first += kPanelKeys) {
      const int64_t column = first - pack_.inner_begin;
      keys_ = {pack_.keys_t + column * geometry.inner_key.panel_rows(), kPanelKeys};
      values_ = {pack_.values_t + column * geometry.value.panel_rows(), kPanelKeys};
      if constexpr (kTiled<E>) {
        add_tiled_panel(first, hull);
      } else {
        add_panel(first, hull);
      }
    }
  }

  using Base::block;
  using Base::delta;
  using Base::ds;
  using Base::du;
  using Base::g;
  using Base::geometry;
  using Base::norm;
  using Base::p;
  using Base::share;
  using Base::sums;
  using Base::u;
  using Base::y;

 private:
  // One panel of keys, product after product. Pairs replace P and dS when both are known.
  void add_panel(int64_t first, Range hull) {
    const PanelPart<R> whole(first, hull);
    const bool general = filter_.general(), want_ds = gradients_.want_ds;
    if (general) filter_.start_panel(first);
    strips_.cut(block, first);
    if (strips_.empty()) return;
    strips_.for_each([&](const PanelPart<R>& part, int row) HWY_ATTR {
      if (general) {
        general_.weigh_strip(part, row, keys_.columns, want_ds ? values_.columns : nullptr);
      } else {
        weigh_strip(part, row);
      }
      clear_unseen(part, whole, row);
    });
    strips_.for_each([&](const PanelPart<R>& part, int row) HWY_ATTR {
      if (want_ds && !general) score_gradients(part, row);
      pair(p, p_deep_, kPanelKeys, row, row + kStripRows);
      if (want_ds) pair(ds, ds_deep_, kPanelKeys, row, row + kStripRows);
    });
    const int inner = geometry.inner();
    if (gradients_.want_du) add_to_rows(ds, pack_.keys[inner], geometry.depth, du);
    if (gradients_.want_y) add_to_rows(p, pack_.values[inner], geometry.value_depth, y);
    add_to_keys(whole, strips_.row_begin(), std::min(strips_.row_end(), block.rows));
  }

  // Products along the channels or keys and products along the rows read the same numbers. With
  // pairs the latter need a separate copy.
  static R* take_deep(R* array, int64_t width, Arena<R>& arena) {
    return kNumbers<E> == 2 ? arena.take(kBlockRows / 2 * width) : array;
  }

  // Copies numbers of rows [begin, end) into slots, along the rows in `deep` and along the row in
  // `array`.
  void pair(R* array, R* deep, int64_t width, int begin, int end) {
    if constexpr (kNumbers<E> == 2) {
      for (int r = begin; r < end; r += 2) {
        pair_rows<E>(array + r * width, array + (r + 1) * width, width, deep + r / 2 * width);
      }
      for (int r = begin; r < end; ++r) pair_row<E>(array + r * width, width);
    }
  }

  // One panel of keys, by products of the whole block.
  void add_tiled_panel(int64_t first, Range hull) {
    const PanelPart<R> whole(first, hull);
    const TileColumns seen(whole);
    const bool general = filter_.general(), want_ds = gradients_.want_ds;
    multiply_panel(block, u, geometry.depth, keys_.columns, geometry.inner_key.panel_rows(), seen,
                   p);
    if (want_ds) {
      multiply_panel(block, g, geometry.value_depth, values_.columns, geometry.value.panel_rows(),
                     seen, ds);
    }
    if (general) filter_.start_panel(first);
    for (int row = 0; row < block.padded_rows(); row += kStripRows) {
      const PanelPart<R> part(first, block.inner + row);
      if (part.empty()) {
      } else if (general) {
        general_.weigh_strip(part, row, keys_.columns, want_ds ? values_.columns : nullptr);
      } else {
        weigh_strip(part, row);
        if (want_ds) score_gradients(part, row);
      }
      clear_columns(part, seen, p + row * kPanelKeys);
      pair(p, p_deep_, kPanelKeys, row, row + kStripRows);
      if (!want_ds) continue;
      clear_columns(part, seen, ds + row * kPanelKeys);
      pair(ds, ds_deep_, kPanelKeys, row, row + kStripRows);
    }
    const int inner = geometry.inner();
    const int64_t depth = geometry.depth, width = geometry.value_depth;
    const int64_t key = first - pack_.inner_begin, own_key = first - gradients_.inner_begin;
    if (gradients_.want_du) {
      add_to_block(block, ds, pack_.keys[inner] + key * depth, depth, depth, seen, du);
    }
    if (gradients_.want_y) {
      add_to_block(block, p, pack_.values[inner] + key * width, width, width, seen, y);
    }
    if (gradients_.inner_value) {
      add_to_panel(block, g_turned_, p_deep_, width, seen,
                   gradients_.inner_value + own_key * width);
    }
    if (gradients_.inner_key) {
      add_to_panel(block, u_turned_, ds_deep_, depth, seen, gradients_.inner_key + own_key * depth);
    }
  }

  void weigh_strip(const PanelPart<R>& part, int strip) {
    switch (part.masking) {
      case Masking::none:
        return weigh_tiles<Masking::none>(part, strip);
      case Masking::common:
        return weigh_tiles<Masking::common>(part, strip);
      case Masking::each:
        return weigh_tiles<Masking::each>(part, strip);
    }
  }

  template <Masking kMasking>
  void weigh_tiles(const PanelPart<R>& part, int strip) {
    for_each_score_tile(wide_tiles_, part.vector, part.vector_end,
                        [&]<int kRows, int kVectors>(int row, int vector) HWY_ATTR {
                          weight_tile<kRows, kVectors, kMasking>(part, strip, row, vector);
                        });
  }

  void score_gradients(const PanelPart<R>& part, int strip) {
    for_each_score_tile(wide_tiles_, part.vector, part.vector_end,
                        [&]<int kRows, int kVectors>(int row, int vector) HWY_ATTR {
                          score_gradient_tile<kRows, kVectors>(strip + row, vector);
                        });
  }

  // Sums over rows use every column that some strip of the block sees.
  void clear_unseen(const PanelPart<R>& part, const PanelPart<R>& whole, int strip) {
    if (part.vector == whole.vector && part.vector_end == whole.vector_end) return;
    for (int r = strip; r < strip + kStripRows; ++r) {
      for (R* const array : {p, ds}) {
        R* const row = array + r * kPanelKeys;
        std::fill(row + whole.vector * kLanes<R>, row + part.vector * kLanes<R>, R{0});
        std::fill(row + part.vector_end * kLanes<R>, row + whole.vector_end * kLanes<R>, R{0});
      }
    }
  }

  // P = 2^(U K^T - lse), exactly 0 where masked. `row` counts within the strip.
  template <int kRows, int kVectors, Masking kMasking>
  HWY_INLINE void weight_tile(const PanelPart<R>& part, int strip, int row, int vector) {
    const Tag<R> d;
    const int block_row = strip + row;
    R* const weights = p + block_row * kPanelKeys + vector * kLanes<R>;
    Tile<R, kRows, kVectors> s;
    if constexpr (kTiled<E>) {
      s.load(weights, kPanelKeys);
    } else {
      s.zero();
      s.template multiply_add<E>(u + block_row * geometry.depth, geometry.depth, 1,
                                 keys_.columns + vector * kLanes<R>, keys_.row,
                                 slots<E>(problem_.dim));
    }
    // The norm is added after the sum and is not its start value. Otherwise every step would round
    // at the magnitude of lse, unlike in the forward. In this form the sum's rounding is the same
    // as lse's and cancels.
    const Vec<R> scale = hn::Set(d, score_scale_);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vec<R> shift = hn::Set(d, norm[block_row + r]);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) s.at[r][v] = hn::Add(scaled<E>(s.at[r][v], scale), shift);
    }
    mask_scores<kMasking>(s, part, row, vector);
    R* const row_sums = sums + block_row * kLineChannels;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Vec<R> sum = hn::Load(d, row_sums + r * kLineChannels);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const Vec<R> weight = exp2(s.at[r][v]);
        hn::Store(weight, d, weights + r * kPanelKeys + v * kLanes<R>);
        sum = hn::Add(sum, weight);
      }
      hn::Store(sum, d, row_sums + r * kLineChannels);
    }
  }

  // dS = P o (G V^T + share - delta).
  template <int kRows, int kVectors>
  HWY_INLINE void score_gradient_tile(int row, int vector) {
    const Tag<R> d;
    Tile<R, kRows, kVectors> dp;
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        dp.at[r][v] = hn::Set(d, share[row + r] + delta[row + r].minus_delta);
        if constexpr (kTiled<E>) {
          const R* const own = ds + (row + r) * kPanelKeys + (vector + v) * kLanes<R>;
          dp.at[r][v] = hn::Add(hn::Load(d, own), dp.at[r][v]);
        }
      }
    }
    if constexpr (!kTiled<E>) {
      dp.template multiply_add<E>(g + row * geometry.value_depth, geometry.value_depth, 1,
                                  values_.columns + vector * kLanes<R>, values_.row,
                                  slots<E>(problem_.value_dim));
    }
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const int64_t at = (row + r) * kPanelKeys + (vector + v) * kLanes<R>;
        const Vec<R> weight = hn::Load(d, p + at);
        const Vec<R> less_delta = delta[row + r].template of<T>(weight, dp.at[r][v]);
        hn::Store(hn::Mul(weight, less_delta), d, ds + at);
      }
    }
  }

  // to += weights rows, strip by strip: dU += dS K, or Y += P V. `rows` are those of the inner axis.
  void add_to_rows(const R* weights, const R* rows, int64_t width, R* to) {
    strips_.for_each([&](const PanelPart<R>& part, int strip) HWY_ATTR {
      // A slot may hold a key that no row sees: P and dS are 0 there.
      const int64_t begin = part.begin / kNumbers<E>, count = slots<E>(part.end) - begin;
      const R* const from = rows + (part.first - pack_.inner_begin + begin) * width;
      add_product<E>(to + strip * width, width, kStripRows, weights + strip * kPanelKeys + begin,
                     kPanelKeys, 1, from, width, count, width);
    });
  }

  // dV += P^T G and dK += dS^T U over rows [row_begin, row_end) of the block.
  void add_to_keys(const PanelPart<R>& part, int row_begin, int row_end) {
    const int64_t depth = geometry.depth, width = geometry.value_depth;
    // Keys in groups of eight; those that no row sees have P = 0.
    const int begin = part.begin / 8 * 8;
    const int keys = static_cast<int>(round_up(part.end, 8)) - begin;
    const int64_t halo_row = part.first + begin - gradients_.inner_begin;
    const int64_t row = row_begin / kNumbers<E>, count = slots<E>(row_end) - row;
    const int64_t at = row * kPanelKeys + begin;
    if (gradients_.inner_value) {
      add_product<E>(gradients_.inner_value + halo_row * width, width, keys, p_deep_ + at, 1,
                     kPanelKeys, g_deep_ + row * width, width, count, width);
    }
    if (gradients_.inner_key) {
      add_product<E>(gradients_.inner_key + halo_row * depth, depth, keys, ds_deep_ + at, 1,
                     kPanelKeys, u_deep_ + row * depth, depth, count, depth);
    }
  }

  const DenseProblem<T>& problem_;
  const R score_scale_;
  const bool wide_tiles_ = wide_score_tiles();
  const HeadPack<R>& pack_;
  const BlockGradients<R> gradients_;
  TupleFilter<T>& filter_;
  GeneralBackward<T, E> general_;
  R *const u_deep_, *const g_deep_, *const p_deep_, *const ds_deep_;
  R *const u_turned_, *const g_turned_;
  OwnPanel<R> own_keys_, own_values_;
  PanelView<R> keys_{}, values_{};  // of the current panel
  PanelStrips<R> strips_;           // likewise
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
