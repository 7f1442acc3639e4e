#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/cpu/separable_attention/separable_attention.h"

// Problems of the separable kernel's tests, the definition in long double, and a driver.

namespace nsimplex::kernels::testing {

struct SeparableCase {
  std::string name;
  int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, features = 8, value_dim = 8;
  std::vector<int64_t> lengths;      ///< T_m; its size is the order
  std::vector<int64_t> left, right;  ///< windows, one an axis; empty: unbounded
  bool causal = false;
  bool silent_query = false;  ///< the features of query 1 are zero
  bool grad_normalizer = true;
};

std::ostream& operator<<(std::ostream& stream, const SeparableCase& value);

/// Owned data of a case, contiguous, and its results.
template <class T>
struct SeparableData {
  explicit SeparableData(const SeparableCase& shape);

  /// Runs the kernel with this many threads; gradients are those of sum (out o grad_out) +
  /// sum (den o grad_den).
  void run(int threads = 1);
  /// The same from the definition.
  void define();

  SeparableCase shape;
  std::vector<T> query, grad_out, grad_den;
  std::vector<std::vector<T>> keys, values;

  std::vector<T> out, normalizer, grad_query;
  std::vector<std::vector<T>> grad_keys, grad_values;

 private:
  SeparableProblem<T> problem() const;
  std::vector<T> grad_sums() const;
  void run_backward(int threads);
};

}  // namespace nsimplex::kernels::testing
