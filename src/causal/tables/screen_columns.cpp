// The function screen_columns() and its operator: some columns of a table that is too wide.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <functional>
#include <limits>

#include "causal/option_names.h"
#include "causal/tensors.h"
#include "kernels/common/rounding.h"
#include "support/interruptible.h"
#include "support/parallel.h"

namespace nsimplex {
namespace {

using at::Tensor;
using Checkpoint = std::function<void()>;

// Columns whose products fit into a core's cache.
constexpr int64_t kScreenBlock = 512;

// Columns as rows [M, n] less their means, with 0 in gaps. `size` is the largest value of each
// column, by which it is divided, so that squares stay in range.
struct Centred {
  Tensor columns, size, deviations;
};

Centred centred_columns(const Tensor& table) {
  constexpr double kConstant = 1e-12;  // that of a constant column
  const Tensor gaps = table.isnan();
  const Tensor size =
      at::where(gaps, 0.0, table).abs().amax(0).clamp_min(std::numeric_limits<double>::min());
  const Tensor scaled = table / size;
  const Tensor values = at::where(gaps, 0.0, scaled - scaled.nanmean(0)).t().contiguous();
  const Tensor counts = gaps.logical_not().sum(0).clamp_min(1);
  const Tensor deviations = (values.square().sum(1) / counts).sqrt();
  return {values, size, at::where(deviations > kConstant, deviations, 0.0)};
}

// The largest absolute correlation of each column with another one.
Tensor largest_correlations(const Centred& centred, const Checkpoint& checkpoint) {
  const Tensor lengths = centred.columns.norm(2, 1, /*keepdim=*/true);
  const Tensor varies = centred.deviations.unsqueeze(1) > 0;
  const Tensor unit = at::where(varies, centred.columns / lengths, 0.0);
  const int64_t count = unit.size(0), blocks = ceil_div(count, kScreenBlock);
  // What each task found. A task has the pairs of its own block with itself and those before it.
  Tensor found = at::zeros({blocks, count}, at::kDouble);
  const auto block_of = [&](const Tensor& from, int64_t dim, int64_t number) {
    const int64_t first = number * kScreenBlock;
    return from.narrow(dim, first, std::min(kScreenBlock, count - first));
  };
  parallel_tasks(blocks, [&](int64_t task, int) {
    // The longest tasks start first.
    const int64_t own = blocks - 1 - task;
    Tensor best = found.select(0, own);
    for (int64_t other = 0; other <= own; ++other) {
      if (checkpoint) checkpoint();
      Tensor products = at::mm(block_of(unit, 0, own), block_of(unit, 0, other).t()).abs_();
      if (own == other) products.fill_diagonal_(0.0);
      block_of(best, 0, other).copy_(at::maximum(block_of(best, 0, other), products.amax(0)));
      block_of(best, 0, own).copy_(at::maximum(block_of(best, 0, own), products.amax(1)));
    }
  });
  return found.amax(0);
}

Tensor screened(const Tensor& table, int64_t screen, ScreenCriterion by,
                const Checkpoint& checkpoint) {
  const Tensor values = causal::checked_table("[screen_columns] table", table, causal::Gaps::kept);
  TORCH_CHECK_VALUE(values.size(0) >= 2 && values.size(1) >= 2,
                    "[screen_columns] table: expected at least 2 rows and 2 columns, got ",
                    values.size(0), " x ", values.size(1));
  TORCH_CHECK_VALUE(screen >= 2, "[screen_columns] screen: expected at least 2, got ", screen);
  if (screen >= values.size(1)) return at::arange(values.size(1), at::kLong);
  const Centred centred = centred_columns(values);
  const Tensor scores = by == ScreenCriterion::variance ? centred.deviations * centred.size
                                                        : largest_correlations(centred, checkpoint);
  const Tensor order = at::argsort(scores, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  return std::get<0>(order.narrow(0, 0, screen).sort());
}

}  // namespace

Tensor screen_columns(const Tensor& table, int64_t screen, ScreenCriterion by) {
  return screened(table, screen, by, {});
}

namespace causal {
namespace {

Tensor screen_operator(const Tensor& table, int64_t screen, std::string_view by) {
  const ScreenCriterion criterion =
      as_function("screen_columns", [&] { return parse_name<ScreenCriterion>("by", by); });
  const Interruptible interruptible;
  return screened(table, screen, criterion, [&] { interruptible.check(); });
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("causal_screen_columns(Tensor table, int screen, str by) -> Tensor",
        TORCH_FN(screen_operator));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
