// Trains a graph model, validates it after epochs, and resumes an interrupted training.

#include "lab/graphs/graph_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/rounding.h"
#include "support/names.h"
#include "support/require.h"
#include "train/optimizer.h"
#include "train/stored_state.h"
#include "train/training_loop.h"
#include "train/training_options.h"

namespace nsimplex {

template <>
inline constexpr Names<training::GraphSplit, 3> kNames<training::GraphSplit>{
    {{"training", training::GraphSplit::train},
     {"validation", training::GraphSplit::validation},
     {"test", training::GraphSplit::test}}};

}  // namespace nsimplex

namespace nsimplex::training {
namespace {

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& each : tensors) copies.push_back(each.detach().clone());
  return copies;
}

std::vector<at::Tensor> weights_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> weights = module.parameters();
  const std::vector<at::Tensor> buffers = module.buffers();
  weights.insert(weights.end(), buffers.begin(), buffers.end());
  return weights;
}

}  // namespace

std::vector<at::Tensor> copy_of_weights(const torch::nn::Module& module) {
  return copies_of(weights_of(module));
}

void restore_weights(const torch::nn::Module& module, const std::vector<at::Tensor>& copies) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> weights = weights_of(module);
  for (size_t i = 0; i < weights.size(); ++i) weights[i].copy_(copies[i]);
}

WeightAverage::WeightAverage(const torch::nn::Module& module, double decay)
    : parameters_(module.parameters()), average_(copies_of(parameters_)), decay_(decay) {}

void WeightAverage::add() {
  const at::NoGradGuard no_grad;
  const auto t = static_cast<double>(++updates_);
  const double share = 1 - std::min(decay_, (1 + t) / (10 + t));
  for (size_t i = 0; i < average_.size(); ++i) average_[i].lerp_(parameters_[i], share);
}

void WeightAverage::swap() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < average_.size(); ++i) {
    const at::Tensor parameter = parameters_[i].detach().clone();
    parameters_[i].copy_(average_[i]);
    average_[i].copy_(parameter);
  }
}

namespace {

constexpr char kOrderTensor[] = "order", kTimesTensor[] = "times",
               kDefaultGenerator[] = "generator.default",
               kTrainingGenerator[] = "generator.training",
               kValidationGenerator[] = "generator.validation";
constexpr char kBestWeights[] = "best.", kLastWeights[] = "last.";

std::vector<int64_t> sizes_of(const GraphTask& task) {
  return {task.size(GraphSplit::train), task.size(GraphSplit::validation),
          task.size(GraphSplit::test)};
}

// Checks the numbers of a state of a training with these splits and options.
void require_possible(const GraphState& state, const std::vector<int64_t>& splits, int64_t epochs) {
  require(splits == state.splits,
          fmt::format("it began with {} examples of the splits, the data has {} now",
                      fmt::join(state.splits, ", "), fmt::join(splits, ", ")));
  const auto within = [](const char* name, int64_t most, int64_t value, int64_t least = 0) {
    require_within(std::string("the header's state.") + name, least, most, value);
  };
  within("epoch", epochs + 1, state.epoch, 1);  // the next one after the last
  within("begin", splits[0], state.begin);
  within("improved", state.epoch, state.improved);
  within("last.epoch", state.epoch, state.last.epoch);
  within("best.epoch", state.last.epoch, state.best.epoch);
  require(state.loss_steps >= 0, "the header's state.loss_steps is negative");
  for (const GraphPoint& point : {state.best, state.last}) {
    require(point.step >= 0 && point.seconds >= 0, "the header's state has a negative number");
    require(point.epoch == 0 || !point.validation.empty(), "the header's state has no metrics");
  }
}

int64_t steps_per_epoch(const GraphTask& task, const GraphTrainingOptions& o) {
  return ceil_div(task.size(GraphSplit::train), o.batch);
}

// A graph model in training: epochs in random order, with validations after some of them.
class GraphTrainee : public Trainee {
 public:
  GraphTrainee(GraphTask& task, GraphModel& model, const GraphTrainingOptions& o, uint64_t seed,
               const GraphEvents& events)
      : Trainee(o.epochs * steps_per_epoch(task, o), o.seconds),
        task_(task),
        model_(model),
        options_(o),
        events_(events),
        examples_(task.size(GraphSplit::train)),
        optimizer_(named_parameters(model), {.beta2 = 0.999, .weight_decay = o.weight_decay}),
        schedule_{o.learning_rate,
                  static_cast<int64_t>(o.warmup * static_cast<double>(steps_per_epoch(task, o))),
                  steps(), o.decays},
        validation_(task, model, GraphSplit::validation, o.batch, seed),
        generator_(graph_stream(seed, 1)) {
    if (o.ema > 0) average_.emplace(model, o.ema);
    state_.splits = sizes_of(task);
  }

  double update(int64_t step) override {
    begin_epoch();
    model_.train();
    const double of_steps = static_cast<double>(step - 1) / static_cast<double>(steps());
    if (std::max(of_steps, spent()) < options_.redraw) model_.redraw_features();
    const std::span<const int64_t> order(order_.const_data_ptr<int64_t>(),
                                         static_cast<size_t>(examples_));
    const int64_t count = std::min(options_.batch, examples_ - state_.begin);
    const GraphBatch batch = task_.batch(
        GraphSplit::train,
        order.subspan(static_cast<size_t>(state_.begin), static_cast<size_t>(count)), generator_);
    const at::Tensor loss = task_.loss(model_.prepare(batch)(), batch);
    const at::Tensor auxiliary = model_.auxiliary_loss();
    optimizer_.zero_grad();
    (auxiliary.defined() ? loss + auxiliary : loss).backward();
    const double value = loss.item<double>();
    finish_update(optimizer_, step, value, schedule_.rate(step - 1, spent()), options_.clip);
    if (average_) average_->add();
    state_.begin += options_.batch;
    state_.loss += value;
    ++state_.loss_steps;
    return value;
  }

  bool is_evaluated_at(int64_t /*step*/) const override {
    return state_.begin >= examples_ && state_.epoch % options_.evaluate_every == 0;
  }

  bool evaluate(int64_t step) override {
    {
      // The average is evaluated if there is one.
      const AverageInPlace averaged(average_ ? &*average_ : nullptr);
      state_.last = {state_.epoch, step, mean_loss(), validation_.scores(step), seconds()};
      last_ = copy_of_weights(model_);
    }
    state_.loss = 0.0;
    state_.loss_steps = 0;
    const bool first = best_.empty();
    const double now = state_.last.validation.front().second;
    const double then = first ? now : state_.best.validation.front().second;
    const bool better = task_.higher_is_better() ? now > then : now < then;
    if (better || first) state_.improved = state_.epoch;
    if (better || now == then) {
      state_.best = state_.last;
      best_ = last_;
    }
    if (events_.point) events_.point(state_.last);
    return options_.patience == 0 || state_.epoch - state_.improved < options_.patience;
  }

  void save() override {
    if (!events_.save) return;
    begin_epoch();
    state_.tensors = tensors();
    events_.save(state_);
    state_.tensors.clear();
  }

  void restore(const GraphState& state) {
    of_file(state.path, [&] {
      require_possible(state, state_.splits, options_.epochs);
      std::vector<io::NamedTensor> tensors = state.tensors;
      state_ = state;
      state_.tensors.clear();
      last_ = taken_weights(tensors, kLastWeights, state.last.epoch);
      // A validation that is not a number cannot be the best.
      best_ = taken_weights(tensors, kBestWeights, state.best.epoch);
      const at::Tensor times = take_list(tensors, kTimesTensor, at::kDouble);
      const auto* first = times.const_data_ptr<double>();
      continue_after(times.numel(), {first, first + times.numel()});
      if (average_) average_->continue_after(done());
      order_ = take_list(tensors, kOrderTensor, at::kLong);
      // The numbers are places in lists of examples.
      require(
          order_.numel() == examples_ && std::get<0>(order_.sort()).equal(at::arange(examples_)),
          "its order is not of all examples");
      const auto set = [&](const at::Generator& generator, const char* name) {
        set_state(generator, take_list(tensors, name, at::kByte), name);
      };
      set(generator_, kTrainingGenerator);
      set(validation_.draws(), kValidationGenerator);
      set(at::detail::getDefaultCPUGenerator(), kDefaultGenerator);
      copy_into(learned(), tensors, state.path);
    });
  }

  /// Mean over the steps since the last validation.
  double mean_loss() const { return state_.loss / static_cast<double>(state_.loss_steps); }

  const GraphState& state() const { return state_; }
  const std::vector<at::Tensor>& best() const { return best_; }
  const std::vector<at::Tensor>& last() const { return last_; }

 private:
  // Begins the next epoch after the last example of one, and draws its order.
  void begin_epoch() {
    if (state_.begin >= examples_) {
      ++state_.epoch;
      state_.begin = 0;
      order_.reset();
    }
    if (!order_.defined()) order_ = at::randperm(examples_, generator_, at::kLong);
  }

  // The weights of an epoch, which are in the state if it is not 0.
  std::vector<at::Tensor> taken_weights(std::vector<io::NamedTensor>& tensors, const char* prefix,
                                        int64_t epoch) {
    if (epoch == 0) return {};
    copy_into(named_weights(model_), take_under(tensors, prefix), state_.path);
    return copy_of_weights(model_);
  }

  // The tensors that the training changes, by name. They share memory with the training.
  std::vector<io::NamedTensor> learned() const {
    std::vector<io::NamedTensor> learned = named_weights(model_);
    for (io::NamedTensor& each : optimizer_.state()) {
      learned.push_back({"optimizer." + each.name, std::move(each.tensor)});
    }
    if (!average_) return learned;
    for (size_t i = 0; i < average_->tensors().size(); ++i) {
      learned.push_back({"average." + std::to_string(i), average_->tensors()[i]});
    }
    return learned;
  }

  std::vector<io::NamedTensor> tensors() {
    std::vector<io::NamedTensor> all = learned();
    const auto add = [&](const char* prefix, const std::vector<at::Tensor>& weights) {
      const std::vector<io::NamedTensor> names = named_weights(model_);
      for (size_t i = 0; i < weights.size(); ++i) {
        all.push_back({prefix + names[i].name, weights[i]});
      }
    };
    add(kBestWeights, best_);
    add(kLastWeights, last_);
    all.push_back({kOrderTensor, order_});
    all.push_back({kTimesTensor, at::tensor(times(), at::kDouble)});
    all.push_back({kDefaultGenerator, at::detail::getDefaultCPUGenerator().get_state()});
    all.push_back({kTrainingGenerator, generator_.get_state()});
    all.push_back({kValidationGenerator, validation_.draws().get_state()});
    return all;
  }

  GraphTask& task_;
  GraphModel& model_;
  const GraphTrainingOptions& options_;
  const GraphEvents& events_;
  int64_t examples_;
  AdamW optimizer_;
  LinearSchedule schedule_;
  std::optional<WeightAverage> average_;
  GraphJudge validation_;
  at::Generator generator_;
  at::Tensor order_;                     // of the epoch's examples
  std::vector<at::Tensor> best_, last_;  // weights; empty before the first validation
  GraphState state_;                     // its tensors are those above
};

void check_task(const GraphTask& task) {
  for (const auto& [name, split] : kNames<GraphSplit>) {
    require(task.size(split) >= 1, "--", name, " split: expected an example, got none");
  }
}

}  // namespace

void check(const GraphTrainingOptions& o) {
  require_within("--epochs", 1, kMostAsked, o.epochs);
  require_within("--batch", 1, kMostAsked, o.batch);
  require_argument(o.learning_rate > 0 && std::isfinite(o.learning_rate), "--lr",
                   "a positive number", o.learning_rate);
  require_argument(o.warmup >= 0 && o.warmup <= kMostAsked, "--warmup", "0 to 2^31", o.warmup);
  require_argument(o.clip >= 0, "--clip", "at least 0", o.clip);
  require_argument(o.weight_decay >= 0, "--weight-decay", "at least 0", o.weight_decay);
  require_argument(o.ema >= 0 && o.ema < 1, "--ema", "a decay from 0 to less than 1", o.ema);
  require_argument(o.redraw >= 0 && o.redraw <= 1, "--redraw", "a share from 0 to 1", o.redraw);
  require_within("--eval-every", 1, kMostAsked, o.evaluate_every);
  require_argument(o.seconds >= 0 && std::isfinite(o.seconds), "--seconds", "at least 0",
                   o.seconds);
  require_within("--patience", 0, kMostAsked, o.patience);
}

std::optional<GraphResult> train_graphs(GraphTask& task,
                                        const std::function<std::shared_ptr<GraphModel>()>& make,
                                        const GraphTrainingOptions& o, uint64_t seed,
                                        const GraphEvents& events, const GraphState* start) {
  check(o);
  check_task(task);
  at::manual_seed(seed);
  const std::shared_ptr<GraphModel> model = make();
  GraphTrainee trainee(task, *model, o, seed, events);
  if (start != nullptr) trainee.restore(*start);
  LoopOptions loop;
  if (events.save) loop.save_seconds = events.save_every;
  const TrainingEnd end =
      train(trainee, loop,
            {.stop = events.stop, .prepare = {}, .step = [&](size_t, int64_t step, double) {
               if (events.step) events.step(step, trainee.steps(), trainee.mean_loss());
             }});
  if (trainee.best().empty()) return std::nullopt;
  GraphResult result;
  result.parameters = parameter_count(*model);
  result.stopped = end == TrainingEnd::stopped;
  result.best = trainee.state().best;
  result.last = trainee.state().last;
  result.step_seconds = trainee.median_seconds();

  GraphJudge test(task, *model, GraphSplit::test, o.batch, seed);
  restore_weights(*model, trainee.last());
  result.last_test = test.scores(result.last.step);
  restore_weights(*model, trainee.best());
  result.best_test =
      result.best.epoch == result.last.epoch ? result.last_test : test.scores(result.best.step);
  return result;
}

}  // namespace nsimplex::training
