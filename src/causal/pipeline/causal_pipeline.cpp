// The class CausalPipeline: fit, embed, encode, transform, and its files.

#include <nsimplex/causal_pipeline.h>

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>

#include <algorithm>

#include "causal/pipeline/pipeline_file.h"
#include "causal/pipeline/pipeline_parameters.h"
#include "causal/structure/fit_arguments.h"
#include "causal/structure/noise_input.h"
#include "causal/tables/screen_columns.h"
#include "causal/tables/table_arguments.h"
#include "causal/tables/usable_table.h"
#include "causal/tensors.h"
#include "io/table.h"
#include "io/text.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;
using Json = nlohmann::ordered_json;

constexpr const char* kPipelineName = "CausalPipeline";

void check_fitted(bool fitted) {
  TORCH_CHECK_VALUE(fitted, "[CausalPipeline] not fitted: call fit first");
}

// Visits every tensor of a state with its name in a file.
template <class State, class Visit>
void visit_tensors(State& state, const Visit& visit) {
  visit("mean", state.mean);
  visit("deviation", state.deviation);
  visit("adjacency", state.adjacency);
  visit("scores", state.scores);
  visit("tangents", state.tangents);
  visit("generality", state.generality);
}

// The values of the rows or columns that are kept; none if there are none.
template <class Value>
std::vector<Value> of_kept(const std::vector<Value>& all, const std::vector<int64_t>& kept) {
  if (all.empty()) return {};
  std::vector<Value> result;
  for (const int64_t at : kept) result.push_back(all[static_cast<size_t>(at)]);
  return result;
}

// Refuses what orient_by_noise() would not take into account.
void check_orientation(const CausalPipelineOptions& o, const std::vector<ColumnKind>& kinds,
                       const TableRows& rows) {
  const auto refused =
      refused_by_noise({.nonlinear = o.nonlinear,
                        .groups = !rows.groups.empty(),
                        .targets = !rows.targets.empty(),
                        .kinds = std::ranges::any_of(
                            kinds, [](auto kind) { return kind != ColumnKind::continuous; }),
                        .likelihood = o.missing == MissingValues::likelihood});
  TORCH_CHECK_VALUE(!refused, "[CausalPipeline] orient_by_noise: expected ", refused->expected,
                    ", got ", refused->argument, refused->value.empty() ? "" : " ", refused->value);
}

void check(const CausalPipelineOptions& o) {
  TORCH_CHECK_VALUE(o.confidence == 0 || o.confidence >= 2,
                    "[CausalPipeline] confidence: expected 0 or at least 2, got ", o.confidence);
  TORCH_CHECK_VALUE(
      !o.min_frequency || o.confidence > 0,
      "[CausalPipeline] min_frequency: expected a number of samples, confidence, too");
  TORCH_CHECK_VALUE(o.screen == 0 || (o.kinds.empty() && o.kinds_by_name.empty()),
                    "[CausalPipeline] screen: expected continuous columns alone, got kinds");
  TORCH_CHECK_VALUE(o.kinds.empty() || o.kinds_by_name.empty(),
                    "[CausalPipeline] kinds_by_name: expected no kinds with it");
}

// One kind per column of the whole table, or none. `names` are those of all columns, or none.
std::vector<ColumnKind> all_kinds(const CausalPipelineOptions& o, int64_t columns,
                                  const std::vector<std::string>& names) {
  if (o.kinds_by_name.empty()) return o.kinds;
  std::vector<ColumnKind> kinds(static_cast<size_t>(columns), ColumnKind::continuous);
  for (const auto& [column, kind] : o.kinds_by_name) {
    const auto named = std::ranges::find(names, column);
    const int64_t at =
        named != names.end() ? named - names.begin() : io::parse_integer(column).value_or(-1);
    TORCH_CHECK_VALUE(at >= 0 && at < columns, "[CausalPipeline] kinds: expected columns 0 to ",
                      columns - 1, " or their names, got ", quoted_name(column));
    kinds[static_cast<size_t>(at)] = kind;
  }
  return kinds;
}

// What is known of a whole table beside its values.
struct WholeTable {
  int64_t rows, columns;
  std::vector<std::string> names;  // of the columns, or none
};

CausalFitOptions fit_options(const CausalPipelineOptions& o, const UsableTable& kept,
                             const WholeTable& whole, const EdgeConstraints& constraints,
                             const TableRows& rows) {
  CausalFitOptions options;
#define NSIMPLEX_COPY(type, name, ...) options.name = o.name;
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_COPY)
#undef NSIMPLEX_COPY
  options.seed = o.seed;
  options.constraints = constraints;
  options.soft = o.soft;
  const std::vector<ColumnKind> kinds = all_kinds(o, whole.columns, whole.names);
  as_function(kPipelineName, [&] {
    if (!rows.groups.empty()) require_one_per_row("groups", rows.groups.size(), whole.rows);
    if (!rows.targets.empty()) require_one_per_row("targets", rows.targets.size(), whole.rows);
    if (!kinds.empty()) require_one_per_column("kinds", kinds.size(), whole.columns);
  });
  options.groups = of_kept(rows.groups, kept.rows);
  options.targets = of_kept(rows.targets, kept.rows);
  if (o.orient_by_noise) check_orientation(o, kinds, rows);
  options.orient_by_noise = o.orient_by_noise;
  options.kinds = of_kept(kinds, kept.columns);
  if (o.missing == MissingValues::likelihood) options.missing = o.missing;
  return options;
}

// Means and deviations of the values that are there, for columns of any scale.
std::pair<Tensor, Tensor> means_and_deviations(const Tensor& values) {
  const Tensor exponents = binary_exponents(values), moderate = times_power(values, -exponents);
  const Tensor mean = moderate.nanmean(0);
  const Tensor deviation = (moderate - mean).square().nanmean(0).sqrt();
  return {times_power(mean, exponents), times_power(deviation, exponents)};
}

// The state after structure learning and before embedding.
CausalPipelineState learned_state(const CausalPipelineOptions& o, UsableTable kept,
                                  const WholeTable& whole, const EdgeConstraints& constraints,
                                  const TableRows& rows) {
  check(o);
  screen_table(kept, o.screen, o.screen_by);
  const Tensor values = to_tensor(kept.values);
  const CausalFitOptions options = fit_options(o, kept, whole, constraints, rows);
  const CausalFit fitted = causal_fit(values, options);
  const auto [mean, deviation] = means_and_deviations(values);
  CausalPipelineState state{.names = kept.names,
                            .columns = kept.columns,
                            .model = fitted.model,
                            .mean = mean,
                            .deviation = deviation,
                            .adjacency = fitted.adjacency,
                            .scores = fitted.scores,
                            .tangents = {},
                            .generality = {},
                            .confidence = {}};
  if (o.confidence > 0) {
    state.confidence =
        edge_confidence(values, state.adjacency, settled_options(options, fitted.choices),
                        {.replicates = o.confidence, .resampling = o.resampling});
    if (o.min_frequency) state.adjacency = state.confidence->stable(*o.min_frequency);
  }
  return state;
}

}  // namespace

CausalPipeline& CausalPipeline::fit(const Tensor& table, std::vector<std::string> names,
                                    const EdgeConstraints& constraints, const TableRows& rows) {
  const Tensor checked = checked_table("[CausalPipeline] table", table, Gaps::kept);
  UsableTable kept = as_function(kPipelineName, [&] {
    if (!names.empty()) require_one_per_column("names", names.size(), checked.size(1));
    return usable_table(view_matrix(checked), names, {options_.missing, options_.drop},
                        "the table");
  });
  const WholeTable whole{checked.size(0), checked.size(1), std::move(names)};
  state_ = learned_state(options_, std::move(kept), whole, constraints, rows);
  return embed();
}

CausalPipeline& CausalPipeline::fit(const std::string& path, const EdgeConstraints& constraints,
                                    const TableRows& rows) {
  const io::Table table = io::read_table(path);
  UsableTable kept = usable_table(table, {options_.missing, options_.drop}, path);
  const WholeTable whole{table.rows, table.width, table.columns};
  state_ = learned_state(options_, std::move(kept), whole, constraints, rows);
  return embed();
}

CausalPipeline& CausalPipeline::embed(const std::optional<Tensor>& adjacency) {
  check_fitted(adjacency || state_.adjacency.defined());
  CausalEmbeddingOptions options;
  options.dimension = options_.dimension;
  options.optimiser = options_.optimiser;
  options.steps = options_.steps;
  options.learning_rate = options_.learning_rate;
  options.hops = options_.hops;
  options.side = options_.side;
  options.weight = options_.weight;
  options.decay = options_.decay;
  options.negatives = options_.negatives;
  options.balanced = options_.balanced;
  options.generality = options_.generality;
  options.relative = options_.relative;
  options.restart = options_.restart;
  options.dangling = options_.dangling;
  options.seed = options_.seed;
  CausalEmbedding made = causal_embed(adjacency.value_or(state_.adjacency), options);
  if (adjacency) {
    state_.adjacency = adjacency->to(at::kDouble);
    state_.confidence.reset();  // of another graph
  }
  state_.tangents = std::move(made.tangents);
  state_.generality = std::move(made.generality);
  return *this;
}

Tensor CausalPipeline::encode(int64_t heads, int64_t leading) const {
  check_fitted(state_.tangents.defined());
  return causal_angles(ball_points(state_.tangents), {.heads = heads,
                                                      .scale = options_.scale,
                                                      .by_dimension = options_.by_dimension,
                                                      .leading = leading});
}

Tensor CausalPipeline::transform(const Tensor& table) const {
  check_fitted(state_.mean.defined());
  const int64_t last = std::ranges::max(state_.columns);
  const Tensor given = checked_table("[CausalPipeline] table", table, Gaps::kept);
  TORCH_CHECK_VALUE(given.size(1) > last, "[CausalPipeline] table: expected [n, more than ", last,
                    "], got ", given.sizes());
  const Tensor chosen = at::tensor(state_.columns, at::kLong);
  const Tensor values = given.index_select(1, chosen);
  return options_.standardise ? (values - state_.mean) / state_.deviation : values;
}

void CausalPipeline::save(const std::string& path) const {
  Json text{{"parameters", parameters_of(options_)}};
  if (state_.mean.defined()) {
    text["names"] = state_.names;
    text["columns"] = state_.columns;
    text["model"] = state_.model;
  }
  PipelineFile file{text.dump(), {}};
  visit_tensors(state_, [&](const char* name, const Tensor& tensor) {
    if (tensor.defined()) file.tensors.push_back({name, tensor});
  });
  write_pipeline_file(path, file);
}

CausalPipeline CausalPipeline::load(const std::string& path) {
  const PipelineFile file = read_pipeline_file(path);
  const auto refuse = [&](const std::exception& error) {
    throw InputError(std::string("cannot read ").append(path).append(": ").append(error.what()));
  };
  CausalPipeline pipeline;
  try {
    const auto text = nlohmann::json::parse(file.text);
    pipeline.options_ = pipeline_options(text.at("parameters"));
    if (text.contains("columns")) {
      text.at("names").get_to(pipeline.state_.names);
      text.at("columns").get_to(pipeline.state_.columns);
      text.at("model").get_to(pipeline.state_.model);
    }
  } catch (const Json::exception& error) {  // a parameter is missing or has another type
    refuse(error);
  } catch (const InputError& error) {  // an unknown name
    refuse(error);
  }
  visit_tensors(pipeline.state_, [&](const std::string& name, Tensor& tensor) {
    for (const io::NamedTensor& each : file.tensors) {
      if (each.name == name) tensor = each.tensor;
    }
  });
  return pipeline;
}

}  // namespace nsimplex
