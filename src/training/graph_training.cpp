#include "training/graph_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/randperm.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/error.h"
#include "training/adamw.h"
#include "training/diverged.h"
#include "training/learner.h"
#include "training/parameters.h"
#include "training/schedule.h"
#include "training/statistics.h"
#include "training/stopwatch.h"
#include "training/weight_average.h"

namespace nsimplex::training {
namespace {

// Rows of a split whose batches and plans are kept between validations: some hundred megabytes.
constexpr int64_t kKeptRows = int64_t{1} << 20;

at::Generator stream(uint64_t seed, uint64_t which) {
  return at::make_generator<at::CPUGeneratorImpl>(4 * seed + which);
}

// A split, judged again and again: in its own order and always the same, or drawn anew each time.
class Judge {
 public:
  Judge(GraphTask& task, GraphModel& model, GraphSplit split, int64_t batch, uint64_t seed)
      : task_(task),
        model_(model),
        split_(split),
        batch_(batch),
        seed_(seed),
        redraws_(split == GraphSplit::validation && task.redraws_validation()),
        draws_(generator()) {}

  // What the model reaches after `step` updates.
  Scores scores(int64_t step) {
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

 private:
  struct Prepared {
    GraphBatch batch;
    GraphModel::Forward forward;
  };

  static void add(GraphScorer& scorer, const Prepared& each, int64_t step) {
    const at::Tensor outputs = each.forward();
    require_finite_outputs(step, outputs);
    scorer.add(outputs, each.batch);
  }

  at::Generator generator() const { return stream(seed_, 1 + static_cast<uint64_t>(split_)); }

  std::vector<int64_t> examples() {
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

  GraphTask& task_;
  GraphModel& model_;
  GraphSplit split_;
  int64_t batch_;
  uint64_t seed_;
  bool redraws_;
  at::Generator draws_;
  std::vector<Prepared> kept_;
};

// Model and optimiser; one call of step() an update.
class Stepper {
 public:
  Stepper(GraphTask& task, GraphModel& model, const GraphTrainingOptions& o, int64_t steps,
          int64_t steps_an_epoch)
      : task_(task),
        model_(model),
        options_(o),
        optimizer_(named_parameters(model), {.beta2 = 0.999, .weight_decay = o.weight_decay}),
        schedule_{o.learning_rate,
                  static_cast<int64_t>(o.warmup * static_cast<double>(steps_an_epoch)), steps,
                  o.decays} {
    if (o.ema > 0) average_.emplace(model, o.ema);
  }

  // Returns the task's loss.
  double step(std::span<const int64_t> examples, const at::Generator& generator) {
    const Stopwatch watch;
    model_.train();
    const double of_steps = static_cast<double>(steps()) / static_cast<double>(schedule_.steps);
    if (std::max(of_steps, spent_seconds()) < options_.redraw) model_.redraw_features();
    const GraphBatch batch = task_.batch(GraphSplit::train, examples, generator);
    const at::Tensor loss = task_.loss(model_.prepare(batch)(), batch);
    const at::Tensor auxiliary = model_.auxiliary_loss();
    optimizer_.zero_grad();
    (auxiliary.defined() ? loss + auxiliary : loss).backward();
    const double value = loss.item<double>(), norm = optimizer_.gradient_norm();
    require_finite(steps() + 1, value, norm);
    optimizer_.step(schedule_.rate(steps(), spent_seconds()),
                    options_.clip > 0 ? std::max(norm / options_.clip, 1.0) : 1.0);
    if (average_) average_->add();
    times_.push_back(watch.seconds());
    seconds_ += times_.back();
    return value;
  }

  // The weights that are judged, in the place of the model's: their average where there is one.
  AverageInPlace judged_weights() { return AverageInPlace(average_ ? &*average_ : nullptr); }

  int64_t steps() const { return std::ssize(times_); }
  double seconds() const { return seconds_; }
  double median_seconds() const { return median(times_); }

 private:
  // Share of the budget of time that is gone.
  double spent_seconds() const { return options_.seconds > 0 ? seconds_ / options_.seconds : 0; }

  GraphTask& task_;
  GraphModel& model_;
  GraphTrainingOptions options_;
  AdamW optimizer_;
  LinearSchedule schedule_;
  std::optional<WeightAverage> average_;
  std::vector<double> times_;  // seconds of each step
  double seconds_ = 0.0;
};

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
                                        const GraphEvents& events) {
  check(o);
  check_task(task);
  at::manual_seed(seed);
  const std::shared_ptr<GraphModel> model = make();
  const int64_t examples = task.size(GraphSplit::train);
  const int64_t steps_an_epoch = (examples + o.batch - 1) / o.batch;
  const int64_t steps = o.epochs * steps_an_epoch;
  Stepper stepper(task, *model, o, steps, steps_an_epoch);
  Judge validation(task, *model, GraphSplit::validation, o.batch, seed);
  const at::Generator generator = stream(seed, 1);

  GraphResult result;
  result.parameters = parameter_count(*model);
  std::vector<at::Tensor> best, last;
  double loss = 0.0;
  int64_t loss_steps = 0, improved = 0;
  const auto late = [&] { return o.seconds > 0 && stepper.seconds() >= o.seconds; };
  for (int64_t epoch = 1; epoch <= o.epochs && !result.stopped && !late(); ++epoch) {
    const at::Tensor order = at::randperm(examples, generator, at::kLong);
    const std::span<const int64_t> all(order.const_data_ptr<int64_t>(),
                                       static_cast<size_t>(examples));
    for (int64_t begin = 0; begin < examples && !late(); begin += o.batch) {
      result.stopped = events.stop && events.stop();
      if (result.stopped) break;
      const auto count = static_cast<size_t>(std::min(o.batch, examples - begin));
      loss += stepper.step(all.subspan(static_cast<size_t>(begin), count), generator);
      ++loss_steps;
      if (events.step) {
        events.step(stepper.steps(), steps, loss / static_cast<double>(loss_steps));
      }
    }
    if (result.stopped) break;
    if (epoch % o.evaluate_every != 0 && epoch != o.epochs && !late()) continue;
    {
      const AverageInPlace judged = stepper.judged_weights();
      result.last = {epoch, stepper.steps(), loss / static_cast<double>(loss_steps),
                     validation.scores(stepper.steps()), stepper.seconds()};
      last = copy_of_weights(*model);
    }
    loss = 0.0;
    loss_steps = 0;
    const double now = result.last.validation.front().second;
    const double then = best.empty() ? now : result.best.validation.front().second;
    const bool better = task.higher_is_better() ? now > then : now < then;
    if (better || best.empty()) improved = epoch;
    if (better || now == then) {
      result.best = result.last;
      best = last;
    }
    if (events.point) events.point(result.last);
    if (o.patience > 0 && epoch - improved >= o.patience) break;
  }
  if (best.empty()) return std::nullopt;
  result.step_seconds = stepper.median_seconds();

  Judge test(task, *model, GraphSplit::test, o.batch, seed);
  restore_weights(*model, last);
  result.last_test = test.scores(result.last.step);
  restore_weights(*model, best);
  result.best_test =
      result.best.epoch == result.last.epoch ? result.last_test : test.scores(result.best.step);
  return result;
}

}  // namespace nsimplex::training
