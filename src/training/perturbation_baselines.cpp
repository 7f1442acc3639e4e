#include "training/perturbation_baselines.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "support/error.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

constexpr int64_t kComponents = 10;

constexpr std::array<double, 8> kStrengths{1e2, 1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5};

// One, and what each feature has of the first principal components of the rows, by their
// deviations.
Tensor places_of_features(const Tensor& rows) {
  const Tensor centred = rows.to(at::kDouble) - rows.to(at::kDouble).mean(0);
  const auto [values, vectors] =
      at::linalg_eigh(centred.t().matmul(centred) / static_cast<double>(rows.size(0)));
  const int64_t features = rows.size(1), kept = std::min(kComponents, features);
  // Eigenvalues ascend.
  const Tensor loadings = vectors.narrow(1, features - kept, kept) *
                          values.narrow(0, features - kept, kept).clamp_min(0).sqrt();
  return at::cat({at::ones({features, 1}, at::kDouble), loadings}, 1);
}

// Ridge regressions of the same x [P, 1 + K], whose first column has no penalty, for every strength.
struct Ridges {
  Tensor weights;  // [strengths, 1 + K, columns]
  Tensor errors;   // [strengths]: squares of rows that are left out one by one, summed
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
    // The error of a row that is left out is its own over 1 - h, its share in its own answer.
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
  // What is done to a target says nothing of how it answers when another one is the target.
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
    // What is left out of a single row leaves nothing to learn from.
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
