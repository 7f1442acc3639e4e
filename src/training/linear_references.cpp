#include "training/linear_references.h"

#include <ATen/ATen.h>
#include <torch/optim/lbfgs.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace nsimplex::training {
namespace {

using at::Tensor;

constexpr int64_t kFolds = 5;

// Weights [M, C] and the bias [C] below them, [M + 1, C].
class Logistic {
 public:
  Logistic(int64_t columns, int64_t classes)
      : weights_(at::zeros({columns + 1, classes}, at::kDouble).set_requires_grad(true)) {}

  // From where it is: strengths that fall make every fit a short way from the one before.
  void fit(const Tensor& x, const Tensor& labels, double strength) {
    constexpr int kSteps = 200;
    torch::optim::LBFGS optimizer({weights_}, torch::optim::LBFGSOptions(1.0)
                                                  .max_iter(kSteps)
                                                  .tolerance_grad(1e-7)
                                                  .tolerance_change(1e-10)
                                                  .history_size(10)
                                                  .line_search_fn("strong_wolfe"));
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss =
          at::cross_entropy_loss(logits(x), labels) + strength / 2 * slopes().square().sum();
      loss.backward();
      return loss;
    });
  }

  Tensor logits(const Tensor& x) const {
    return at::addmm(weights_.select(0, weights_.size(0) - 1), x, slopes());
  }

 private:
  Tensor slopes() const { return weights_.narrow(0, 0, weights_.size(0) - 1); }

  Tensor weights_;
};

// The part of each row, 0 .. kFolds - 1: rows of a class go to the parts in turn.
Tensor folds_of(const Tensor& labels, int64_t classes) {
  std::vector<int64_t> next(static_cast<size_t>(classes));
  const Tensor folds = at::empty_like(labels);
  for (int64_t row = 0; row < labels.numel(); ++row) {
    int64_t& of_class = next[static_cast<size_t>(labels[row].item<int64_t>())];
    folds[row] = of_class++ % kFolds;
  }
  return folds;
}

// By the mean of each column and its deviation in x, which a constant column does not have.
std::pair<Tensor, Tensor> scaled(const Tensor& x, const Tensor& judge) {
  const Tensor mean = x.mean(0), deviation = x.std(0, /*unbiased=*/false);
  const Tensor divisor = deviation.masked_fill(deviation.eq(0), 1);
  return {(x - mean) / divisor, (judge - mean) / divisor};
}

}  // namespace

LinearAnswers logistic_regression(const Tensor& x, const Tensor& labels, int64_t classes,
                                  const Tensor& judge, const std::function<void()>& checkpoint) {
  const auto [columns, asked] = scaled(x, judge);
  const std::vector<double> strengths{1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
  std::vector<double> errors(strengths.size());
  const Tensor folds = folds_of(labels, classes);
  for (int64_t fold = 0; fold < kFolds; ++fold) {
    const Tensor out = folds.eq(fold).nonzero().squeeze(1),
                 in = folds.ne(fold).nonzero().squeeze(1);
    if (out.numel() == 0 || in.numel() == 0) continue;
    Logistic model(columns.size(1), classes);
    for (size_t i = 0; i < strengths.size(); ++i) {
      if (checkpoint) checkpoint();
      model.fit(columns.index_select(0, in), labels.index_select(0, in), strengths[i]);
      const at::NoGradGuard no_grad;
      errors[i] += at::cross_entropy_loss(model.logits(columns.index_select(0, out)),
                                          labels.index_select(0, out), {}, at::Reduction::Sum)
                       .item<double>();
    }
  }
  const auto best =
      static_cast<size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
  Logistic model(columns.size(1), classes);
  model.fit(columns, labels, strengths[best]);
  const at::NoGradGuard no_grad;
  return {model.logits(asked).argmax(1), strengths[best]};
}

LinearAnswers ridge_regression(const Tensor& x, const Tensor& numbers, const Tensor& judge) {
  const auto [columns, asked] = scaled(x, judge);
  const auto rows = static_cast<double>(columns.size(0));
  const Tensor mean = numbers.mean(), centred = numbers - mean;
  const auto [u, s, v] = at::linalg_svd(columns, /*full_matrices=*/false);
  const Tensor squares = s.square(), part = u.t().mv(centred);
  LinearAnswers best;
  double least = std::numeric_limits<double>::infinity();
  for (double strength = 100.0; strength > 0.5e-5; strength /= 10) {
    const Tensor kept = squares / (squares + rows * strength);
    // The error of a row that is left out is its own over 1 - h, its share in its own answer.
    const Tensor own = u.square().mv(kept) + 1 / rows;
    const Tensor left_out = (centred - u.mv(kept * part)) / (1 - own).clamp_min(1e-12);
    const double error = left_out.square().mean().item<double>();
    if (best.answers.defined() && !(error < least)) continue;
    least = error;
    const Tensor weights = v.t().mv(s / (squares + rows * strength) * part);
    best = {asked.mv(weights) + mean, strength};
  }
  return best;
}

}  // namespace nsimplex::training
