#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

/// Linear models of a table, which any other model should answer better than.
namespace nsimplex::training {

struct LinearAnswers {
  at::Tensor answers;     ///< of the rows to judge by: classes, int64, or numbers, float64
  double strength = 0.0;  ///< of the penalty that was chosen
};

/// Multinomial logistic regression of classes, int64 [N] from 0 on, on columns x, float64 [N, M]:
/// minimises
///
///     mean cross entropy + strength / 2 sum W^2
///
/// over weights W and a bias a class by L-BFGS. The strength is 1, 0.1, .. or 1e-5: the one with the
/// least cross entropy of rows that were left out, over five parts of x, to which the rows of each
/// class go in turn. `checkpoint` is called between fits; what it throws ends it.
LinearAnswers logistic_regression(const at::Tensor& x, const at::Tensor& labels, int64_t classes,
                                  const at::Tensor& judge,
                                  const std::function<void()>& checkpoint = {});

/// Ridge regression of numbers, float64 [N], on columns x: minimises
///
///     mean squared error + strength sum w^2
///
/// with a bias. The strength is 100, 10, .. or 1e-5: the one with the least squared error of rows
/// that are left out one by one.
LinearAnswers ridge_regression(const at::Tensor& x, const at::Tensor& numbers,
                               const at::Tensor& judge);

}  // namespace nsimplex::training
