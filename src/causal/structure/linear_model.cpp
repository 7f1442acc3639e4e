// The linear model of a graph, and its operator: each column regressed on its causes.

#include "causal/structure/linear_model.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>
#include <tuple>

#include "causal/structure/fit_arguments.h"
#include "causal/tables/table_arguments.h"
#include "causal/tensors.h"
#include "support/require.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

constexpr double kModelRounding = std::numeric_limits<double>::epsilon();

// Of numbers, or of each column.
Tensor variances_of(const Tensor& values) { return (values - values.mean(0)).square().mean(0); }

Tensor causes_in(const Tensor& graph, int64_t effect) {
  return graph.select(1, effect).nonzero().flatten();
}

// The groups as 0, 1, ..; undefined if there are none.
Tensor numbers_of(std::span<const int64_t> groups) {
  if (groups.empty()) return {};
  const Tensor given = at::tensor(at::IntArrayRef(groups.data(), groups.size()), at::kLong);
  return std::get<1>(at::_unique(given, /*sorted=*/true, /*return_inverse=*/true));
}

// A table with the values less the means of their groups.
Tensor less_group_means(const Tensor& table, const Tensor& groups) {
  if (!groups.defined() || groups.numel() == 0) return table;
  const int64_t count = groups.max().item<int64_t>() + 1;
  const Tensor sums = at::zeros({count, table.size(1)}, at::kDouble).index_add(0, groups, table);
  const Tensor rows = at::bincount(groups, {}, count).unsqueeze(1);
  return table - (sums / rows).index_select(0, groups);
}

// bool [n, M]: whether a row says nothing about the causes of a column; undefined if none is.
Tensor rows_left_out(const std::vector<std::vector<int64_t>>& targets, int64_t columns) {
  if (targets.empty()) return {};
  Tensor marked = at::zeros({std::ssize(targets), columns}, at::kBool);
  auto at = marked.accessor<bool, 2>();
  for (int64_t row = 0; row < marked.size(0); ++row) {
    for (const int64_t column : targets[static_cast<size_t>(row)]) at[row][column] = true;
  }
  return marked;
}

LinearModel regress_all(const Tensor& table, const Tensor& graph) {
  const Tensor mean = table.mean(0), centred = table - mean;
  const Tensor covariance = at::mm(centred.t(), centred) / table.size(0);
  Tensor coefficients = at::zeros_like(graph), variances = covariance.diagonal().clone();
  for (int64_t effect = 0; effect < graph.size(1); ++effect) {
    const Tensor causes = causes_in(graph, effect);
    if (causes.numel() == 0) continue;
    const Tensor rows = covariance.index_select(0, causes);
    const Tensor own = rows.index_select(1, causes), shared = rows.select(1, effect);
    const std::optional<double> usual;
    const Tensor slopes = at::mv(at::linalg_pinv(own, usual, usual, /*hermitian=*/true), shared);
    coefficients.select(1, effect).index_copy_(0, causes, slopes);
    variances.select(0, effect).sub_(slopes.dot(shared));
  }
  return {coefficients, mean - at::matmul(mean, coefficients),
          variances.maximum(kModelRounding * covariance.diagonal())};
}

// The regression of the last of some columns on the others.
LinearModel regress_last(const Tensor& table) {
  Tensor star = at::zeros({table.size(1), table.size(1)}, at::kDouble);
  star.select(1, table.size(1) - 1).narrow(0, 0, table.size(1) - 1).fill_(1);
  return regress_all(table, star);
}

Tensor with_effect(const Tensor& causes, int64_t effect) {
  return at::cat({causes, at::full({1}, effect, at::kLong)});
}

void set_slopes(Tensor& coefficients, const Tensor& causes, int64_t effect,
                const LinearModel& part) {
  const Tensor slopes = part.coefficients.select(1, causes.numel()).narrow(0, 0, causes.numel());
  coefficients.select(1, effect).index_copy_(0, causes, slopes);
}

LinearModel regress_available(const Tensor& table, const Tensor& graph, const Tensor& unused) {
  Tensor coefficients = at::zeros_like(graph);
  Tensor intercepts = at::zeros({table.size(1)}, at::kDouble), variances = intercepts.clone();
  for (int64_t effect = 0; effect < table.size(1); ++effect) {
    const Tensor causes = causes_in(graph, effect), own = with_effect(causes, effect);
    const Tensor chosen = table.index_select(1, own);
    Tensor there = chosen.isnan().any(1).logical_not();
    if (unused.defined()) there = there.logical_and(unused.select(1, effect).logical_not());
    const LinearModel part = regress_last(chosen.index_select(0, there.nonzero().flatten()));
    set_slopes(coefficients, causes, effect, part);
    intercepts.select(0, effect).copy_(part.intercepts[causes.numel()]);
    variances.select(0, effect).copy_(part.variances[causes.numel()]);
  }
  return {coefficients, intercepts, variances};
}

}  // namespace

LinearModel linear_model(const Tensor& table, const Tensor& graph, std::span<const int64_t> groups,
                         const std::vector<std::vector<int64_t>>& targets) {
  require(table.size(0) > 0, "table: expected at least one row, got none");
  if (!groups.empty()) require_one_per_row("groups", groups.size(), table.size(0));
  if (!targets.empty()) require_targets(targets, table.size(0), table.size(1));
  const Tensor unused = rows_left_out(targets, table.size(1));
  if (table.isnan().any().item<bool>()) return regress_available(table, graph, unused);
  if (!unused.defined() && groups.empty()) return regress_all(table, graph);
  const Tensor number = numbers_of(groups);
  LinearModel model = regress_all(less_group_means(table, number), graph);
  for (int64_t effect = 0; effect < table.size(1); ++effect) {
    Tensor rows = table, own_groups = number;
    if (unused.defined() && unused.select(1, effect).any().item<bool>()) {
      const Tensor used = unused.select(1, effect).logical_not().nonzero().flatten();
      rows = table.index_select(0, used);
      if (number.defined()) own_groups = number.index_select(0, used);
      const Tensor causes = causes_in(graph, effect);
      const Tensor chosen = rows.index_select(1, with_effect(causes, effect));
      set_slopes(model.coefficients, causes, effect,
                 regress_last(less_group_means(chosen, own_groups)));
    }
    const Tensor noise =
        rows.select(1, effect) - at::mv(rows, model.coefficients.select(1, effect));
    model.intercepts.select(0, effect).copy_(noise.mean());
    model.variances.select(0, effect).copy_(variances_of(noise));
  }
  model.variances = model.variances.maximum(kModelRounding * variances_of(table));
  return model;
}

Tensor noises(const Tensor& table, const LinearModel& model, std::span<const int64_t> groups) {
  const Tensor noise = table - table.mm(model.coefficients);
  return groups.empty() ? noise - noise.mean(0) : less_group_means(noise, numbers_of(groups));
}

namespace {

std::tuple<Tensor, Tensor, Tensor> model_operator(const Tensor& table, const Tensor& graph,
                                                  at::IntArrayRef groups,
                                                  const std::optional<Tensor>& targets) {
  constexpr const char* kFunction = "causal_linear_model";
  const auto [values, edges] =
      checked_table_and_graph("[causal_linear_model] ", table, graph, Gaps::kept);
  std::vector<std::vector<int64_t>> own;
  if (targets) own = parse_targets(kFunction, *targets, values.size(0));
  LinearModel model = as_function(
      kFunction, [&] { return linear_model(values, edges, {groups.data(), groups.size()}, own); });
  return {model.coefficients, model.intercepts, model.variances};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_linear_model(Tensor table, Tensor graph, int[] groups, Tensor? targets) -> (Tensor, "
      "Tensor, Tensor)",
      TORCH_FN(model_operator));
}

}  // namespace
}  // namespace nsimplex::causal
