// Scores to weights for every normaliser, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_WEIGHTS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_WEIGHTS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_WEIGHTS_INL_H_
#endif

#include "kernels/cpu/shared/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The tile of multiply_strip() that starts at `a`, `panel` and `to`.
template <class E, class R, int kRows, int kVectors>
HWY_INLINE void multiply_tile(const R* a, int64_t a_row, const R* panel, int64_t depth, R scale,
                              R* to) {
  const Tag<R> d;
  Tile<R, kRows, kVectors> s;
  s.zero();
  s.template multiply_add<E>(a, a_row, 1, panel, kPanelKeys, depth);
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Vec<R> score = scaled<E>(s.at[r][v], hn::Set(d, scale));
      hn::Store(score, d, to + r * kPanelKeys + v * kLanes<R>);
    }
  }
}

/// A strip's raw scores: to[row, column] = scale sum_k a[row, k] panel[k, column] for kStripRows
/// rows and the columns of `part`. Numbers are scaled before they are multiplied, so their scale is
/// left out (see scaled()).
template <class E, class R>
void multiply_strip(const R* a, int64_t a_row, const R* panel, int64_t depth, R scale,
                    const PanelPart<R>& part, R* to) {
  for_each_score_tile<kTile.score_vectors>(
      part.vector, part.vector_end, [&]<int kRows, int kVectors>(int row, int vector) HWY_ATTR {
        multiply_tile<E, R, kRows, kVectors>(a + row * a_row, a_row, panel + vector * kLanes<R>,
                                             depth, scale,
                                             to + row * kPanelKeys + vector * kLanes<R>);
      });
}

/// Scales a strip's raw scores that tiles left.
template <class E, class R>
void scale_strip(const PanelPart<R>& part, R scale, R* scores) {
  const Tag<R> d;
  for (int r = 0; r < kStripRows && scale != R{1}; ++r) {
    for (int v = part.vector; v < part.vector_end; ++v) {
      R* const at = scores + r * kPanelKeys + v * kLanes<R>;
      hn::Store(scaled<E>(hn::Load(d, at), hn::Set(d, scale)), d, at);
    }
  }
}

/// Weights of scores and their derivatives. `norm` is minus the logarithm of the normaliser for
/// softmax and its inverse for relu; sigmoid has none. Scores are logits times Geometry::unit. A
/// score of minus infinity has the weight exactly 0, and NaN stays NaN.
template <Normalizer kNormalizer>
struct Weigh {
  template <class R>
  static HWY_INLINE Vec<R> weight(Vec<R> score, R norm) {
    const Tag<R> d;
    if constexpr (kNormalizer == Normalizer::sigmoid) {
      const Vec<R> limit = hn::Set(d, R{126});
      const Vec<R> minus = hn::Neg(score);
      const Vec<R> bounded = hn::IfThenElse(hn::Gt(minus, limit), limit, minus);
      const Vec<R> one = hn::Set(d, R{1});
      const Vec<R> weight = hn::Div(one, hn::Add(one, exp2(bounded)));
      return hn::IfThenZeroElse(hn::Gt(minus, limit), weight);
    } else if constexpr (kNormalizer == Normalizer::relu) {
      return hn::IfThenZeroElse(hn::Le(score, hn::Zero(d)), hn::Mul(score, hn::Set(d, norm)));
    } else {
      return exp2(hn::Add(score, hn::Set(d, norm)));
    }
  }

  /// The weight's derivative with respect to its own logit, without the shared normaliser's term.
  template <class R>
  static HWY_INLINE Vec<R> slope(Vec<R> score, Vec<R> weight, R norm) {
    const Tag<R> d;
    if constexpr (kNormalizer == Normalizer::sigmoid) {
      return hn::NegMulAdd(weight, weight, weight);
    } else if constexpr (kNormalizer == Normalizer::relu) {
      return hn::IfThenZeroElse(hn::Le(score, hn::Zero(d)), hn::Set(d, norm));
    } else {
      return weight;
    }
  }
};

/// Calls body(Weigh<..>()) for a normaliser. A sink changes only the normaliser: weights are
/// softmax's.
template <class Body>
HWY_INLINE void with_weigh(Normalizer normalizer, Body&& body) {
  switch (normalizer) {
    case Normalizer::softmax:
    case Normalizer::softmax_sink:
      return body(Weigh<Normalizer::softmax>());
    case Normalizer::sigmoid:
      return body(Weigh<Normalizer::sigmoid>());
    case Normalizer::relu:
      return body(Weigh<Normalizer::relu>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
