// The functions causal_effect(), sample_causal_model() and counterfactual_rows(), and their
// operators.

#include <ATen/ATen.h>
#include <nsimplex/causal_effects.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "causal/effects/total_effects.h"
#include "causal/graph/acyclic.h"
#include "causal/graph/partial_graph.h"
#include "causal/structure/linear_model.h"
#include "causal/tensors.h"
#include "support/random.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr int64_t kMostCauseSets = 1000;  // of one column in one graph

void check_column(const char* function, const char* argument, int64_t column, int64_t count) {
  TORCH_CHECK_VALUE(column >= 0 && column < count, "[", function, "] ", argument,
                    ": expected a column 0 to ", count - 1, ", got ", column);
}

// The effects that the graph leaves possible, each with the causes of `cause`. Throws InputError.
std::vector<std::pair<std::vector<int64_t>, TotalEffect>> effects_in(const Covariance& covariance,
                                                                     const Matrix& graph,
                                                                     int64_t cause,
                                                                     int64_t effect) {
  const PartialGraph given(graph);
  std::vector<std::pair<std::vector<int64_t>, TotalEffect>> found;
  if (!given.is_open() && !causal_order(graph)) throw InputError("graph: expected no cycle");
  const std::vector<Matrix> members =
      given.is_open() ? given.members_by_causes(cause, kMostCauseSets) : std::vector{graph};
  for (const Matrix& member : members) {
    found.emplace_back(causes_of(member)[static_cast<size_t>(cause)],
                       total_effect(covariance, member, cause, effect));
  }
  return found;
}

// The interval of the estimates of all samples, and the share of samples whose graph may have a
// path.
struct SampledEffect {
  double low, high, paths;
};

SampledEffect sampled_effect(const Covariance& covariance, const std::vector<Tensor>& samples,
                             int64_t cause, int64_t effect, double level) {
  // Possible effects of a sample stand as often as those of others.
  constexpr size_t kParts = 60;  // divisible by 1 to 6
  std::vector<Estimate> estimates;
  int64_t with_path = 0;
  for (const Tensor& sample : samples) {
    const auto possible = effects_in(covariance, view_matrix(sample), cause, effect);
    with_path += std::ranges::any_of(possible, [](const auto& each) { return each.second.path; });
    const size_t times = std::max<size_t>(kParts / possible.size(), 1);
    for (const auto& each : possible) {
      estimates.insert(estimates.end(), times, each.second.estimate);
    }
  }
  const auto [low, high] = interval_of(estimates, level);
  return {low, high, static_cast<double>(with_path) / static_cast<double>(samples.size())};
}

}  // namespace

CausalEffect causal_effect(const Tensor& table, const Tensor& graph, int64_t cause, int64_t effect,
                           const CausalEffectOptions& options) {
  constexpr const char* kFunction = "causal_effect";
  const auto [given, edges] = checked_table_and_graph("[causal_effect] ", table, graph);
  const int64_t rows = given.size(0), count = given.size(1);
  TORCH_CHECK_VALUE(rows >= 4, "[causal_effect] table: expected at least 4 rows, got ", rows);
  TORCH_CHECK_VALUE(options.level > 0 && options.level < 1,
                    "[causal_effect] level: expected a number in (0, 1), got ", options.level);
  check_column(kFunction, "cause", cause, count);
  check_column(kFunction, "effect", effect, count);
  TORCH_CHECK_VALUE(cause != effect, "[causal_effect] effect: expected another column than ",
                    "the cause, got ", effect, " for both");
  std::vector<Tensor> samples;
  for (const Tensor& sample : options.samples) {
    samples.push_back(checked_graph("[causal_effect] samples", sample));
    TORCH_CHECK_VALUE(samples.back().size(0) == count,
                      "[causal_effect] samples: expected graphs over ", count, " columns, got ",
                      samples.back().size(0));
  }
  return as_function(kFunction, [&] {
    require_room("table", {count, count});
    // Effects are the same in all units of a whole table.
    const Tensor values = times_power(given, -large_exponent(given));
    const Covariance covariance = covariance_of(view_matrix(values));
    CausalEffect found{0,
                       std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity(),
                       std::nan(""),
                       {}};
    for (const auto& [causes, each] : effects_in(covariance, view_matrix(edges), cause, effect)) {
      const auto [low, high] = interval_of(each.estimate, options.level);
      found.possible.push_back(
          {causes, each.adjustment, each.estimate.value, each.estimate.error, low, high});
      found.effect += each.estimate.value;
      found.least = std::min(found.least, each.estimate.value);
      found.most = std::max(found.most, each.estimate.value);
      found.low = std::min(found.low, low);
      found.high = std::max(found.high, high);
    }
    found.effect /= static_cast<double>(found.possible.size());
    if (!samples.empty()) {
      const SampledEffect sampled =
          sampled_effect(covariance, samples, cause, effect, options.level);
      found.low = sampled.low;
      found.high = sampled.high;
      found.paths = sampled.paths;
    }
    return found;
  });
}

LinearCausalModel linear_causal_model(const Tensor& table, const Tensor& graph) {
  const auto [values, edges] = checked_table_and_graph("[linear_causal_model] ", table, graph);
  return as_function("linear_causal_model", [&] { return linear_model(values, edges); });
}

namespace {

struct CheckedModel {
  Matrix coefficients;
  std::vector<int64_t> order;
  std::vector<double> intercepts;
};

std::vector<double> numbers_of(const std::string& argument, const Tensor& vector, int64_t count) {
  const Tensor checked = checked_tensor(argument, vector, at::kDouble, 1);
  TORCH_CHECK_VALUE(checked.numel() == count && checked.isfinite().all().item<bool>(), argument,
                    ": expected ", count, " finite numbers, one per column, got shape ",
                    checked.sizes());
  const double* at = checked.const_data_ptr<double>();
  return {at, at + count};
}

CheckedModel checked_model(const std::string& function, const Tensor& coefficients,
                           const Tensor& intercepts) {
  const Tensor graph = checked_graph(function + "coefficients", coefficients);
  CheckedModel model{view_matrix(graph), {}, {}};
  auto order = causal_order(model.coefficients);
  TORCH_CHECK_VALUE(order.has_value(), function, "coefficients: expected no cycle");
  model.order = *std::move(order);
  model.intercepts = numbers_of(function + "intercepts", intercepts, graph.size(0));
  return model;
}

// The value that an intervention gives each column; NaN for none.
std::vector<double> set_values(const std::string& function,
                               const std::vector<Intervention>& interventions, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count), std::nan(""));
  for (const Intervention& each : interventions) {
    TORCH_CHECK_VALUE(each.feature >= 0 && each.feature < count, function,
                      "interventions: expected columns 0 to ", count - 1, ", got ", each.feature);
    double& value = values[static_cast<size_t>(each.feature)];
    TORCH_CHECK_VALUE(std::isnan(value), function, "interventions: expected one value per column, ",
                      "got two for ", each.feature);
    TORCH_CHECK_VALUE(std::isfinite(each.value), function,
                      "interventions: expected finite values, got ", each.value);
    value = each.value;
  }
  return values;
}

// Turns noise [n, M] into rows of the model.
void add_causes(Matrix& rows, const CheckedModel& model, const std::vector<double>& set) {
  const AdjacencyLists causes = causes_of(model.coefficients);
  for (const int64_t column : model.order) {
    const auto at = static_cast<size_t>(column);
    if (!std::isnan(set[at])) {
      rows.col(column).setConstant(set[at]);
      continue;
    }
    rows.col(column).array() += model.intercepts[at];
    for (const int64_t cause : causes[at]) {
      rows.col(column) += model.coefficients(cause, column) * rows.col(cause);
    }
  }
}

}  // namespace

Tensor sample_causal_model(const LinearCausalModel& model, int64_t rows,
                           const std::vector<Intervention>& interventions, int64_t seed) {
  const std::string function = "[sample_causal_model] ";
  const CheckedModel checked = checked_model(function, model.coefficients, model.intercepts);
  const int64_t count = checked.coefficients.rows();
  const std::vector<double> variances = numbers_of(function + "variances", model.variances, count);
  for (const double variance : variances) {
    TORCH_CHECK_VALUE(variance >= 0, function, "variances: expected at least 0, got ", variance);
  }
  TORCH_CHECK_VALUE(rows >= 1, function, "rows: expected at least 1, got ", rows);
  const std::vector<double> set = set_values(function, interventions, count);
  return as_function("sample_causal_model", [&] {
    require_room("rows", {rows, count});
    Matrix result(rows, count);
    RandomStream random(static_cast<uint64_t>(seed));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < count; ++column) {
        result(row, column) = std::sqrt(variances[static_cast<size_t>(column)]) * random.normal();
      }
    }
    add_causes(result, checked, set);
    return to_tensor(std::move(result));
  });
}

Tensor counterfactual_rows(const LinearCausalModel& model, const Tensor& table,
                           const std::vector<Intervention>& interventions) {
  const std::string function = "[counterfactual_rows] ";
  const CheckedModel checked = checked_model(function, model.coefficients, model.intercepts);
  const int64_t count = checked.coefficients.rows();
  const Tensor values = checked_table(function + "table", table);
  TORCH_CHECK_VALUE(values.size(1) == count, function, "table: expected ", count,
                    " columns, those of the model, got ", values.size(1));
  const std::vector<double> set = set_values(function, interventions, count);
  const TableView rows = view_matrix(values);
  Matrix noise = rows - rows * checked.coefficients;
  for (int64_t column = 0; column < count; ++column) {
    noise.col(column).array() -= checked.intercepts[static_cast<size_t>(column)];
  }
  add_causes(noise, checked, set);
  return to_tensor(std::move(noise));
}

namespace {

std::vector<Intervention> interventions_of(at::IntArrayRef columns, at::ArrayRef<double> values) {
  TORCH_CHECK_VALUE(columns.size() == values.size(),
                    "[sample_causal_model] interventions: expected one value per column, got ",
                    values.size(), " for ", columns.size());
  std::vector<Intervention> found;
  for (size_t k = 0; k < columns.size(); ++k) found.push_back({columns[k], values[k]});
  return found;
}

Tensor marked(const std::vector<PossibleEffect>& possible,
              std::vector<int64_t> PossibleEffect::* columns, int64_t count) {
  Tensor result = at::zeros({std::ssize(possible), count}, at::kBool);
  auto at = result.accessor<bool, 2>();
  for (int64_t k = 0; k < result.size(0); ++k) {
    for (const int64_t column : possible[static_cast<size_t>(k)].*columns) at[k][column] = true;
  }
  return result;
}

// The numbers effect, least, most, low, high and paths; then per possible effect its numbers, and
// which columns are causes and in the adjustment set.
std::tuple<std::vector<double>, Tensor, Tensor, Tensor> effect_operator(
    const Tensor& table, const Tensor& graph, int64_t cause, int64_t effect, double level,
    const std::vector<Tensor>& samples) {
  const CausalEffect found =
      causal_effect(table, graph, cause, effect, {.level = level, .samples = samples});
  const int64_t count = graph.size(0);
  Tensor numbers = at::empty({std::ssize(found.possible), 4}, at::kDouble);
  auto at = numbers.accessor<double, 2>();
  for (int64_t k = 0; k < numbers.size(0); ++k) {
    const PossibleEffect& each = found.possible[static_cast<size_t>(k)];
    at[k][0] = each.effect;
    at[k][1] = each.error;
    at[k][2] = each.low;
    at[k][3] = each.high;
  }
  return {{found.effect, found.least, found.most, found.low, found.high, found.paths},
          numbers,
          marked(found.possible, &PossibleEffect::causes, count),
          marked(found.possible, &PossibleEffect::adjustment, count)};
}

Tensor sample_operator(const Tensor& coefficients, const Tensor& intercepts,
                       const Tensor& variances, int64_t rows, at::IntArrayRef columns,
                       at::ArrayRef<double> values, int64_t seed) {
  return sample_causal_model({coefficients, intercepts, variances}, rows,
                             interventions_of(columns, values), seed);
}

Tensor counterfactual_operator(const Tensor& coefficients, const Tensor& intercepts,
                               const Tensor& table, at::IntArrayRef columns,
                               at::ArrayRef<double> values) {
  return counterfactual_rows({coefficients, intercepts, {}}, table,
                             interventions_of(columns, values));
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_effect(Tensor table, Tensor graph, int cause, int effect, float level, Tensor[] "
      "samples) -> (float[], Tensor, Tensor, Tensor)",
      TORCH_FN(effect_operator));
  m.def(
      "causal_sample_model(Tensor coefficients, Tensor intercepts, Tensor variances, int rows, "
      "int[] columns, float[] values, int seed) -> Tensor",
      TORCH_FN(sample_operator));
  m.def(
      "causal_counterfactual(Tensor coefficients, Tensor intercepts, Tensor table, int[] columns, "
      "float[] values) -> Tensor",
      TORCH_FN(counterfactual_operator));
}

}  // namespace
}  // namespace nsimplex
