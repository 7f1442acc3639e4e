#include "training/perturbation_task.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "support/error.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

int64_t below(int64_t bound, const at::Generator& generator) {
  return at::randint(bound, {1}, generator, at::kLong).item<int64_t>();
}

// `count` different pairs of the given features that are not among `taken`, which they join.
std::vector<std::vector<int64_t>> draw_pairs(const std::vector<int64_t>& features, int64_t count,
                                             std::set<std::vector<int64_t>>& taken,
                                             const at::Generator& generator) {
  std::vector<std::vector<int64_t>> pairs;
  while (std::ssize(pairs) < count) {
    const int64_t a = features[static_cast<size_t>(below(std::ssize(features), generator))];
    const int64_t b = features[static_cast<size_t>(below(std::ssize(features), generator))];
    std::vector<int64_t> pair{std::min(a, b), std::max(a, b)};
    if (a != b && taken.insert(pair).second) pairs.push_back(std::move(pair));
  }
  return pairs;
}

// Unperturbed rows with the new values of some features, and which these are.
std::pair<Tensor, Tensor> intervene(Tensor rows, const std::vector<int64_t>& features,
                                    double dose) {
  const Tensor marked = at::zeros(rows.sizes(), at::kBool);
  rows = rows.clone();
  for (const int64_t feature : features) {
    rows.select(1, feature).fill_(dose);
    marked.select(1, feature).fill_(true);
  }
  return {rows, marked};
}

// Squared error of a mean answer [M] over the features that change most in truth.
double error_of(const Perturbation& asked, const Tensor& answer, const Tensor& before,
                int64_t most_changed) {
  const Tensor truth = asked.after.mean(0);
  const Tensor change = (truth - before).abs();
  for (const int64_t feature : asked.features) change[feature].fill_(-1);
  const Tensor judged = std::get<1>(change.topk(most_changed));
  return (answer - truth).index_select(0, judged).square().mean().item<double>();
}

double mean_or_nan(const std::vector<double>& errors) {
  double sum = 0.0;
  for (const double error : errors) sum += error;
  return errors.empty() ? std::nan("") : sum / static_cast<double>(errors.size());
}

// `answer` gives the mean [M] of what becomes of the rows that answers start from.
PerturbationScores scores_by(const PerturbationData& data, const PerturbationOptions& options,
                             const std::function<Tensor(const Perturbation&)>& answer) {
  const at::NoGradGuard no_grad;
  const Tensor before = data.before();
  std::set<int64_t> seen;
  for (const Perturbation& each : data.learned) {
    if (each.features.size() == 1) seen.insert(each.features[0]);
  }
  std::vector<double> singles, doubles;
  std::array<std::vector<double>, 3> by_seen;
  for (const Perturbation& each : data.singles) {
    singles.push_back(error_of(each, answer(each), before, options.most_changed));
  }
  for (const Perturbation& each : data.doubles) {
    doubles.push_back(error_of(each, answer(each), before, options.most_changed));
    by_seen[seen.count(each.features[0]) + seen.count(each.features[1])].push_back(doubles.back());
  }
  return {mean_or_nan(singles),
          mean_or_nan(doubles),
          {mean_or_nan(by_seen[0]), mean_or_nan(by_seen[1]), mean_or_nan(by_seen[2])}};
}

void require_option(bool ok, const std::string& why) {
  if (!ok) throw InputError(why);
}

}  // namespace

void check_asking(const PerturbationOptions& o, int64_t features) {
  require_option(o.unseen > 0 && o.unseen < 1,
                 fmt::format("unseen: expected a share between 0 and 1, got {}", o.unseen));
  require_option(o.most_changed >= 1 && o.most_changed <= features - 2,
                 fmt::format("most changed: expected 1 to {} of the features, got {}", features - 2,
                             o.most_changed));
}

void check(const PerturbationOptions& o) {
  const int64_t features = o.simulation.nodes;
  require_option(features >= 3, fmt::format("nodes: expected at least 3, got {}", features));
  require_option(o.rows >= 1 && o.rows <= o.simulation.observations,
                 fmt::format("rows: expected 1 to {} observations, got {}",
                             o.simulation.observations, o.rows));
  check_asking(o, features);
  const int64_t pairs = features * (features - 1) / 2;
  require_option(o.doubles >= 0 && o.asked >= 1 && o.doubles + o.asked <= pairs / 4,
                 fmt::format("doubles: expected at most {} pairs of both kinds, got {} and {}",
                             pairs / 4, o.doubles, o.asked));
}

PerturbationData draw_perturbations(const PerturbationOptions& options, uint64_t seed) {
  check(options);
  CausalSimulationOptions simulation = options.simulation;
  simulation.seed = static_cast<int64_t>(seed);
  const CausalSimulation plain = simulate_causal(simulation);
  const Tensor mean = plain.table.mean(0), deviation = plain.table.std(0, /*unbiased=*/false);
  const auto scaled = [&](const Tensor& rows) {
    return ((rows - mean) / deviation).to(at::kFloat);
  };

  PerturbationData data{.table = plain.table,
                        .graph = plain.weights,
                        .control = scaled(plain.table),
                        .dose = options.dose,
                        .starts = options.rows};
  const auto perturbed = [&](std::vector<int64_t> features) {
    simulation.interventions.clear();
    for (const int64_t feature : features) {
      simulation.interventions.push_back(
          {feature, (mean[feature] + options.dose * deviation[feature]).item<double>()});
    }
    return Perturbation{std::move(features),
                        scaled(simulate_causal(simulation).table.narrow(0, 0, options.rows)),
                        at::arange(options.rows, at::kLong)};
  };

  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const Tensor order = at::randperm(simulation.nodes, generator, at::kLong);
  const int64_t held_out =
      std::max<int64_t>(1, std::llround(options.unseen * static_cast<double>(simulation.nodes)));
  std::vector<int64_t> all, seen;
  for (int64_t place = 0; place < simulation.nodes; ++place) {
    const int64_t feature = order[place].item<int64_t>();
    all.push_back(feature);
    if (place < held_out) {
      data.singles.push_back(perturbed({feature}));
    } else {
      seen.push_back(feature);
      data.learned.push_back(perturbed({feature}));
    }
  }
  std::set<std::vector<int64_t>> taken;
  for (auto& pair : draw_pairs(seen, options.doubles, taken, generator)) {
    data.learned.push_back(perturbed(std::move(pair)));
  }
  for (auto& pair : draw_pairs(all, options.asked, taken, generator)) {
    data.doubles.push_back(perturbed(std::move(pair)));
  }
  return data;
}

PerturbationScores perturbation_scores(FeatureTransformer& model, const PerturbationData& data,
                                       const PerturbationOptions& options,
                                       const std::function<void()>& checkpoint) {
  constexpr int64_t kBatch = 256;
  const Tensor rows = data.control.narrow(0, 0, data.starts);
  return scores_by(data, options, [&](const Perturbation& each) {
    const auto [x, marked] = intervene(rows, each.features, data.dose);
    std::vector<Tensor> answers;
    for (int64_t begin = 0; begin < data.starts; begin += kBatch) {
      if (checkpoint) checkpoint();
      const int64_t count = std::min(kBatch, data.starts - begin);
      const Tensor hidden =
          model->forward(x.narrow(0, begin, count), std::nullopt, marked.narrow(0, begin, count));
      answers.push_back(model->reconstruct(hidden));
    }
    return at::cat(answers).mean(0);
  });
}

PerturbationScores response_scores(
    const PerturbationData& data, const PerturbationOptions& options,
    const std::function<Tensor(const std::vector<int64_t>& features)>& response) {
  const Tensor before = data.before();
  return scores_by(data, options, [&](const Perturbation& each) {
    return before + response(each.features).to(before.scalar_type());
  });
}

PerturbationScores unchanged_scores(const PerturbationData& data,
                                    const PerturbationOptions& options) {
  return response_scores(data, options, [&](const std::vector<int64_t>&) {
    return at::zeros({data.control.size(1)});
  });
}

void learn_perturbations(FeatureTransformer& model, const PerturbationData& data,
                         const FeatureTrainingOptions& options, uint64_t seed,
                         const FeatureEvents& events) {
  std::vector<Tensor> inputs, flags, outputs;
  for (const Perturbation& each : data.learned) {
    const Tensor rows = data.control.index_select(0, each.before);
    auto [x, marked] = intervene(rows, each.features, data.dose);
    inputs.push_back(x);
    flags.push_back(marked);
    outputs.push_back(each.after);
  }
  const Tensor x = at::cat(inputs), marked = at::cat(flags), after = at::cat(outputs);
  train_examples(
      *model, x.size(0), options, seed,
      [&](const Tensor& examples, const at::Generator&) {
        const Tensor hidden = model->forward(x.index_select(0, examples), std::nullopt,
                                             marked.index_select(0, examples));
        return at::mse_loss(model->reconstruct(hidden), after.index_select(0, examples));
      },
      events);
}

}  // namespace nsimplex::training
