#include "training/graph_state.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/error.h"

namespace nsimplex::training {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "format", kTraining[] = "training", kState[] = "state";
constexpr char kGraphTraining[] = "nsimplex graph training 1";

// A number that is not finite is no number of JSON; figures may be that.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

Json to_json(const GraphPoint& point) {
  Json figures = Json::array();
  for (const auto& [name, value] : point.validation) figures.push_back({name, number(value)});
  return {{"epoch", point.epoch},
          {"step", point.step},
          {"loss", number(point.loss)},
          {"validation", figures},
          {"seconds", point.seconds}};
}

GraphPoint point_of(const Json& json) {
  GraphPoint point{.epoch = json.at("epoch"),
                   .step = json.at("step"),
                   .loss = number(json.at("loss")),
                   .validation = {},
                   .seconds = json.at("seconds")};
  for (const Json& figure : json.at("validation")) {
    point.validation.emplace_back(figure.at(0).get<std::string>(), number(figure.at(1)));
  }
  return point;
}

GraphState state_of(const Json& json) {
  return {.epoch = json.at("epoch"),
          .begin = json.at("begin"),
          .improved = json.at("improved"),
          .loss = json.at("loss"),
          .loss_steps = json.at("loss_steps"),
          .best = point_of(json.at("best")),
          .last = point_of(json.at("last")),
          .splits = json.at("splits").get<std::vector<int64_t>>(),
          .tensors = {}};
}

}  // namespace

void write_graph_state(const std::string& path, const std::string& training,
                       const GraphState& state) {
  const Json json{{"epoch", state.epoch},           {"begin", state.begin},
                  {"improved", state.improved},     {"loss", state.loss},
                  {"loss_steps", state.loss_steps}, {"best", to_json(state.best)},
                  {"last", to_json(state.last)},    {"splits", state.splits}};
  io::write_safetensors(
      path,
      {state.tensors, {{kFormat, kGraphTraining}, {kTraining, training}, {kState, json.dump()}}});
}

std::optional<GraphState> read_graph_state(const std::string& path, const std::string& training) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  io::Safetensors file = io::read_safetensors(path);
  const auto refuse = [&](const std::string& why) {
    throw InputError("cannot read " + path + ": " + why);
  };
  if (const auto found = file.metadata.find(kFormat);
      found == file.metadata.end() || found->second != kGraphTraining) {
    refuse("not a checkpoint of a training on graphs");
  }
  if (!file.checked) refuse("damaged: its checksums are missing");
  try {
    if (file.metadata.at(kTraining) != training) return std::nullopt;
    GraphState state = state_of(Json::parse(file.metadata.at(kState)));
    state.tensors = std::move(file.tensors);
    return state;
  } catch (const std::out_of_range&) {
    refuse("the header has no state");
  } catch (const Json::exception& error) {
    refuse(std::string("the header's state is damaged: ") + error.what());
  }
  return std::nullopt;
}

}  // namespace nsimplex::training
