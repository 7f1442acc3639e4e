// Multiplies rows by a matrix, by the faster of MKL and oneDNN.

#include "support/rows_product.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "kernels/common/rounding.h"

namespace nsimplex {
namespace {

using at::Tensor;
using LinearCall = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&,
                          std::string_view, c10::List<std::optional<at::Scalar>>,
                          std::optional<std::string_view>);

// Smallest number of multiply-adds for which a call of oneDNN, about 10 microseconds, saves time.
constexpr int64_t kLeastWork = 1 << 20;
// Longest sum that oneDNN never splits into one part per thread.
constexpr int64_t kLongestSum = 1 << 12;
// Smallest size of a transposed product for which oneDNN is faster.
constexpr int64_t kLeastTransposed = 1 << 12;
// Rows of a transposed product that one thread adds up, and the step in which oneDNN takes them.
constexpr int64_t kTransposedRows = kLongestSum, kTransposedStep = 512;
// MKL's parts of a transposed product, and the fewest rows of each.
constexpr int64_t kMklParts = 16, kLeastMklRows = 256;

bool has_avx512_unknown_to_mkl() {
#if defined(__x86_64__) && defined(__GNUC__)
  return !__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

// torch's own interface to oneDNN, which torch.compile uses; absent if torch is built without it.
const std::optional<c10::TypedOperatorHandle<LinearCall>>& onednn_linear() {
  static const auto found = []() -> std::optional<c10::TypedOperatorHandle<LinearCall>> {
    if (!has_avx512_unknown_to_mkl()) return std::nullopt;
    const auto op = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
    return op->typed<LinearCall>();
  }();
  return found;
}

// oneDNN reads the right side in place. If that has gaps, it uses a plain loop.
bool in_one_piece(const Tensor& matrix) {
  return matrix.is_contiguous() || matrix.t().is_contiguous();
}

bool is_fast(const Tensor& rows, int64_t width) {
  return rows.scalar_type() == at::kFloat && rows.numel() * width >= kLeastWork &&
         onednn_linear() && at::globalContext().userEnabledMkldnn();
}
bool is_fast(const Tensor& rows, const Tensor& matrix) {
  return rows.size(0) % kProductRows == 0 && rows.size(1) <= kLongestSum &&
         is_fast(rows, matrix.size(1)) && in_one_piece(matrix);
}

// rows matrix^T + bias
Tensor onednn(const Tensor& rows, const Tensor& matrix, const std::optional<Tensor>& bias) {
  return onednn_linear()->call(rows, matrix, bias, "none", c10::List<std::optional<at::Scalar>>(),
                               "");
}

}  // namespace

void rows_product(const Tensor& rows, const Tensor& matrix, const std::optional<Tensor>& bias,
                  Tensor& to) {
  if (is_fast(rows, matrix)) {
    to.copy_(onednn(rows, matrix.t(), bias));
  } else if (bias) {
    at::addmm_out(to, *bias, rows, matrix);
  } else {
    at::mm_out(to, rows, matrix);
  }
}

void add_rows_product(const Tensor& rows, const Tensor& matrix, Tensor& to) {
  if (is_fast(rows, matrix)) {
    to.add_(onednn(rows, matrix.t(), std::nullopt));
  } else {
    to.addmm_(rows, matrix);
  }
}

Tensor blocks_product(const Tensor& rows, const Tensor& matrix) {
  const Tensor result = at::empty({rows.size(0), matrix.size(1)}, rows.options());
  for_each_block(rows.size(0), matrix.size(1), [&](int64_t begin, int64_t count) {
    Tensor to = result.narrow(0, begin, count);
    rows_product(rows.narrow(0, begin, count), matrix, std::nullopt, to);
  });
  return result;
}

Tensor transposed_product(const Tensor& rows, const Tensor& grad) {
  const int64_t count = rows.size(0), columns = rows.size(1), width = grad.size(1);
  const bool rows_right = rows.is_contiguous();
  const bool fast = columns * width >= kLeastTransposed && is_fast(rows, width) &&
                    (rows_right || grad.is_contiguous());
  const int64_t each = fast ? kTransposedRows : std::max(ceil_div(count, kMklParts), kLeastMklRows);
  const int64_t parts = ceil_div(count, each);
  if (parts == 0) return at::zeros({columns, width}, rows.options());
  const Tensor sums = at::empty({parts, columns, width}, rows.options());
  parallel_tasks(parts, [&](int64_t part, int) {
    const c10::InferenceMode nothing_is_recorded;
    const int64_t begin = part * each, size = std::min(each, count - begin);
    const int64_t whole = fast ? size / kTransposedStep * kTransposedStep : 0;
    Tensor sum = sums.select(0, part);
    if (whole == 0) {
      at::mm_out(sum, rows.narrow(0, begin, size).t(), grad.narrow(0, begin, size));
      return;
    }
    const Tensor left = rows.narrow(0, begin, whole).t(), right = grad.narrow(0, begin, whole).t();
    sum.copy_(rows_right ? onednn(right, left, std::nullopt).t()
                         : onednn(left, right, std::nullopt));
    if (whole < size) {
      sum.addmm_(rows.narrow(0, begin + whole, size - whole).t(),
                 grad.narrow(0, begin + whole, size - whole));
    }
  });
  for (int64_t part = 1; part < parts; ++part) sums[0].add_(sums[part]);
  return parts == 1 ? sums[0] : sums[0].clone();
}

}  // namespace nsimplex
