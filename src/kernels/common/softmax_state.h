// The online softmax of one query: a running maximum and sum from which weights and lse follow.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsimplex::kernels {

inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kLog2E = 1.4426950408889634074;

/// Above this size of lse, exp(x - lse) loses digits: half an epsilon of lse is its relative error,
/// 1.5e-5 in fp32 at this size. The backward pass then asks for the softmax state of the row.
inline constexpr double kLargeLse = 256;

template <class R>
bool is_large_lse(R lse) {
  return std::abs(lse) > kLargeLse && std::isfinite(lse);
}

/// Online softmax of one query, in base 2. For the logits base + x ln 2 seen so far it keeps
///   max = a running maximum of x,  sum = sum_x 2^(x - max),
/// and its owner keeps the weighted values sum_x 2^(x - max) v_x in the same scale.
///
/// `max` may lag behind the true maximum by kSlack. Weights then reach 2^kSlack, which fp32 easily
/// represents, and after the first tiles no logit changes it any more.
///
/// `base`, in natural units, is 0 unless every tuple seen has a large mask. Then it is the mask of
/// one of them, so that the common part of the row is subtracted before anything is rounded: fp32
/// loses a score next to -1e9, and also the logarithm of a sum.
template <class R>
struct SoftmaxState {
  static constexpr R kSlack = 10;
  static constexpr R kNear = 64;  ///< masks up to here need no base: they cost 4e-6 of a weight

  R base = 0;
  R max = -std::numeric_limits<R>::infinity();
  R sum = R{0};

  /// The state of a single logit, in natural units.
  static SoftmaxState of(R logit) {
    if (needs_base(logit)) return {logit, R{0}, R{1}};
    return {R{0}, static_cast<R>(logit * kLog2E), R{1}};
  }

  void init() { *this = SoftmaxState{}; }

  /// Nothing was seen yet (or only logits of minus infinity).
  bool fresh() const { return max == -std::numeric_limits<R>::infinity(); }

  /// Whether a logit requires a new maximum. False for NaN, which spreads without one.
  bool exceeded_by(R logit) const { return fresh() ? logit > max : logit > max + kSlack; }

  /// Whether tuples with `mask` as their largest mask require another base.
  bool outgrown_by(R mask) const {
    if (!std::isfinite(mask)) return false;
    return fresh() ? std::abs(mask - base) > kNear : mask - base > kNear;
  }

  /// Chooses the base for tuples with this mask. The state keeps its meaning.
  void move_base(R mask) { change_base(needs_base(mask) ? mask : R{0}); }

  /// Moves to a new maximum and returns the factor for the owner's sums in the old scale.
  R raise(R new_max) {
    // A fresh state has summed nothing, so the factor is 0 and not the NaN of inf - inf.
    const R factor = fresh() ? R{0} : std::exp2(max - new_max);
    max = new_max;
    sum *= factor;
    return factor;
  }

  /// Adds the state of disjoint tuples. The weighted values of both sides must be multiplied by the
  /// returned factors and added.
  struct Factors {
    R own, other;
  };
  Factors merge(SoftmaxState other) {
    if (base != other.base) {
      if (other.largest() > largest()) {
        change_base(other.base);
      } else {
        other.change_base(base);
      }
    }
    const R both = std::max(max, other.max);
    // Equal maxima first: both may be infinite, and their difference would be NaN.
    const Factors factors{max == both ? R{1} : std::exp2(max - both),
                          other.max == both ? R{1} : std::exp2(other.max - both)};
    sum = sum * factors.own + other.sum * factors.other;
    max = both;
    return factors;
  }

  /// The final factor of the owner's weighted values.
  R normalizer() const { return R{1} / sum; }

  /// Natural logarithm of the sum of exp(logit).
  R log_sum_exp() const {
    return static_cast<R>(base +
                          (static_cast<double>(max) + std::log2(static_cast<double>(sum))) * kLn2);
  }

 private:
  static bool needs_base(R logit) { return std::isfinite(logit) && std::abs(logit) > kNear; }

  double largest() const { return base + static_cast<double>(max) * kLn2; }

  void change_base(R new_base) {
    // Far below all relevant values, but finite: a state that has seen something is not fresh.
    constexpr double kLeast = std::numeric_limits<R>::lowest() / 4;
    if (!fresh()) {
      max = static_cast<R>(std::max((static_cast<double>(base) - new_base) * kLog2E + max, kLeast));
    }
    base = new_base;
  }
};

}  // namespace nsimplex::kernels
