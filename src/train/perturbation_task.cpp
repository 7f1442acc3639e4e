// The task of predicting interventions: simulated data, training, metrics and baselines.

#include "train/perturbation_task.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "support/error.h"
#include "support/require.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

int64_t below(int64_t bound, const at::Generator& generator) {
  return at::randint(bound, {1}, generator, at::kLong).item<int64_t>();
}

// Draws `count` different pairs of the given features that are not in `taken`, and adds them to it.
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

// Unperturbed rows with the new values of some features, and a mask of these.
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

// Squared error of a mean prediction [M] over the features that change most in truth.
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

// `answer` returns the mean [M] after the intervention on the rows from which predictions start.
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

}  // namespace

void check_asking(const PerturbationOptions& o, int64_t features) {
  require_argument(o.unseen > 0 && o.unseen < 1, "--test", "a share between 0 and 1", o.unseen);
  require(o.most_changed >= 1 && o.most_changed <= features - 2, "--most-changed: expected 1 to ",
          features - 2, " of the features, got ", o.most_changed);
}

void check(const PerturbationOptions& o) {
  const int64_t features = o.simulation.nodes;
  require_at_least("--nodes", 3, features);
  require(o.rows >= 1 && o.rows <= o.simulation.observations, "--rows: expected 1 to ",
          o.simulation.observations, " observations, got ", o.rows);
  check_asking(o, features);
  const int64_t pairs = features * (features - 1) / 2;
  require(o.doubles >= 0 && o.asked >= 1 && o.doubles + o.asked <= pairs / 4,
          "--doubles: expected 0 or more and, with --asked, at most ", pairs / 4, " pairs, got ",
          o.doubles, " and ", o.asked);
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
                         const FeatureEvents& events, Ranks& ranks) {
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
      [&](const Tensor& examples, Ranks::Rows own, const at::Generator&) -> PartialLoss {
        const double share = share_of(own.count, examples.numel());
        if (share == 0.0) return {{}, share};
        const Tensor rows = examples.narrow(0, own.begin, own.count);
        const Tensor hidden =
            model->forward(x.index_select(0, rows), std::nullopt, marked.index_select(0, rows));
        return {at::mse_loss(model->reconstruct(hidden), after.index_select(0, rows)), share};
      },
      events, ranks);
}

namespace {

using at::Tensor;

constexpr int64_t kComponents = 10;

constexpr std::array<double, 8> kStrengths{1e2, 1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5};

// A column of ones, and the loadings of each feature on the first principal components of the rows,
// scaled by their deviations.
Tensor places_of_features(const Tensor& rows) {
  const Tensor centred = rows.to(at::kDouble) - rows.to(at::kDouble).mean(0);
  const auto [values, vectors] =
      at::linalg_eigh(centred.t().matmul(centred) / static_cast<double>(rows.size(0)));
  const int64_t features = rows.size(1), kept = std::min(kComponents, features);
  // Eigenvalues are in ascending order.
  const Tensor loadings = vectors.narrow(1, features - kept, kept) *
                          values.narrow(0, features - kept, kept).clamp_min(0).sqrt();
  return at::cat({at::ones({features, 1}, at::kDouble), loadings}, 1);
}

// Ridge regressions of the same x [P, 1 + K] for every strength. The first column has no penalty.
struct Ridges {
  Tensor weights;  // [strengths, 1 + K, columns]
  Tensor errors;   // [strengths]: sums of leave-one-out squared errors
};

Ridges ridges(const Tensor& x, const Tensor& y) {
  const auto rows = static_cast<double>(x.size(0));
  const Tensor free = x.select(1, 0), places = x.narrow(1, 1, x.size(1) - 1);
  const Tensor length = free.square().sum();
  const auto rest = [&](const Tensor& z) { return z - at::outer(free, free.matmul(z) / length); };
  const Tensor centred = rest(y);
  const auto [u, s, v] = at::linalg_svd(rest(places), /*full_matrices=*/false);
  const Tensor squares = s.square(), part = u.t().matmul(centred);
  std::vector<Tensor> weights, errors;
  for (const double strength : kStrengths) {
    const Tensor shrunk = squares + rows * strength, kept = squares / shrunk;
    // The leave-one-out error of a row is its own error over 1 - h, with h the weight of the row in
    // its own prediction.
    const Tensor share = u.square().mv(kept) + free.square() / length;
    const Tensor left_out =
        (centred - u.matmul(kept.unsqueeze(1) * part)) / (1 - share).clamp_min(1e-12).unsqueeze(1);
    errors.push_back(left_out.square().sum());
    const Tensor slopes = v.t().matmul((s / shrunk).unsqueeze(1) * part);
    const Tensor constant = free.matmul(y - places.matmul(slopes)) / length;
    weights.push_back(at::cat({constant.unsqueeze(0), slopes}));
  }
  return {at::stack(weights), at::stack(errors)};
}

}  // namespace

PerturbationBaselines::PerturbationBaselines(const PerturbationData& data)
    : loadings_(places_of_features(data.control)) {
  if (data.learned.empty()) {
    throw InputError("expected an intervention to learn from, got none");
  }
  const Tensor before = data.before().to(at::kDouble);
  const auto count = std::ssize(data.learned);
  const Tensor responses = at::empty({count, before.size(0)}, at::kDouble);
  const Tensor own = at::zeros(responses.sizes(), at::kBool);
  for (int64_t row = 0; row < count; ++row) {
    const Perturbation& each = data.learned[static_cast<size_t>(row)];
    responses[row] = each.after.to(at::kDouble).mean(0) - before;
    for (const int64_t feature : each.features) own[row][feature].fill_(true);
    if (each.features.size() == 1) single_[each.features[0]] = responses[row].clone();
  }
  // The response of a target to its own intervention does not predict its response to others.
  const Tensor others = own.logical_not().to(at::kDouble);
  mean_ = (responses * others).sum(0) / others.sum(0).clamp_min(1);
  fit(data, responses, own);
}

Tensor PerturbationBaselines::place(const std::vector<int64_t>& features) const {
  return loadings_.index_select(0, at::tensor(features, at::kLong)).sum(0);
}

void PerturbationBaselines::fit(const PerturbationData& data, const Tensor& responses,
                                const Tensor& own) {
  std::vector<Tensor> places;
  for (const Perturbation& each : data.learned) places.push_back(place(each.features));
  const Tensor x = at::stack(places);
  const auto strengths = std::ssize(kStrengths);
  const Tensor weights = at::zeros({strengths, x.size(1), responses.size(1)}, at::kDouble);
  const Tensor errors = at::zeros({strengths}, at::kDouble);
  const auto add = [&](const Tensor& columns, const Tensor& rows) {
    // With a single row, leaving it out leaves nothing to learn from.
    if (columns.numel() == 0 || rows.numel() < 2) return;
    const Ridges fits =
        ridges(x.index_select(0, rows), responses.index_select(1, columns).index_select(0, rows));
    weights.index_copy_(2, columns, fits.weights);
    errors.add_(fits.errors);
  };
  const Tensor targeted = own.any(0);
  add(targeted.logical_not().nonzero().squeeze(1), at::arange(x.size(0), at::kLong));
  const Tensor columns = targeted.nonzero().squeeze(1);
  for (int64_t each = 0; each < columns.size(0); ++each) {
    const Tensor column = columns.narrow(0, each, 1);
    add(column, own.index_select(1, column).squeeze(1).logical_not().nonzero().squeeze(1));
  }
  weights_ = weights[errors.argmin().item<int64_t>()];
}

Tensor PerturbationBaselines::additive(const std::vector<int64_t>& features) const {
  if (features.size() != 2) return mean_;
  const auto first = single_.find(features[0]), second = single_.find(features[1]);
  if (first == single_.end() || second == single_.end()) return mean_;
  return first->second + second->second;
}

Tensor PerturbationBaselines::linear(const std::vector<int64_t>& features) const {
  return place(features).matmul(weights_);
}

const std::vector<std::string>& perturbation_baseline_names() {
  static const std::vector<std::string> names{"unchanged", "mean response", "additive", "linear"};
  return names;
}

PerturbationScores perturbation_baseline_scores(const std::string& name,
                                                const PerturbationData& data,
                                                const PerturbationOptions& options) {
  if (name == "unchanged") return unchanged_scores(data, options);
  const PerturbationBaselines baselines(data);
  return response_scores(data, options, [&](const std::vector<int64_t>& features) {
    if (name == "mean response") return baselines.mean();
    if (name == "additive") return baselines.additive(features);
    if (name == "linear") return baselines.linear(features);
    throw InputError("expected the name of a baseline, got " + name);
  });
}

}  // namespace nsimplex::training
