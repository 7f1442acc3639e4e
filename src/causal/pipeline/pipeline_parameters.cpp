// Converts the options of a pipeline to JSON and back.

#include "causal/pipeline/pipeline_parameters.h"

#include <type_traits>

#include "causal/option_names.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

using Json = nlohmann::ordered_json;

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

template <class Value>
Json to_json(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else {
    return value;
  }
}
template <class Value>
Json to_json(const std::optional<Value>& value) {
  return value ? to_json(*value) : Json();
}

template <class Value>
void read(const nlohmann::json& json, const char* name, Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    value = parse_name<Value>(name, json.get<std::string>());
  } else {
    json.get_to(value);
  }
}
template <class Value>
void read(const nlohmann::json& json, const char* name, std::optional<Value>& value) {
  if (json.is_null()) return value.reset();
  read(json, name, value.emplace());
}

// Visits each option that has a value of its own in a file, in their order there.
template <class Options, class Visit, class VisitKinds>
void visit_options(Options& o, const Visit& visit, const VisitKinds& visit_kinds) {
#define NSIMPLEX_VISIT(type, name, ...) visit(#name, o.name);
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_VISIT)
#undef NSIMPLEX_VISIT
  visit("soft", o.soft);
  visit_kinds("kinds");
  visit("orient_by_noise", o.orient_by_noise);
  visit("missing", o.missing);
  visit("drop", o.drop);
  visit("screen", o.screen);
  visit("screen_by", o.screen_by);
  visit("dimension", o.dimension);
  visit("optimiser", o.optimiser);
  visit("steps", o.steps);
  visit("learning_rate", o.learning_rate);
  visit("hops", o.hops);
  visit("side", o.side);
  visit("weight", o.weight);
  visit("decay", o.decay);
  visit("negatives", o.negatives);
  visit("balanced", o.balanced);
  visit("generality", o.generality);
  visit("relative", o.relative);
  visit("restart", o.restart);
  visit("dangling", o.dangling);
  visit("scale", o.scale);
  visit("by_dimension", o.by_dimension);
  visit("confidence", o.confidence);
  visit("resampling", o.resampling);
  visit("min_frequency", o.min_frequency);
  visit("seed", o.seed);
}

}  // namespace

nlohmann::ordered_json parameters_of(const CausalPipelineOptions& options) {
  Json parameters;
  visit_options(
      options, [&](const char* name, const auto& value) { parameters[name] = to_json(value); },
      [&](const char* name) { parameters[name] = names_of_kinds(options); });
  return parameters;
}

CausalPipelineOptions pipeline_options(const nlohmann::json& parameters) {
  if (!parameters.is_object()) throw InputError("parameters: expected an object of JSON");
  CausalPipelineOptions options;
  const auto given = [&](const char* name) { return parameters.contains(name); };
  visit_options(
      options,
      [&](const char* name, auto& value) {
        if (given(name)) read(parameters.at(name), name, value);
      },
      [&](const char* name) {
        if (given(name) && !parameters.at(name).is_null()) read_kinds(parameters.at(name), options);
      });
  return options;
}

}  // namespace nsimplex::causal
