#pragma once

#include <cstdint>

// Plain description of what happens to the rows of a class before and after its loops over pairs
// and tables. No ownership. Rows are [heads, channels], `stride` apart where others lie between.

namespace nsimplex::kernels {

/// to[r] += the rows of products that places[r] names.
template <class T>
struct SeenRows {
  int64_t rows = 0, columns = 0, width = 0;
  const T* products = nullptr;      ///< [.., width]
  const int32_t* places = nullptr;  ///< [rows, columns]: a row of products or -1
  T* to = nullptr;                  ///< [rows, width]
};

/// From the sums over a query's keys to the class's result, and to the gradients of the sums.
template <class T>
struct ClassOutput {
  int64_t rows = 0, heads = 0, values = 0;
  const double* sums = nullptr;     ///< [rows, heads, values + 1]: of w v and of w
  const int32_t* counts = nullptr;  ///< [rows]: keys of a query; without: those with no w have none
  bool normalise = true;            ///< divide by the sum of w, else times `factor`
  double factor = 1;
  T* out = nullptr;
  int64_t out_stride = 0;

  /// Backward, where there is a gradient of `out`.
  const T* grad_out = nullptr;
  int64_t grad_out_stride = 0;
  bool weights_are_shares = false;  ///< w is divided by its sum already
  T* grad = nullptr;                ///< [rows, heads, values + 1]

  /// Where tables have left sums of (g_out . v) k and of k: they become the gradient of the query.
  int64_t features = 0;
  double* grad_query = nullptr;      ///< [rows, heads, features]
  const double* key_sums = nullptr;  ///< [rows, heads, features]
};

}  // namespace nsimplex::kernels
