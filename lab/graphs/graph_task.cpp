// Evaluates a graph model on a split, and saves and restores the state of a training.

#include "lab/graphs/graph_task.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randperm.h>
#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "support/require.h"
#include "train/stored_state.h"
#include "train/training_loop.h"

namespace nsimplex::training {
namespace {

// Rows of a split whose batches and plans are kept between validations: some hundred megabytes.
constexpr int64_t kKeptRows = int64_t{1} << 20;

}  // namespace

ChosenRows rows_of(const at::Tensor& offsets, const at::Tensor& numbers) {
  const at::Tensor first = offsets.index_select(0, numbers);
  const at::Tensor counts = offsets.index_select(0, numbers + 1) - first;
  const at::Tensor before = counts.cumsum(0) - counts;
  const at::Tensor shift = (first - before).repeat_interleave(counts);
  return {first, counts, at::arange(shift.size(0), shift.options()) + shift};
}

at::Generator graph_stream(uint64_t seed, uint64_t which) {
  return at::make_generator<at::CPUGeneratorImpl>(4 * seed + which);
}

GraphJudge::GraphJudge(GraphTask& task, GraphModel& model, GraphSplit split, int64_t batch,
                       uint64_t seed)
    : task_(task),
      model_(model),
      split_(split),
      batch_(batch),
      seed_(seed),
      redraws_(split == GraphSplit::validation && task.redraws_validation()),
      draws_(generator()) {}

Scores GraphJudge::scores(int64_t step) {
  const at::NoGradGuard no_grad;
  model_.eval();
  const auto scorer = task_.scorer();
  if (!kept_.empty()) {
    for (const Prepared& each : kept_) add(*scorer, each, step);
    return scorer->scores();
  }
  if (!redraws_) draws_ = generator();
  const std::vector<int64_t> examples = this->examples();
  int64_t rows = 0;
  for (size_t begin = 0; begin < examples.size(); begin += static_cast<size_t>(batch_)) {
    const size_t count = std::min(static_cast<size_t>(batch_), examples.size() - begin);
    Prepared each{task_.batch(split_, std::span(examples).subspan(begin, count), draws_), {}};
    each.forward = model_.prepare(each.batch);
    add(*scorer, each, step);
    rows += each.batch.input.size() + each.batch.output.size();
    if (rows <= kKeptRows) kept_.push_back(std::move(each));
  }
  if (rows > kKeptRows || redraws_) kept_.clear();
  return scorer->scores();
}

void GraphJudge::add(GraphScorer& scorer, const Prepared& each, int64_t step) {
  const at::Tensor outputs = each.forward();
  require_finite_outputs(step, outputs);
  scorer.add(outputs, each.batch);
}

at::Generator GraphJudge::generator() const {
  return graph_stream(seed_, 1 + static_cast<uint64_t>(split_));
}

std::vector<int64_t> GraphJudge::examples() {
  const int64_t size = task_.size(split_);
  std::vector<int64_t> examples(static_cast<size_t>(size));
  if (!redraws_) {
    std::iota(examples.begin(), examples.end(), int64_t{0});
    return examples;
  }
  const at::Tensor order = at::randperm(size, draws_, at::kLong);
  std::copy_n(order.const_data_ptr<int64_t>(), size, examples.begin());
  if (size > batch_) examples.resize(static_cast<size_t>(size - size % batch_));
  return examples;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormatKey[] = "format", kTrainingKey[] = "training", kStateKey[] = "state";
constexpr char kGraphTraining[] = "nsimplex graph training 1";

// Numbers that are not finite cannot be written as JSON numbers. Metrics may be such.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const nlohmann::json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

Json to_json(const GraphPoint& point) {
  Json figures = Json::array();
  for (const auto& [name, value] : point.validation) figures.push_back({name, number(value)});
  return {{"epoch", point.epoch},
          {"step", point.step},
          {"loss", number(point.loss)},
          {"validation", figures},
          {"seconds", point.seconds}};
}

GraphPoint point_of(const nlohmann::json& json) {
  GraphPoint point{.epoch = json.at("epoch"),
                   .step = json.at("step"),
                   .loss = number(json.at("loss")),
                   .validation = {},
                   .seconds = json.at("seconds")};
  for (const nlohmann::json& figure : json.at("validation")) {
    point.validation.emplace_back(figure.at(0).get<std::string>(), number(figure.at(1)));
  }
  return point;
}

GraphState state_of(const nlohmann::json& json) {
  return {.epoch = json.at("epoch"),
          .begin = json.at("begin"),
          .improved = json.at("improved"),
          .loss = json.at("loss"),
          .loss_steps = json.at("loss_steps"),
          .best = point_of(json.at("best")),
          .last = point_of(json.at("last")),
          .splits = json.at("splits").get<std::vector<int64_t>>(),
          .tensors = {},
          .path = {}};
}

Json json_of(const GraphState& state) {
  return {{"epoch", state.epoch},           {"begin", state.begin},
          {"improved", state.improved},     {"loss", state.loss},
          {"loss_steps", state.loss_steps}, {"best", to_json(state.best)},
          {"last", to_json(state.last)},    {"splits", state.splits}};
}

}  // namespace

void write_graph_state(const std::string& path, const std::string& training,
                       const GraphState& state) {
  io::write_safetensors(path, {state.tensors,
                               {{kFormatKey, kGraphTraining},
                                {kTrainingKey, training},
                                {kStateKey, json_of(state).dump()}}});
}

std::optional<GraphState> read_graph_state(const std::string& path, const std::string& training) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  io::Safetensors file = io::read_safetensors(path);
  return of_file(path, [&]() -> std::optional<GraphState> {
    const auto format = file.metadata.find(kFormatKey);
    require(format != file.metadata.end() && format->second == kGraphTraining,
            "not a checkpoint of a training on graphs");
    require(file.checked, "damaged: its checksums are missing");
    const auto own = file.metadata.find(kTrainingKey);
    require(own != file.metadata.end(), "the header does not name its training");
    if (own->second != training) return std::nullopt;
    GraphState state = from_header(file, path, kStateKey, [](const nlohmann::json& json) {
      GraphState read = state_of(json);
      require_same(json, json_of(read), kStateKey);
      return read;
    });
    require_usable(file.tensors);
    state.tensors = std::move(file.tensors);
    state.path = path;
    return state;
  });
}

}  // namespace nsimplex::training
