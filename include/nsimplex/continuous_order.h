#pragma once

#include <nsimplex/attention.h>

#include <vector>

namespace nsimplex {

struct ContinuousOrder {
  std::vector<at::Tensor> keys, values;  ///< for attention(), N of each
  Scale scale;                           ///< for AttentionOptions::scale
};

/// Attention of an order between two whole ones (experimental): what attention() is to be called
/// with, given N keys and values, for an order n = N - 1 + a, 0 <= a <= 1.
///
///     kN <- (1 - a) 1 + a kN,  vN <- (1 - a) 1 + a vN
///     s1 = D^(-N/2) / ((1 - a) + a D^1/2),  s2 = Dv^-(N-2)/2 / ((1 - a) + a Dv^1/2)
///
/// a = 1 is order N and a = 0 order N - 1, with the unit scales of either; at every order between
/// them the sensitivity to inputs of unit root mean square is 1 as well. A trained model's order
/// can be scaled so. For the product form and reducer. The other keys and values are
/// handed through. Unless mask or distinct ties the axes together, a = 0 gives the output of order
/// N - 1 exactly, and an lse that is larger by the log of the number of keys that the query sees on
/// the last axis.
///
/// Errors: c10::ValueError for fewer than 2 keys or an order outside [N - 1, N].
NSIMPLEX_API ContinuousOrder continuous_order(at::TensorList keys, at::TensorList values,
                                              double order);

}  // namespace nsimplex
