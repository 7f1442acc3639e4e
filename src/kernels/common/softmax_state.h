#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace nsimplex::kernels {

/// Online softmax of one query, in base 2: of logits x (times log2 e) seen so far it keeps
///   max = a running maximum,  sum = sum_x 2^(x - max),
/// and its owner keeps the weighted values sum_x 2^(x - max) v_x in the same scale.
///
/// `max` may lag behind the true maximum by kSlack: weights then reach 2^kSlack, which fp32 bears
/// easily, and after the first tiles no logit moves it any more.
template <class R>
struct SoftmaxState {
  static constexpr R kSlack = 10;

  R max = -std::numeric_limits<R>::infinity();
  R sum = R{0};

  void init() { *this = SoftmaxState{}; }

  /// Nothing was seen yet (or only logits of minus infinity).
  bool fresh() const { return max == -std::numeric_limits<R>::infinity(); }

  /// Whether a logit calls for a new maximum. False for NaN, which needs none to spread.
  bool exceeded_by(R logit) const { return fresh() ? logit > max : logit > max + kSlack; }

  /// Moves to a new maximum; returns the factor for what the owner has summed in the old scale.
  R raise(R new_max) {
    // A fresh state has summed nothing: 0, and not the NaN of inf - inf.
    const R factor = fresh() ? R{0} : std::exp2(max - new_max);
    max = new_max;
    sum *= factor;
    return factor;
  }

  /// Takes in the state of disjoint tuples. The weighted values of both sides are to be multiplied
  /// by the factors returned and added.
  struct Factors {
    R own, other;
  };
  Factors merge(const SoftmaxState& other) {
    const R both = std::max(max, other.max);
    // Equal maxima first: both may be infinite, and their difference NaN.
    const Factors factors{max == both ? R{1} : std::exp2(max - both),
                          other.max == both ? R{1} : std::exp2(other.max - both)};
    sum = sum * factors.own + other.sum * factors.other;
    max = both;
    return factors;
  }

  /// What the owner's weighted values are multiplied with in the end.
  R normalizer() const { return R{1} / sum; }

  /// Natural logarithm of the sum of exp(logit).
  R log_sum_exp() const {
    constexpr double kLn2 = 0.69314718055994530942;
    return static_cast<R>((static_cast<double>(max) + std::log2(static_cast<double>(sum))) * kLn2);
  }
};

}  // namespace nsimplex::kernels
