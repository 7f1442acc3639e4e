// Computes distances from one point of hyperbolic space to many others, and how they pull it.

#include "kernels/cpu/hyperbolic/hyperbolic_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/hyperbolic/hyperbolic_pairs.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::hyperbolic {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<double, kHyperbolicLanes>;
using Vec = hn::Vec<Tag>;
constexpr Tag kTag;

// Pairs of one point with one vector of others.
struct Pairs {
  Vec sinh, half_sinh, half_cosh, gap;  // of s; of (r - s) / 2; |u - v|^2
  Vec square;                           // q
};

HWY_INLINE Pairs pairs_at(const HyperbolicPoint& point, const HyperbolicPoints& others,
                          int64_t at) {
  Pairs pairs;
  pairs.gap = hn::Zero(kTag);
  for (int64_t axis = 0; axis < others.dimension; ++axis) {
    const Vec across = hn::Sub(hn::LoadU(kTag, others.directions + axis * others.count + at),
                               hn::Set(kTag, point.direction[axis]));
    pairs.gap = hn::MulAdd(across, across, pairs.gap);
  }
  const Vec there = hn::Mul(hn::Set(kTag, 0.5 * point.grown), hn::LoadU(kTag, others.shrunk + at));
  const Vec back = hn::Mul(hn::Set(kTag, 0.5 * point.shrunk), hn::LoadU(kTag, others.grown + at));
  pairs.sinh = hn::LoadU(kTag, others.sinh + at);
  pairs.half_sinh = hn::Sub(there, back);
  pairs.half_cosh = hn::Add(there, back);
  pairs.square = hn::MulAdd(hn::Mul(hn::Set(kTag, 0.25 * point.sinh), pairs.sinh), pairs.gap,
                            hn::Mul(pairs.half_sinh, pairs.half_sinh));
  return pairs;
}

// map(q) of all pairs, in order.
template <class Map>
HWY_INLINE void map_squares(const HyperbolicPoint& point, const HyperbolicPoints& others,
                            double* results, const Map& map) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t at = 0; at < others.count; at += lanes) {
    hn::StoreU(map(pairs_at(point, others, at).square), kTag, results + at);
  }
}

void squares(const HyperbolicPoint& point, const HyperbolicPoints& others, double* results) {
  map_squares(point, others, results, [](Vec square) HWY_ATTR { return square; });
}

void nearness(const HyperbolicPoint& point, const HyperbolicPoints& others, double* results) {
  const Vec one = hn::Set(kTag, 1.0);
  map_squares(point, others, results, [one](Vec square) HWY_ATTR {
    const Vec grown = hn::Add(hn::Sqrt(square), hn::Sqrt(hn::Add(one, square)));
    return hn::Div(one, hn::Mul(grown, grown));
  });
}

void pull(const HyperbolicPoint& point, const HyperbolicPoints& others, double* weights,
          double* radial, double* turn) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const Vec one = hn::Set(kTag, 1.0), quarter_cosh = hn::Set(kTag, 0.25 * point.cosh);
  const Vec least = hn::Set(kTag, kHyperbolicLeastSquare);
  Vec slopes = hn::Zero(kTag);
  for (int64_t at = 0; at < others.count; at += lanes) {
    const Pairs pairs = pairs_at(point, others, at);
    // -d(e^-d)/dq = e^-d dd/dq = 1 / (s t (s + t)^2).
    const Vec s = hn::Sqrt(pairs.square), t = hn::Sqrt(hn::Add(one, pairs.square)),
              sum = hn::Add(s, t);
    const Vec factor =
        hn::Div(hn::Neg(hn::LoadU(kTag, weights + at)), hn::Mul(hn::Mul(s, t), hn::Mul(sum, sum)));
    const Vec by_square = hn::IfThenElseZero(hn::Gt(pairs.square, least), factor);
    const Vec slope = hn::MulAdd(quarter_cosh, hn::Mul(pairs.sinh, pairs.gap),
                                 hn::Mul(pairs.half_sinh, pairs.half_cosh));
    slopes = hn::MulAdd(by_square, slope, slopes);
    hn::StoreU(hn::Mul(by_square, pairs.sinh), kTag, weights + at);
  }
  *radial = hn::GetLane(hn::SumOfLanes(kTag, slopes));
  for (int64_t axis = 0; axis < others.dimension; ++axis) {
    const double* const direction = others.directions + axis * others.count;
    const Vec own = hn::Set(kTag, point.direction[axis]);
    Vec total = hn::Zero(kTag);
    for (int64_t at = 0; at < others.count; at += lanes) {
      // Only the part of v across u counts, so v - u gives the same and keeps its digits.
      total = hn::MulAdd(hn::LoadU(kTag, weights + at),
                         hn::Sub(hn::LoadU(kTag, direction + at), own), total);
    }
    turn[axis] = hn::GetLane(hn::SumOfLanes(kTag, total));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::hyperbolic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace hyperbolic {
HWY_EXPORT(squares);
HWY_EXPORT(nearness);
HWY_EXPORT(pull);
}  // namespace hyperbolic

void hyperbolic_squares(const HyperbolicPoint& point, const HyperbolicPoints& others,
                        double* squares) {
  using namespace hyperbolic;
  HWY_DYNAMIC_DISPATCH(squares)(point, others, squares);
}

void hyperbolic_nearness(const HyperbolicPoint& point, const HyperbolicPoints& others,
                         double* nearness) {
  using namespace hyperbolic;
  HWY_DYNAMIC_DISPATCH(nearness)(point, others, nearness);
}

void hyperbolic_pull(const HyperbolicPoint& point, const HyperbolicPoints& others, double* weights,
                     double* radial, double* turn) {
  using namespace hyperbolic;
  HWY_DYNAMIC_DISPATCH(pull)(point, others, weights, radial, turn);
}

}  // namespace nsimplex::kernels
#endif  // HWY_ONCE
