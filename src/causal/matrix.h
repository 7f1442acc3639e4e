// Matrices and tables as the Torch-free code of this folder takes them.

#pragma once

#include <Eigen/Core>

namespace nsimplex::causal {

/// Row-major, as tables and tensors lie in memory.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// A table [observations, features] that somebody else owns.
using TableView = Eigen::Map<const Matrix>;

}  // namespace nsimplex::causal
