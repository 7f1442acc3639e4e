// The memory of the forward pass for a block of rows, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_ROWS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_ROWS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_ROWS_INL_H_
#endif

#include <cstring>
#include <limits>

#include "kernels/common/softmax_state.h"
#include "kernels/cpu/shared/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Rows of a block with the softmax states of their items. The owner fills `block` and `u`, and
/// reads `y`, `sums` and `value_sums`.
template <class T>
struct ForwardRows {
  using R = Accum<T>;

  /// `panels`: that many of them have weights at a time.
  ForwardRows(const DenseProblem<T>& problem, const Geometry& geometry, int panels, Arena<R>& arena)
      : geometry(geometry),
        u(arena.take(kBlockRows * geometry.depth)),
        y(arena.take(kBlockRows * geometry.value_depth)),
        sums(arena.take(kBlockRows * kLanes<R>)),
        value_sums(problem.dropout.p > 0.0 ? arena.take(kBlockRows * kLanes<R>) : sums),
        total(arena.take(kChunkItems * geometry.value_depth)),
        all_p(arena.take(panels * kBlockRows * kPanelKeys)),
        p(all_p) {}

  /// Forgets all items; their totals are zero.
  void start_items(int count) {
    for (int i = 0; i < count; ++i) state[i].init();
    state[kChunkItems].max = 0;  // of padding rows
    std::memset(total, 0, count * geometry.value_depth * sizeof(R));
  }

  void start_block() {
    const int rows = block.padded_rows();
    block.pad(u, geometry.depth);
    for (int r = 0; r < rows; ++r) set_bias(r);
    std::memset(y, 0, rows * geometry.value_depth * sizeof(R));
    for (R* const array : {sums, value_sums}) {
      std::memset(array, 0, rows * kLanes<R> * sizeof(R));
    }
  }

  /// Gives the item of a row a new maximum and rescales everything that was summed for it before
  /// this strip: its total, and Y, sums and waiting weights of its rows, which it returns.
  struct Raised {
    int begin, end;
    R factor;  ///< 1 if nothing was summed
  };
  Raised raise_item(R max, int row) {
    const int item = block.item[row];
    const int64_t width = geometry.value_depth;
    const bool fresh = state[item].fresh();
    const auto [begin, end] = block.rows_of_item(row);
    Raised raised{begin, end, state[item].raise(max)};
    for (int r = raised.begin; r < raised.end; ++r) set_bias(r);
    if (fresh) {
      raised.factor = R{1};
      return raised;
    }
    scale_row(total + item * width, raised.factor, width);
    for (int r = raised.begin; r < raised.end; ++r) {
      scale_row(y + r * width, raised.factor, width);
      scale_row(sums + r * kLanes<R>, raised.factor, kLanes<R>);
      if (value_sums != sums) scale_row(value_sums + r * kLanes<R>, raised.factor, kLanes<R>);
      if (r < waiting) scale_row(all_p + r * kPanelKeys, raised.factor, kPanelKeys);
    }
    return raised;
  }

  /// Makes the later scores of a row's item relative to another mask.
  void move_base(R mask, int row) {
    state[block.item[row]].move_base(mask);
    const auto [begin, end] = block.rows_of_item(row);
    for (int r = begin; r < end; ++r) set_bias(r);
  }

  const Geometry& geometry;
  Block block{kBlockRows};
  R* const u;           // [kBlockRows, depth]        scaled query combined with leading keys
  R* const y;           // [kBlockRows, value_depth]  weights times inner values
  R* const sums;        // [kBlockRows, kLanes<R>]    sums of weights, lane by lane
  R* const value_sums;  // [kBlockRows, kLanes<R>]    the same after dropout; `sums` without
  R* const total;       // [kChunkItems, value_depth] weighted values of every item
  R* const all_p;       // [panels kBlockRows, kPanelKeys] scores, then weights
  R* p;                 // of the current strip
  int waiting = 0;      // rows of this panel whose weights are not in Y yet
  SoftmaxState<R> state[kChunkItems + 1];  // the last one is for padding rows
  R bias[kBlockRows];                      // minus the maximum that the next scores refer to

 private:
  void set_bias(int row) {
    const SoftmaxState<R>& own = state[block.item[row]];
    bias[row] = own.fresh() ? R{0} : -own.max;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
