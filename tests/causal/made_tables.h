#pragma once

#include <cstdint>

#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal::test {

struct MadeTable {
  Matrix weights;  ///< A of the model
  Matrix table;    ///< [observations, M]

  TableView view() const { return {table.data(), table.rows(), table.cols()}; }
};

/// Rows of the linear model x_j = sum_i x_i A_ij + noise of variance 1. Columns of A must have
/// their causes before them.
inline MadeTable linear_table(const Matrix& weights, int64_t observations, uint64_t seed) {
  RandomStream random(seed);
  MadeTable made{weights, Matrix(observations, weights.rows())};
  for (int64_t row = 0; row < observations; ++row) {
    for (int64_t column = 0; column < weights.cols(); ++column) {
      made.table(row, column) =
          made.table.row(row).head(column).dot(weights.col(column).head(column)) + random.normal();
    }
  }
  return made;
}

/// Weights of a random graph of 2 M edges, each -2 .. -0.5 or 0.5 .. 2, i -> j for i < j.
inline Matrix random_weights(int64_t features, uint64_t seed) {
  RandomStream random(seed);
  Matrix weights = Matrix::Zero(features, features);
  for (int64_t edges = 0; edges < 2 * features;) {
    const int64_t effect = 1 + random.below(features - 1), cause = random.below(effect);
    if (weights(cause, effect) != 0) continue;
    weights(cause, effect) = (0.5 + 1.5 * random.unit()) * (random.below(2) == 0 ? 1 : -1);
    ++edges;
  }
  return weights;
}

/// Pairs of columns whose edge is missing, too many or the wrong way round.
inline int64_t wrong_pairs(const Matrix& found, const Matrix& truth) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < truth.rows(); ++i) {
    for (int64_t j = i + 1; j < truth.rows(); ++j) {
      wrong += (found(i, j) != 0) != (truth(i, j) != 0) || (found(j, i) != 0) != (truth(j, i) != 0);
    }
  }
  return wrong;
}

}  // namespace nsimplex::causal::test
