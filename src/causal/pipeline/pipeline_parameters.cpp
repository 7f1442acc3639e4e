// Converts the options of a pipeline to JSON and back.

#include "causal/pipeline/pipeline_parameters.h"

#include "causal/option_names.h"

namespace nsimplex::causal {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

// A list of one kind per column, or an object of some columns' kinds, which Python reads as a dict.
Json names_of_kinds(const CausalPipelineOptions& o) {
  Json names;
  for (const ColumnKind kind : o.kinds) names.push_back(name_of(kind));
  for (const auto& [column, kind] : o.kinds_by_name) names[column] = name_of(kind);
  return names;
}

// From these, or from pairs of a column and its kind, in which Python writes columns that are
// numbers.
void read_kinds(const nlohmann::json& kinds, CausalPipelineOptions& o) {
  const auto kind_of = [](const nlohmann::json& kind) {
    return parse_name<ColumnKind>("kinds", kind.get<std::string>());
  };
  if (kinds.is_object()) {
    for (const auto& [column, kind] : kinds.items()) o.kinds_by_name[column] = kind_of(kind);
    return;
  }
  for (const auto& entry : kinds) {
    if (!entry.is_array()) {
      o.kinds.push_back(kind_of(entry));
      continue;
    }
    const auto& column = entry.at(0);
    o.kinds_by_name[column.is_string() ? column.get<std::string>() : column.dump()] =
        kind_of(entry.at(1));
  }
}

}  // namespace

nlohmann::ordered_json parameters_of(const CausalPipelineOptions& o) {
  return {{"estimator", name_of(o.estimator)},
          {"nonlinear", o.nonlinear},
          {"standardise", o.standardise},
          {"threshold", or_null(o.threshold)},
          {"sparsity", or_null(o.sparsity)},
          {"rank", o.rank},
          {"sample", o.sample},
          {"soft", o.soft},
          {"kinds", names_of_kinds(o)},
          {"orient_by_noise", o.orient_by_noise},
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
          {"confidence", o.confidence},
          {"resampling", name_of(o.resampling)},
          {"min_frequency", or_null(o.min_frequency)},
          {"seed", o.seed}};
}

CausalPipelineOptions pipeline_options(const nlohmann::json& parameters) {
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
  optional("sparsity", o.sparsity);
  plain("rank", o.rank);
  plain("sample", o.sample);
  plain("soft", o.soft);
  plain("orient_by_noise", o.orient_by_noise);
  plain("confidence", o.confidence);
  if (given("resampling")) o.resampling = parse_name<Resampling>("resampling", word("resampling"));
  optional("min_frequency", o.min_frequency);
  if (given("kinds")) read_kinds(parameters.at("kinds"), o);
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

}  // namespace nsimplex::causal
