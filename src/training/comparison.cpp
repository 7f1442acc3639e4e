#include "training/comparison.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "training/evaluate.h"
#include "training/learner.h"
#include "training/parameters.h"
#include "training/statistics.h"
#include "training/stopwatch.h"

namespace nsimplex::training {
namespace {

constexpr int64_t kMassWindows = 8;  // validation windows that the retained mass is measured on

// An arm in training.
struct Contender {
  std::unique_ptr<Learner> learner;
  int64_t steps = 0;
  std::vector<double> seconds;  // of every step
  double loss_sum = 0.0, auxiliary_sum = 0.0;
  bool has_auxiliary = false;
  int64_t loss_steps = 0;
  ArmResult result;
};

// Weights that an earlier arm has under the same name and in the same shape are taken from it.
void share_first_weights(std::vector<Contender>& contenders) {
  std::map<std::string, at::Tensor> first;
  for (Contender& contender : contenders) {
    for (const io::NamedTensor& each : named_parameters(*contender.learner->model())) {
      const auto [known, added] = first.try_emplace(each.name, each.tensor);
      if (added || known->second.sizes() != each.tensor.sizes()) continue;
      const at::NoGradGuard no_grad;
      at::Tensor(each.tensor).copy_(known->second);
    }
  }
}

std::vector<Contender> make_contenders(const std::vector<Arm>& arms,
                                       const TrainingOptions& training, c10::Device device) {
  std::vector<Contender> contenders;
  for (const Arm& arm : arms) {
    Contender contender;
    TrainingOptions own = training;
    if (arm.steps > 0) own.steps = arm.steps;
    contender.steps = own.steps;
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(training.seed);
    contender.learner = std::make_unique<Learner>(arm.model, own, device, generator);
    contender.result.parameters = parameter_count(*contender.learner->model());
    contenders.push_back(std::move(contender));
  }
  share_first_weights(contenders);
  return contenders;
}

void update(Contender& contender, int64_t step, const std::vector<data::Batch>& batches) {
  const Stopwatch watch;
  const StepLoss loss = contender.learner->update(step, batches);
  contender.seconds.push_back(watch.seconds());
  contender.loss_sum += loss.cross_entropy;
  contender.auxiliary_sum += loss.auxiliary.value_or(0.0);
  contender.has_auxiliary = loss.auxiliary.has_value();
  ++contender.loss_steps;
}

// Validates, and closes the interval since the last point.
ArmPoint measure(Contender& contender, int64_t step, const TrainingOptions& training,
                 const Corpus& corpus, int64_t context) {
  ArmPoint point;
  const double steps = static_cast<double>(contender.loss_steps);
  point.step = step;
  point.train_loss = contender.loss_sum / steps;
  if (contender.has_auxiliary) point.auxiliary_loss = contender.auxiliary_sum / steps;
  point.val_loss = evaluate(contender.learner->model(), corpus.tokens, corpus.split.validation,
                            context, training.eval_tokens)
                       .loss;
  point.seconds = median(contender.seconds) * static_cast<double>(step);
  contender.loss_sum = contender.auxiliary_sum = 0.0;
  contender.loss_steps = 0;
  contender.result.auxiliary_loss = point.auxiliary_loss;
  contender.result.curve.push_back({step, point.val_loss});
  return point;
}

// Mean over the layers that choose keys, on windows spread over the validation text.
std::optional<double> retained_mass(LanguageModel& model, const Corpus& corpus, int64_t context,
                                    c10::Device device) {
  const data::Slice slice = corpus.split.validation;
  const int64_t room = slice.size() - context - 1;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < kMassWindows; ++i) {
    starts.push_back(slice.begin + i * std::max<int64_t>(room, 0) / kMassWindows);
  }
  if (room < 0) return std::nullopt;
  const data::Batch batch = data::gather(corpus.tokens, starts, context);
  const std::vector<double> masses = model->retained_mass(batch.inputs.to(device));
  if (masses.empty()) return std::nullopt;
  return std::accumulate(masses.begin(), masses.end(), 0.0) / static_cast<double>(masses.size());
}

// The order in which arms take their turns goes round, so that none is always the first to see a
// batch.
template <class Body>
void by_turns(std::vector<Contender>& contenders, int64_t step, Body&& body) {
  for (size_t turn = 0; turn < contenders.size(); ++turn) {
    const size_t arm = (static_cast<size_t>(step) + turn) % contenders.size();
    if (step <= contenders[arm].steps) body(arm, contenders[arm]);
  }
}

}  // namespace

std::vector<ArmResult> train_arms(const std::vector<Arm>& arms, const TrainingOptions& training,
                                  const Corpus& corpus, c10::Device device,
                                  const ComparisonEvents& events) {
  std::vector<Contender> contenders = make_contenders(arms, training, device);
  const int64_t context = arms.front().model.context;
  data::BatchSampler sampler(corpus.tokens, corpus.split.train, training.batch, context,
                             training.seed);
  int64_t last = 0, done = 0;
  for (const Contender& each : contenders) last = std::max(last, each.steps);
  std::vector<data::Batch> batches(static_cast<size_t>(training.accumulate));
  for (int64_t step = 1; step <= last; ++step) {
    for (data::Batch& batch : batches) batch = sampler.next();
    by_turns(contenders, step, [&](size_t arm, Contender& contender) {
      update(contender, step, batches);
      const double loss = contender.loss_sum / static_cast<double>(contender.loss_steps);
      if (events.step) events.step(++done, loss);
      const bool due = training.eval_every > 0 && step % training.eval_every == 0;
      if (!due && step != contender.steps) return;
      ArmPoint point = measure(contender, step, training, corpus, context);
      point.arm = arm;
      if (events.point) events.point(point);
    });
  }
  std::vector<ArmResult> results;
  for (Contender& contender : contenders) {
    ArmResult& result = contender.result;
    result.steps = contender.steps;
    result.seconds_per_step = median(contender.seconds);
    result.tokens_per_second = static_cast<double>(training.batch * training.accumulate * context) /
                               result.seconds_per_step;
    result.retained_mass = retained_mass(contender.learner->model(), corpus, context, device);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<double> time_steps(const std::vector<Arm>& arms, const TrainingOptions& training,
                               const Corpus& corpus, c10::Device device, int64_t steps) {
  TrainingOptions settled = training;
  settled.indexer_warmup = 0;
  std::vector<Contender> contenders = make_contenders(arms, settled, device);
  data::BatchSampler sampler(corpus.tokens, corpus.split.train, training.batch,
                             arms.front().model.context, training.seed);
  std::vector<data::Batch> batches(static_cast<size_t>(training.accumulate));
  for (int64_t step = 1; step <= steps; ++step) {
    for (data::Batch& batch : batches) batch = sampler.next();
    by_turns(contenders, step,
             [&](size_t, Contender& contender) { update(contender, step, batches); });
  }
  std::vector<double> seconds;
  for (const Contender& each : contenders) seconds.push_back(median(each.seconds));
  return seconds;
}

}  // namespace nsimplex::training
