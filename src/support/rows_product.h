#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>

#include "support/parallel.h"

namespace nsimplex {

/// to = rows matrix + bias, of rows [m, k], matrix [k, w] and bias [w], if there is one, of one
/// floating type; `to` [m, w] is no part of them. One thread's work where it is called from a task
/// of parallel_tasks; then its bits depend on the arguments alone.
///
/// torch multiplies with MKL, which knows AVX-512 on Intel's processors only. On others that have
/// it float rows, a multiple of kProductRows, are given to oneDNN, which torch's wheels hold for
/// x86-64: twice as fast there. It compiles a kernel for each shape, in half a millisecond, so that
/// shapes that do not come again are left to MKL.
void rows_product(const at::Tensor& rows, const at::Tensor& matrix,
                  const std::optional<at::Tensor>& bias, at::Tensor& to);

/// to += rows matrix, likewise.
void add_rows_product(const at::Tensor& rows, const at::Tensor& matrix, at::Tensor& to);

constexpr int64_t kProductRows = 128;

/// About as many rows as are wanted at a time, so that the product is a fast one.
constexpr int64_t product_rows(int64_t wanted) {
  return wanted < kProductRows ? std::max<int64_t>(wanted, 1)
                               : wanted / kProductRows * kProductRows;
}

/// rows matrix [m, w], on all threads and with the same bits for any number of them.
at::Tensor blocks_product(const at::Tensor& rows, const at::Tensor& matrix);

/// run(begin, count) for blocks of the rows of a product `width` wide, each by one thread.
template <class Run>
void for_each_block(int64_t rows, int64_t width, Run&& run) {
  // 128 KB in float32: a block is in a core's second cache when what else belongs to it is added.
  constexpr int64_t kNumbers = 1 << 15;
  const int64_t each = product_rows(kNumbers / std::max<int64_t>(width, 1));
  parallel_tasks((rows + each - 1) / each, [&](int64_t block, int) {
    const c10::InferenceMode nothing_is_recorded;
    const int64_t begin = block * each;
    run(begin, std::min(each, rows - begin));
  });
}

/// rows^T grad [k, w], of rows [m, k] and grad [m, w] of one floating type, on all threads and with
/// the same bits for any number of them.
at::Tensor transposed_product(const at::Tensor& rows, const at::Tensor& grad);

}  // namespace nsimplex
