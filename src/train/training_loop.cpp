// Runs the updates and evaluations of one or several models until a limit or a signal.

#include "train/training_loop.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "support/median.h"
#include "support/stopwatch.h"
#include "train/scores.h"

namespace nsimplex::training {

void require_finite(int64_t step, double loss, double gradient_norm) {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) return;
  const bool of_loss = !std::isfinite(loss);
  const double value = of_loss ? loss : gradient_norm;
  throw Diverged(fmt::format("the {} is {} at step {}: the run stops; try a lower learning rate",
                             of_loss ? "loss" : "gradient norm",
                             std::isnan(value) ? "not a number" : fmt::format("{}", value), step));
}

void require_finite_outputs(std::optional<int64_t> step, const at::Tensor& outputs) {
  if (at::isfinite(outputs).all().item<bool>()) return;
  throw Diverged(fmt::format(
      "the model's output is not finite after {}: the run stops; try a lower learning rate",
      step ? fmt::format("step {}", *step) : "its training"));
}

double finish_update(AdamW& optimizer, int64_t step, double loss, double rate, double clip) {
  const double norm = optimizer.gradient_norm();
  require_finite(step, loss, norm);
  optimizer.step(rate, clip > 0 ? std::max(norm / clip, 1.0) : 1.0);
  return norm;
}

double Trainee::median_seconds() const { return median(times_); }

void Trainee::continue_after(int64_t done, std::vector<double> times) {
  done_ = done;
  times_ = std::move(times);
  seconds_ = std::accumulate(times_.begin(), times_.end(), 0.0);
}

void Trainee::advance(const std::function<void(int64_t, double)>& told) {
  const Stopwatch watch;
  const double loss = update(done_ + 1);
  times_.push_back(watch.seconds());
  seconds_ += times_.back();
  ++done_;
  told(done_, loss);
  if (is_evaluated_at(done_) || ended()) gave_up_ = !evaluate(done_);
}

TrainingEnd train(std::span<Trainee* const> models, const LoopOptions& o,
                  const LoopEvents& events) {
  int64_t done = models.front()->done(), saved = done;
  Stopwatch unsaved;
  const auto has_ended = [](const Trainee* each) { return each->ended(); };
  for (; !std::ranges::all_of(models, has_ended); ++done) {
    const bool stopped = events.stop && events.stop();
    const bool due = stopped || (o.save_every > 0 && done % o.save_every == 0) ||
                     unsaved.seconds() >= o.save_seconds;
    if (due && done > saved) {
      for (Trainee* each : models) each->save();
      saved = done;
      unsaved = Stopwatch();
    }
    if (stopped) return TrainingEnd::stopped;
    if (events.prepare) events.prepare(done + 1);
    for (size_t turn = 0; turn < models.size(); ++turn) {
      const size_t first = o.rotates ? static_cast<size_t>(done + 1) : 0;
      const size_t which = (first + turn) % models.size();
      if (models[which]->ended()) continue;
      models[which]->advance([&](int64_t step, double loss) {
        if (events.step) events.step(which, step, loss);
      });
    }
  }
  return TrainingEnd::finished;
}

}  // namespace nsimplex::training
