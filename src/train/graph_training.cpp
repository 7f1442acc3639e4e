#include "train/graph_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/randperm.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "support/error.h"
#include "train/graph_stepper.h"
#include "train/graph_task.h"
#include "train/optimizer.h"
#include "train/stopwatch.h"

namespace nsimplex::training {
namespace {

constexpr char kOrderTensor[] = "order", kTimesTensor[] = "times",
               kDefaultGenerator[] = "generator.default",
               kTrainingGenerator[] = "generator.training",
               kValidationGenerator[] = "generator.validation";
constexpr char kBestWeights[] = "best.", kLastWeights[] = "last.";

// What a training is made of, as a state has it and gives it back.
struct TrainingParts {
  GraphModel& model;
  GraphStepper& stepper;
  GraphJudge& validation;
  at::Generator generator;
  at::Tensor order;                    // of the epoch's examples
  std::vector<at::Tensor> best, last;  // weights; of none yet where nothing was validated

  std::vector<io::NamedTensor> learned() const {
    std::vector<io::NamedTensor> learned = named_weights(model);
    for (io::NamedTensor& each : stepper.state()) learned.push_back(std::move(each));
    return learned;
  }

  std::vector<io::NamedTensor> tensors() {
    std::vector<io::NamedTensor> all = learned();
    const auto add = [&](const char* prefix, const std::vector<at::Tensor>& weights) {
      const std::vector<io::NamedTensor> names = named_weights(model);
      for (size_t i = 0; i < weights.size(); ++i) {
        all.push_back({prefix + names[i].name, weights[i]});
      }
    };
    add(kBestWeights, best);
    add(kLastWeights, last);
    all.push_back({kOrderTensor, order});
    all.push_back({kTimesTensor, stepper.times()});
    all.push_back({kDefaultGenerator, at::detail::getDefaultCPUGenerator().get_state()});
    all.push_back({kTrainingGenerator, generator.get_state()});
    all.push_back({kValidationGenerator, validation.draws().get_state()});
    return all;
  }

  void restore(const GraphState& state) {
    std::map<std::string, at::Tensor> found;
    for (const io::NamedTensor& each : state.tensors) found[each.name] = each.tensor;
    const auto take = [&](const std::string& name, at::ScalarType type) {
      const auto place = found.find(name);
      if (place == found.end() || place->second.scalar_type() != type) {
        throw InputError("cannot continue the training: its state has no tensor " + name);
      }
      return place->second;
    };
    const auto fill = [&](const std::string& prefix, const std::vector<io::NamedTensor>& tensors) {
      const at::NoGradGuard no_grad;
      for (const io::NamedTensor& each : tensors) {
        const at::Tensor value = take(prefix + each.name, each.tensor.scalar_type());
        if (value.sizes() != each.tensor.sizes()) {
          throw InputError(c10::str("cannot continue the training: tensor ", prefix, each.name,
                                    " has shape ", value.sizes(), ", the model's has ",
                                    each.tensor.sizes()));
        }
        each.tensor.copy_(value);
      }
    };
    if (state.last.epoch > 0) {
      fill(kLastWeights, named_weights(model));
      last = copy_of_weights(model);
    }
    if (state.best.epoch > 0) {  // a validation that is no number is of no use
      fill(kBestWeights, named_weights(model));
      best = copy_of_weights(model);
    }
    fill("", learned());
    stepper.continue_after(take(kTimesTensor, at::kDouble));
    order = take(kOrderTensor, at::kLong);
    if (order.numel() != state.splits.front()) {
      throw InputError("cannot continue the training: its order is not of all examples");
    }
    const auto set = [&](at::Generator to, const char* name) {
      try {
        to.set_state(take(name, at::kByte));
      } catch (const c10::Error&) {
        throw InputError(std::string("cannot continue the training: ") + name + " is damaged");
      }
    };
    set(generator, kTrainingGenerator);
    set(validation.draws(), kValidationGenerator);
    set(at::detail::getDefaultCPUGenerator(), kDefaultGenerator);
  }
};

std::vector<int64_t> sizes_of(const GraphTask& task) {
  return {task.size(GraphSplit::train), task.size(GraphSplit::validation),
          task.size(GraphSplit::test)};
}

void require_same_task(const std::vector<int64_t>& splits, const GraphState& state) {
  const bool sound = state.epoch >= 1 && state.begin >= 0 && state.begin <= splits[0];
  if (splits == state.splits && sound) return;
  throw InputError(fmt::format(
      "cannot continue the training: it began with {} examples of the splits, the data has {} now",
      fmt::join(state.splits, ", "), fmt::join(splits, ", ")));
}

void check_task(const GraphTask& task) {
  const std::pair<GraphSplit, const char*> splits[] = {{GraphSplit::train, "training"},
                                                       {GraphSplit::validation, "validation"},
                                                       {GraphSplit::test, "test"}};
  for (const auto& [split, name] : splits) {
    if (task.size(split) >= 1) continue;
    throw InputError(fmt::format("[train_graphs] {} split: expected an example, got none", name));
  }
}

void require(bool ok, const char* what, double got) {
  if (!ok) throw InputError(fmt::format("[train_graphs] {}, got {}", what, got));
}

}  // namespace

void check(const GraphTrainingOptions& o) {
  require(o.epochs >= 1, "epochs: expected at least 1", static_cast<double>(o.epochs));
  require(o.batch >= 1, "batch: expected at least 1", static_cast<double>(o.batch));
  require(o.learning_rate > 0 && std::isfinite(o.learning_rate),
          "learning rate: expected a positive number", o.learning_rate);
  require(o.warmup >= 0 && std::isfinite(o.warmup), "warm-up: expected at least 0", o.warmup);
  require(o.clip >= 0, "clip: expected at least 0", o.clip);
  require(o.weight_decay >= 0, "weight decay: expected at least 0", o.weight_decay);
  require(o.ema >= 0 && o.ema < 1, "ema: expected a decay from 0 to less than 1", o.ema);
  require(o.redraw >= 0 && o.redraw <= 1, "redraw: expected a share from 0 to 1", o.redraw);
  require(o.evaluate_every >= 1, "evaluate every: expected at least 1",
          static_cast<double>(o.evaluate_every));
  require(o.seconds >= 0 && std::isfinite(o.seconds), "seconds: expected at least 0", o.seconds);
  require(o.patience >= 0, "patience: expected at least 0", static_cast<double>(o.patience));
}

std::optional<GraphResult> train_graphs(GraphTask& task,
                                        const std::function<std::shared_ptr<GraphModel>()>& make,
                                        const GraphTrainingOptions& o, uint64_t seed,
                                        const GraphEvents& events, const GraphState* start) {
  check(o);
  check_task(task);
  at::manual_seed(seed);
  const std::shared_ptr<GraphModel> model = make();
  const int64_t examples = task.size(GraphSplit::train);
  const int64_t steps_an_epoch = (examples + o.batch - 1) / o.batch;
  const int64_t steps = o.epochs * steps_an_epoch;
  GraphStepper stepper(task, *model, o, steps, steps_an_epoch);
  GraphJudge validation(task, *model, GraphSplit::validation, o.batch, seed);
  TrainingParts parts{*model, stepper, validation, graph_stream(seed, 1), {}, {}, {}};
  GraphState state;
  state.splits = sizes_of(task);
  if (start != nullptr) {
    require_same_task(state.splits, *start);
    state = *start;
    parts.restore(*start);
    state.tensors.clear();
  }

  GraphResult result;
  result.parameters = parameter_count(*model);
  Stopwatch unsaved;
  int64_t saved_steps = stepper.steps();
  const auto late = [&] { return o.seconds > 0 && stepper.seconds() >= o.seconds; };
  for (; state.epoch <= o.epochs && !result.stopped && !late(); ++state.epoch) {
    if (!parts.order.defined()) parts.order = at::randperm(examples, parts.generator, at::kLong);
    const std::span<const int64_t> all(parts.order.const_data_ptr<int64_t>(),
                                       static_cast<size_t>(examples));
    for (; state.begin < examples && !late(); state.begin += o.batch) {
      result.stopped = events.stop && events.stop();
      const bool due = result.stopped || unsaved.seconds() >= events.save_every;
      if (events.save && due && stepper.steps() > saved_steps) {
        state.tensors = parts.tensors();
        events.save(state);
        state.tensors.clear();
        saved_steps = stepper.steps();
        unsaved = Stopwatch();
      }
      if (result.stopped) break;
      const auto count = static_cast<size_t>(std::min(o.batch, examples - state.begin));
      state.loss +=
          stepper.step(all.subspan(static_cast<size_t>(state.begin), count), parts.generator);
      ++state.loss_steps;
      if (events.step) {
        events.step(stepper.steps(), steps, state.loss / static_cast<double>(state.loss_steps));
      }
    }
    if (result.stopped) break;
    state.begin = 0;
    parts.order.reset();
    const int64_t epoch = state.epoch;
    if (epoch % o.evaluate_every != 0 && epoch != o.epochs && !late()) continue;
    {
      const AverageInPlace judged = stepper.judged_weights();
      state.last = {epoch, stepper.steps(), state.loss / static_cast<double>(state.loss_steps),
                    validation.scores(stepper.steps()), stepper.seconds()};
      parts.last = copy_of_weights(*model);
    }
    state.loss = 0.0;
    state.loss_steps = 0;
    const bool first = parts.best.empty();
    const double now = state.last.validation.front().second;
    const double then = first ? now : state.best.validation.front().second;
    const bool better = task.higher_is_better() ? now > then : now < then;
    if (better || first) state.improved = epoch;
    if (better || now == then) {
      state.best = state.last;
      parts.best = parts.last;
    }
    if (events.point) events.point(state.last);
    if (o.patience > 0 && epoch - state.improved >= o.patience) break;
  }
  if (parts.best.empty()) return std::nullopt;
  result.best = state.best;
  result.last = state.last;
  result.step_seconds = stepper.median_seconds();

  GraphJudge test(task, *model, GraphSplit::test, o.batch, seed);
  restore_weights(*model, parts.last);
  result.last_test = test.scores(result.last.step);
  restore_weights(*model, parts.best);
  result.best_test =
      result.best.epoch == result.last.epoch ? result.last_test : test.scores(result.best.step);
  return result;
}

}  // namespace nsimplex::training
