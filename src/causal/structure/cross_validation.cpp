#include "causal/structure/cross_validation.h"

#include <Eigen/Cholesky>

#include <numeric>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kParts = 5;

}  // namespace

CrossValidation::CrossValidation(int64_t rows, uint64_t seed)
    : parts_(static_cast<size_t>(std::min(kParts, rows))) {
  std::vector<int64_t> shuffled(static_cast<size_t>(rows));
  std::iota(shuffled.begin(), shuffled.end(), int64_t{0});
  RandomStream random(seed);
  for (size_t k = shuffled.size(); k > 1; --k) {
    std::swap(shuffled[k - 1],
              shuffled[static_cast<size_t>(random.below(static_cast<int64_t>(k)))]);
  }
  for (size_t k = 0; k < shuffled.size(); ++k) parts_[k % parts_.size()].push_back(shuffled[k]);
}

CrossValidation::Columns CrossValidation::errors(const Columns& features, const Columns& outputs,
                                                 double ridge) const {
  const int64_t count = features.cols();
  std::vector<Columns> given, squares, mixed;  // of each part
  Columns square = Columns::Zero(count, count), mix = Columns::Zero(count, outputs.cols());
  for (const std::vector<int64_t>& part : parts_) {
    given.push_back(features(part, Eigen::all));
    squares.push_back(Columns::Zero(count, count));
    squares.back().selfadjointView<Eigen::Lower>().rankUpdate(given.back().transpose());
    mixed.push_back(given.back().transpose() * outputs(part, Eigen::all));
    square += squares.back();
    mix += mixed.back();
  }
  Columns errors = outputs;
  for (size_t k = 0; k < parts_.size(); ++k) {
    const auto others = static_cast<double>(features.rows() - std::ssize(parts_[k]));
    Columns gram = square - squares[k];
    gram.diagonal().array() += ridge * others;
    const Columns coefficients = gram.selfadjointView<Eigen::Lower>().llt().solve(mix - mixed[k]);
    errors(parts_[k], Eigen::all) -= given[k] * coefficients;
  }
  return errors;
}

}  // namespace nsimplex::causal
