#pragma once

#include <cstdint>

#include "kernels/common/tuple_attention_problem.h"

// Plain description of random features of queries and keys, of every head. No ownership.

namespace nsimplex::kernels {

enum class HeadFeatureMap {
  relu,         ///< phi(x)_f = max(x . w_f, 0) + floor
  exponential,  ///< phi(x)_f = exp(x . w_f - half_square |x|^2 - shift) + floor
};

/// What is written: features of the rectifier at once; of exponentials first the exponents without
/// the shift and in its place the largest of each head row, then, by a pass of its own, the rest.
template <class T>
struct HeadFeatures {
  HeadFeatureMap map = HeadFeatureMap::relu;
  int64_t rows = 0, heads = 0, features = 0;
  HeadRows<T> x;
  const T* directions = nullptr;  ///< [width of x, padded_channels(features)], zero behind the last
  T floor = 0;
  T* to = nullptr;  ///< [rows, heads, features]
  T half_square = 0;
  T* shift = nullptr;  ///< [rows, heads], of exponentials, whose exponents are then at most 0
};

/// The gradient of x from that of its features; the shift of exponentials counts as a constant.
template <class T>
struct HeadFeaturesBackward {
  HeadFeatureMap map = HeadFeatureMap::relu;
  int64_t rows = 0, heads = 0, features = 0, width = 0;
  const T* of_x = nullptr;        ///< [rows, heads, features]
  const T* directions = nullptr;  ///< [features, padded_channels(width)], zero behind the last
  T floor = 0;
  const double* grad = nullptr;  ///< [rows, heads, features]
  T* to = nullptr;
  int64_t to_stride = 0;
  HeadRows<T> x;      ///< of exponentials
  T half_square = 0;  ///< of exponentials
};

}  // namespace nsimplex::kernels
