// Declares products of rows and a matrix whose bits do not depend on the number of threads.

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>

#include "kernels/common/rounding.h"
#include "support/parallel.h"

namespace nsimplex {

/// to = rows matrix + bias, of rows [m, k], matrix [k, w] and an optional bias [w], all of one
/// floating type. `to` [m, w] must not overlap them. In a task of parallel_tasks it runs on one
/// thread, and its bits then depend only on the arguments.
///
/// torch multiplies with MKL, which uses AVX-512 only on Intel's processors. On other processors
/// with AVX-512, float rows (a multiple of kProductRows) go to oneDNN, which torch's wheels for
/// x86-64 contain: twice as fast there. oneDNN compiles a kernel per shape in half a millisecond,
/// so shapes that do not repeat are left to MKL.
void rows_product(const at::Tensor& rows, const at::Tensor& matrix,
                  const std::optional<at::Tensor>& bias, at::Tensor& to);

/// to += rows matrix, in the same way.
void add_rows_product(const at::Tensor& rows, const at::Tensor& matrix, at::Tensor& to);

constexpr int64_t kProductRows = 128;

/// The number of rows per product, near `wanted`, that makes it fast.
constexpr int64_t product_rows(int64_t wanted) {
  return wanted < kProductRows ? std::max<int64_t>(wanted, 1)
                               : wanted / kProductRows * kProductRows;
}

/// rows matrix [m, w], on all threads and with the same bits for any number of them.
at::Tensor blocks_product(const at::Tensor& rows, const at::Tensor& matrix);

/// Calls run(begin, count) for blocks of the rows of a product of this width, each on one thread.
template <class Run>
void for_each_block(int64_t rows, int64_t width, Run&& run) {
  // 128 KB in float32: a block is still in a core's second cache when further terms are added to
  // it.
  constexpr int64_t kNumbers = 1 << 15;
  const int64_t each = product_rows(kNumbers / std::max<int64_t>(width, 1));
  parallel_tasks(ceil_div(rows, each), [&](int64_t block, int) {
    const c10::InferenceMode nothing_is_recorded;
    const int64_t begin = block * each;
    run(begin, std::min(each, rows - begin));
  });
}

/// rows^T grad [k, w], of rows [m, k] and grad [m, w] of one floating type, on all threads and with
/// the same bits for any number of them.
at::Tensor transposed_product(const at::Tensor& rows, const at::Tensor& grad);

}  // namespace nsimplex
