// Parses and checks the arguments of operators that fit a causal graph.

#include "causal/structure/fit_arguments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "causal/graph/edge_constraints.h"
#include "causal/option_names.h"
#include "causal/structure/fit_watch.h"
#include "causal/structure/noise_input.h"
#include "causal/tables/table_arguments.h"
#include "causal/tensors.h"
#include "support/require.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

// int64 [pairs, 2]
Tensor checked_pairs(const char* function, const char* argument, const Tensor& pairs) {
  const std::string place = c10::str("[", function, "] ", argument);
  Tensor checked = checked_tensor(place, pairs, at::kLong, 2);
  TORCH_CHECK_VALUE(checked.size(1) == 2, place, ": expected shape [pairs, 2], got ",
                    checked.sizes());
  return checked;
}

std::vector<CausalEdge> parse_edges(const char* function, const char* argument,
                                    const Tensor& edges) {
  const Tensor rows = checked_pairs(function, argument, edges);
  const int64_t* at = rows.const_data_ptr<int64_t>();
  std::vector<CausalEdge> result;
  for (int64_t k = 0; k < rows.size(0); ++k) result.push_back({at[2 * k], at[2 * k + 1]});
  return result;
}

}  // namespace

EdgeConstraints parse_constraints(const char* function, const Tensor& forbidden,
                                  const Tensor& required, at::IntArrayRef tiers,
                                  at::IntArrayRef exogenous, at::IntArrayRef sinks,
                                  const Tensor& paths) {
  return {parse_edges(function, "forbidden", forbidden),
          parse_edges(function, "required", required),
          tiers.vec(),
          exogenous.vec(),
          sinks.vec(),
          parse_edges(function, "paths", paths)};
}

Tensor edge_table(const std::vector<CausalEdge>& edges) {
  Tensor result = at::empty({static_cast<int64_t>(edges.size()), 2}, at::kLong);
  int64_t* at = result.mutable_data_ptr<int64_t>();
  for (const CausalEdge& edge : edges) {
    *at++ = edge.cause;
    *at++ = edge.effect;
  }
  return result;
}

std::vector<std::vector<int64_t>> parse_targets(const char* function, const Tensor& pairs,
                                                int64_t rows) {
  const Tensor checked = checked_pairs(function, "targets", pairs);
  const int64_t* at = checked.const_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> result(static_cast<size_t>(rows));
  for (int64_t k = 0; k < checked.size(0); ++k) {
    const int64_t row = at[2 * k];
    TORCH_CHECK_VALUE(row >= 0 && row < rows, "[", function, "] targets: expected rows 0 to ",
                      rows - 1, ", got ", row);
    result[static_cast<size_t>(row)].push_back(at[2 * k + 1]);
  }
  return result;
}

namespace {

// The types of options in a schema.
template <class Value>
constexpr const char* kSchemaType = "str";
template <>
constexpr const char* kSchemaType<bool> = "bool";
template <>
constexpr const char* kSchemaType<int64_t> = "int";
template <>
constexpr const char* kSchemaType<std::optional<double>> = "float?";

template <class Enum>
  requires std::is_enum_v<Enum>
void take(Enum& option, const char* argument, std::string_view name) {
  option = parse_name<Enum>(argument, name);
}
template <class Value>
void take(Value& option, const char* /*argument*/, const Value& value) {
  option = value;
}

void check_value(const char* argument, std::optional<double> value) {
  const double number = value.value_or(0);
  require_argument(number >= 0 && std::isfinite(number), argument, "a finite number of at least 0",
                   std::to_string(number));
}
void check_value(const char* argument, int64_t count) { require_at_least(argument, 1, count); }
void check_value(const char* /*argument*/, const auto& /*of another type*/) {}

// Refuses an option that is set and that only other estimators use.
void check_use(const char* argument, bool set, StructureEstimator estimator,
               const std::vector<StructureEstimator>& users) {
  if (!set || users.empty() || std::ranges::find(users, estimator) != users.end()) return;
  std::string expected = "estimator ";
  for (size_t i = 0; i < users.size(); ++i) {
    if (i > 0) expected += i + 1 < users.size() ? ", " : " or ";
    expected += name_of(users[i]);
  }
  require_argument(false, argument, expected + " with it", name_of(estimator));
}

}  // namespace

std::string fit_schema() {
  std::string schema;
#define NSIMPLEX_WRITE(type, name, ...) schema.append(kSchemaType<type>).append(" " #name ", ");
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_WRITE)
#undef NSIMPLEX_WRITE
  return schema.append("int seed, ")
      .append(kConstraintSchema)
      .append(
          ", int[] groups, Tensor? targets, bool soft, str[] kinds, str missing, "
          "bool orient_by_noise");
}

CausalFitOptions fit_options(const char* function, const FitArguments& given, int64_t rows) {
  CausalFitOptions options;
  return as_function(function, [&] {
#define NSIMPLEX_TAKE(type, name, ...) take(options.name, #name, given.name);
    NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_TAKE)
#undef NSIMPLEX_TAKE
    options.seed = given.seed;
    options.constraints = parse_constraints(function, given.forbidden, given.required, given.tiers,
                                            given.exogenous, given.sinks, given.paths);
    options.groups = given.groups.vec();
    if (given.targets) options.targets = parse_targets(function, *given.targets, rows);
    options.soft = given.soft;
    for (const std::string& kind : given.kinds) {
      options.kinds.push_back(parse_name<ColumnKind>("kinds", kind));
    }
    options.missing = parse_name<MissingValues>("missing", given.missing);
    options.orient_by_noise = given.orient_by_noise;
    return options;
  });
}

CausalFitOptions settled_options(CausalFitOptions options, const FitChoices& choices) {
  if (options.estimator != StructureEstimator::automatic) return options;
  options.estimator = StructureEstimator::order;
  options.nonlinear = choices.nonlinear;
  options.orient_by_noise = choices.orient_by_noise;
  options.kinds = choices.kinds;
  return options;
}

void check_estimator_options(const CausalFitOptions& options) {
  using enum StructureEstimator;
  const CausalFitOptions plain;
#define NSIMPLEX_CHECK(type, name, initial, flag, text, ...) \
  check_use(#name, options.name != plain.name, options.estimator, {__VA_ARGS__});
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_CHECK)
#undef NSIMPLEX_CHECK
}

void check_fit_options(const CausalFitOptions& options, int64_t rows, int64_t columns) {
#define NSIMPLEX_CHECK(type, name, ...) check_value(#name, options.name);
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_CHECK)
#undef NSIMPLEX_CHECK
  check_estimator_options(options);
  const bool linear_order = is_order(options.estimator) && !options.nonlinear;
  const auto need = [](bool holds, const std::string& what) {
    if (!holds) throw InputError(what);
  };
  const std::string got = std::string(", got ")
                              .append(name_of(options.estimator))
                              .append(options.nonlinear ? " with nonlinear" : "");
  need(
      options.targets.empty() || linear_order,
      "targets: expected estimator auto or order without nonlinear, which has interventions" + got);
  need(!options.soft || !options.targets.empty(),
       "soft: expected targets, the interventions that are soft");
  need(options.kinds.empty() || linear_order,
       "kinds: expected estimator auto or order without nonlinear, which has suited regressions" +
           got);
  need(options.kinds.empty() || !options.soft, "soft: expected continuous columns alone");
  const bool gaps = options.missing == MissingValues::likelihood;
  need(gaps || options.missing == MissingValues::refuse,
       "missing: expected refuse or likelihood; other gaps are closed before a fit");
  need(!gaps || linear_order,
       "missing: expected estimator auto or order without nonlinear for likelihood" + got);
  need(!gaps || options.kinds.empty(), "missing: expected continuous columns for likelihood");
  if (options.orient_by_noise) {
    const auto refused = refused_by_noise({.nonlinear = options.nonlinear,
                                           .groups = !options.groups.empty(),
                                           .targets = !options.targets.empty(),
                                           .kinds = !options.kinds.empty(),
                                           .likelihood = gaps});
    need(!refused,
         refused ? "orient_by_noise: expected " + refused->expected + ", got " + refused->argument
                 : "");
  }
  require(rows >= 2 && columns >= 2, "table: expected at least 2 rows and 2 columns, got ", rows,
          " x ", columns);
  require_room("table", {columns, columns});
  require_room("rank", {columns, options.rank});
  if (!options.groups.empty()) require_one_per_row("groups", options.groups.size(), rows);
  if (!options.targets.empty()) require_targets(options.targets, rows, columns);
  if (!options.kinds.empty()) require_one_per_column("kinds", options.kinds.size(), columns);
  const AllowedEdges checked(options.constraints, columns);
}

}  // namespace nsimplex::causal
