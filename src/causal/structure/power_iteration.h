#pragma once

#include <functional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// out = B in, or B^T in, for a matrix B without negative entries that may exist nowhere.
using Product = std::function<void(const Vector& in, Vector& out)>;

/// Eigenvectors of the largest eigenvalue of a nonnegative matrix, kept between calls: where the
/// matrix changed little, few products follow.
struct PerronVectors {
  Vector left, right;  ///< each of norm 1; empty before the first call
};

/// The spectral radius of a nonnegative M x M matrix by power iteration from both sides. Then its
/// derivative by B_ij is left_i right_j / (left . right).
///
/// Multiplies by B + shift I, since the largest eigenvalue of B need not be alone on its circle (an
/// edge each way has +-r). At most `products` pairs of products; an answer that did not settle by
/// then, of matrices near to a nilpotent one, is an estimate.
double spectral_radius(const Product& times, const Product& times_transposed, int64_t features,
                       PerronVectors& vectors, int products = 40);

}  // namespace nsimplex::causal
