// The memory of the backward pass for a block of rows, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_ROWS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_ROWS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_ROWS_INL_H_
#endif

#include <cstring>

#include "kernels/cpu/shared/item_delta.h"
#include "kernels/cpu/shared/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The shared normaliser's term in the gradients of a row's logits, delta, and what a tuple with
/// all of the row's weight has instead of its gradient less delta.
template <class R>
struct DeltaTerm {
  R minus_delta = 0;
  R whole = std::numeric_limits<R>::infinity();  ///< kWholeWeight as a weight P of the row
  R grad_lse = 0;

  /// dP, which has delta already, of tuples with the weight P. NaN stays NaN.
  template <class T>
  HWY_INLINE Vec<R> of(Vec<R> weight, Vec<R> dp) const {
    if constexpr (!kRoundedDelta<T>) return dp;
    const Tag<R> d;
    const Vec<R> alone = hn::MulAdd(dp, hn::Zero(d), hn::Set(d, grad_lse));
    return hn::IfThenElse(hn::Ge(weight, hn::Set(d, whole)), alone, dp);
  }
};

/// That of a query. The factor of its weights is in the output's gradient and in delta.
template <class T>
DeltaTerm<Accum<T>> delta_term(const DenseBackward<T>& problem, const ItemNorm<Accum<T>>& norm,
                               int64_t batch, int64_t head, int64_t query) {
  using R = Accum<T>;
  const int64_t statistic = (batch * problem.heads + head) * problem.queries + query;
  const double grad_lse = problem.grad_lse ? problem.grad_lse[statistic] : 0.0;
  return {.minus_delta = static_cast<R>(-norm.factor * item_delta(problem, batch, head, query)),
          .whole = static_cast<R>(kWholeWeight / norm.factor),
          .grad_lse = static_cast<R>(norm.factor * grad_lse)};
}

/// Rows of a block and the data that their gradients need. The owner fills `block`, `u`, `g`,
/// `base`, `norm`, `share` and `delta`, and reads `du`, `y` and `sums`.
template <class T>
struct BackwardRows {
  using R = Accum<T>;

  BackwardRows(const Geometry& geometry, int rows, Arena<R>& arena)
      : geometry(geometry),
        block(rows),
        u(arena.take(rows * geometry.depth)),
        g(arena.take(rows * geometry.value_depth)),
        du(arena.take(rows * geometry.depth)),
        y(arena.take(rows * geometry.value_depth)),
        sums(arena.take(rows * kLineChannels)),
        p(arena.take(rows * kPanelKeys)),
        ds(arena.take(rows * kPanelKeys)) {}

  void start_block() {
    const int rows = block.padded_rows();
    const int64_t depth = geometry.depth, width = geometry.value_depth;
    block.pad(u, depth);
    for (int r = block.rows; r < rows; ++r) {
      norm[r] = share[r] = R{0};
      delta[r] = {};
      std::fill(g + r * width, g + (r + 1) * width, R{0});
    }
    std::memset(du, 0, rows * depth * sizeof(R));
    std::memset(y, 0, rows * width * sizeof(R));
    std::memset(sums, 0, rows * kLineChannels * sizeof(R));
  }

  const Geometry& geometry;
  Block block;
  R* const u;                // [rows, depth]          scaled query combined with leading keys
  R* const g;                // [rows, value_depth]    s2 dO (o leading values)
  R* const du;               // [rows, depth]          without s1
  R* const y;                // [rows, value_depth]
  R* const sums;             // [rows, kLineChannels]  row sums of P, lane by lane
  R* const p;                // [rows, kPanelKeys]     weights, after dropout
  R* const ds;               // [rows, kPanelKeys]     gradients of logits
  R base[Block::kMaxRows];   // reference of masks (see SoftmaxState)
  R norm[Block::kMaxRows];   // minus lse in base 2, relative to the base; relu: 1 / sum
  R share[Block::kMaxRows];  // the leading values' share of dP when values are summed
  DeltaTerm<R> delta[Block::kMaxRows];
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
