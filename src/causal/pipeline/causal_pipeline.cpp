// The class CausalPipeline: fit, embed, encode, transform, and its files. The last part has the
// operators of Python's pipeline, which keeps parameters and state itself and shares only the
// files.

#include "causal/pipeline/causal_pipeline.h"

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>
#include <nsimplex/causal_pipeline.h>
#include <torch/library.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

#include "causal/option_names.h"
#include "causal/tables/screen_columns.h"
#include "causal/tables/usable_table.h"
#include "causal/tensors.h"
#include "io/table.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

constexpr char kFormat[] = "nsimplex causal pipeline 2";

}  // namespace

void write_pipeline_file(const std::string& path, const PipelineFile& file) {
  io::write_safetensors(path, {file.tensors, {{"format", kFormat}, {"pipeline", file.text}}});
}

PipelineFile read_pipeline_file(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path);
  const auto format = file.metadata.find("format");
  const auto text = file.metadata.find("pipeline");
  if (format == file.metadata.end() || format->second != kFormat || text == file.metadata.end()) {
    throw InputError(std::string("cannot read ")
                         .append(path)
                         .append(": expected format \"")
                         .append(kFormat)
                         .append("\""));
  }
  PipelineFile result{text->second, {}};
  for (const io::NamedTensor& each : file.tensors) {
    result.tensors.push_back({each.name, each.tensor.clone()});
  }
  return result;
}

}  // namespace nsimplex::causal

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;
using Json = nlohmann::ordered_json;

constexpr const char* kPipelineName = "CausalPipeline";

void check_fitted(bool fitted) {
  TORCH_CHECK_VALUE(fitted, "[CausalPipeline] not fitted: call fit first");
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

// The names of the arguments of Python's constructor.
Json parameters_of(const CausalPipelineOptions& o) {
  return {{"estimator", name_of(o.estimator)},
          {"nonlinear", o.nonlinear},
          {"standardise", o.standardise},
          {"threshold", or_null(o.threshold)},
          {"missing", name_of(o.missing)},
          {"drop", o.drop},
          {"screen", o.screen},
          {"screen_by", name_of(o.screen_by)},
          {"dimension", o.dimension},
          {"optimiser", name_of(o.optimiser)},
          {"steps", o.steps},
          {"learning_rate", or_null(o.learning_rate)},
          {"hops", or_null(o.hops)},
          {"side", o.side ? Json(name_of(*o.side)) : Json()},
          {"weight", name_of(o.weight)},
          {"decay", o.decay},
          {"negatives", or_null(o.negatives)},
          {"balanced", o.balanced},
          {"generality", o.generality},
          {"relative", o.relative},
          {"restart", o.restart},
          {"dangling", name_of(o.dangling)},
          {"scale", o.scale},
          {"by_dimension", o.by_dimension},
          {"seed", o.seed}};
}

CausalPipelineOptions options_of(const nlohmann::json& parameters) {
  const auto word = [&](const char* name) { return parameters.at(name).get<std::string>(); };
  CausalPipelineOptions o;
  o.estimator = parse_name<StructureEstimator>("estimator", word("estimator"));
  parameters.at("nonlinear").get_to(o.nonlinear);
  parameters.at("standardise").get_to(o.standardise);
  if (!parameters.at("threshold").is_null()) o.threshold = parameters.at("threshold").get<double>();
  o.missing = parse_name<MissingValues>("missing", word("missing"));
  parameters.at("drop").get_to(o.drop);
  parameters.at("dimension").get_to(o.dimension);
  o.optimiser = parse_name<EmbeddingOptimiser>("optimiser", word("optimiser"));
  parameters.at("steps").get_to(o.steps);
  parameters.at("generality").get_to(o.generality);
  // Files of earlier versions lack the following parameters.
  const auto given = [&](const char* name) {
    return parameters.contains(name) && !parameters.at(name).is_null();
  };
  const auto optional = [&](const char* name, auto& value) {
    if (given(name)) {
      value = parameters.at(name).get<std::decay_t<decltype(value.value())>>();
    }
  };
  const auto plain = [&](const char* name, auto& value) {
    if (parameters.contains(name)) parameters.at(name).get_to(value);
  };
  plain("screen", o.screen);
  if (given("screen_by")) o.screen_by = parse_name<ScreenCriterion>("screen_by", word("screen_by"));
  optional("learning_rate", o.learning_rate);
  optional("hops", o.hops);
  optional("negatives", o.negatives);
  plain("decay", o.decay);
  plain("balanced", o.balanced);
  plain("relative", o.relative);
  plain("restart", o.restart);
  if (given("side")) o.side = parse_name<AttractionSide>("side", word("side"));
  if (given("weight")) o.weight = parse_name<AttractionWeight>("weight", word("weight"));
  if (given("dangling")) o.dangling = parse_name<DanglingRule>("dangling", word("dangling"));
  parameters.at("scale").get_to(o.scale);
  parameters.at("by_dimension").get_to(o.by_dimension);
  parameters.at("seed").get_to(o.seed);
  return o;
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

// The state after structure learning and before embedding.
CausalPipelineState learned_state(const CausalPipelineOptions& o, UsableTable kept,
                                  const EdgeConstraints& constraints) {
  screen_table(kept, o.screen, o.screen_by);
  const Tensor values = to_tensor(kept.values);
  CausalFitOptions structure;
  structure.estimator = o.estimator;
  structure.nonlinear = o.nonlinear;
  structure.standardise = o.standardise;
  structure.threshold = o.threshold;
  structure.seed = o.seed;
  structure.constraints = constraints;
  const CausalFit fitted = causal_fit(values, structure);
  return {.names = kept.names,
          .columns = kept.columns,
          .model = fitted.model,
          .mean = values.mean(0),
          .deviation = values.std(0, /*unbiased=*/false),
          .adjacency = fitted.adjacency,
          .scores = fitted.scores,
          .tangents = {},
          .generality = {}};
}

}  // namespace

CausalPipeline& CausalPipeline::fit(const Tensor& table, std::vector<std::string> names,
                                    const EdgeConstraints& constraints) {
  const Tensor checked = checked_matrix("[CausalPipeline] table", table);
  UsableTable kept = as_function(kPipelineName, [&] {
    return usable_table(view_matrix(checked), std::move(names), {options_.missing, options_.drop},
                        "the table");
  });
  state_ = learned_state(options_, std::move(kept), constraints);
  return embed();
}

CausalPipeline& CausalPipeline::fit(const std::string& path, const EdgeConstraints& constraints) {
  UsableTable kept = usable_table(io::read_table(path), {options_.missing, options_.drop}, path);
  state_ = learned_state(options_, std::move(kept), constraints);
  return embed();
}

CausalPipeline& CausalPipeline::embed(const std::optional<Tensor>& adjacency) {
  if (adjacency) state_.adjacency = adjacency->to(at::kDouble);
  check_fitted(state_.adjacency.defined());
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
  CausalEmbedding made = causal_embed(state_.adjacency, options);
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
  TORCH_CHECK_VALUE(table.dim() == 2 && table.size(1) > last,
                    "[CausalPipeline] table: expected [n, more than ", last, "], got ",
                    table.sizes());
  const Tensor chosen = at::tensor(state_.columns, at::kLong);
  const Tensor values = table.to(at::kDouble).index_select(1, chosen);
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
    pipeline.options_ = options_of(text.at("parameters"));
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

namespace nsimplex::causal {
namespace {

using at::Tensor;

void write(std::string_view path, std::string_view text, const std::vector<std::string>& names,
           at::TensorList tensors) {
  PipelineFile file{std::string(text), {}};
  TORCH_CHECK_VALUE(names.size() == tensors.size(), "[causal_pipeline] tensors: expected ",
                    names.size(), ", got ", tensors.size());
  for (size_t each = 0; each < names.size(); ++each) {
    file.tensors.push_back({names[each], tensors[each]});
  }
  write_pipeline_file(std::string(path), file);
}

std::tuple<std::string, std::vector<std::string>, std::vector<Tensor>> read(std::string_view path) {
  PipelineFile file;
  try {
    file = read_pipeline_file(std::string(path));
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (io::NamedTensor& each : file.tensors) {
    names.push_back(each.name);
    tensors.push_back(std::move(each.tensor));
  }
  return {file.text, names, tensors};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("causal_pipeline_write(str path, str text, str[] names, Tensor[] tensors) -> ()",
        TORCH_FN(write));
  m.def("causal_pipeline_read(str path) -> (str, str[], Tensor[])", TORCH_FN(read));
}

}  // namespace
}  // namespace nsimplex::causal
