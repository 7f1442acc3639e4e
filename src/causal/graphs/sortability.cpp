#include "causal/graphs/sortability.h"

#include <Eigen/Cholesky>

#include <bit>
#include <limits>
#include <vector>

#include "causal/graphs/acyclic.h"

namespace nsimplex::causal {
namespace {

// Of the diagonal, so that a covariance without full rank can be inverted.
constexpr double kRidge = 1e-10;

// Sets of nodes, one a node, as rows of bits.
class NodeSets {
 public:
  explicit NodeSets(size_t nodes) : words_((nodes + 63) / 64), bits_(nodes * words_, 0) {}

  void insert(size_t set, size_t node) {
    bits_[set * words_ + node / 64] |= uint64_t{1} << node % 64;
  }
  void unite(size_t set, const NodeSets& others, size_t other) {
    for (size_t word = 0; word < words_; ++word) {
      bits_[set * words_ + word] |= others.bits_[other * words_ + word];
    }
  }
  template <class Visit>
  void each(size_t set, Visit&& visit) const {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t left = bits_[set * words_ + word]; left != 0; left &= left - 1) {
        visit(64 * word + static_cast<size_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

}  // namespace

Vector column_variances(TableView table) {
  const Eigen::RowVectorXd mean = table.colwise().mean();
  return (table.rowwise() - mean).colwise().squaredNorm().transpose() /
         static_cast<double>(table.rows());
}

Vector column_r2(TableView table) {
  const Eigen::RowVectorXd mean = table.colwise().mean();
  Matrix scaled = table.rowwise() - mean;
  const Eigen::RowVectorXd norms = scaled.colwise().norm();
  for (Eigen::Index column = 0; column < scaled.cols(); ++column) {
    if (norms(column) > 0.0) scaled.col(column) /= norms(column);
  }
  Matrix correlation = scaled.transpose() * scaled;
  correlation.diagonal().array() += kRidge;
  const Matrix inverse =
      correlation.llt().solve(Matrix::Identity(correlation.rows(), correlation.cols()));
  return 1.0 - inverse.diagonal().array().inverse();
}

double sortability(const Vector& numbers, const Matrix& graph) {
  const Neighbours effects = effects_of(graph);
  const size_t nodes = effects.size();
  NodeSets reached(nodes);  // by paths of k edges
  for (size_t node = 0; node < nodes; ++node) {
    for (const int64_t effect : effects[node]) reached.insert(node, static_cast<size_t>(effect));
  }
  int64_t pairs = 0;
  double ordered = 0.0;
  for (size_t length = 1; length < nodes; ++length) {
    const int64_t before = pairs;
    for (size_t node = 0; node < nodes; ++node) {
      const double number = numbers(static_cast<Eigen::Index>(node));
      reached.each(node, [&](size_t effect) {
        const double other = numbers(static_cast<Eigen::Index>(effect));
        ++pairs;
        ordered += number < other ? 1.0 : number == other ? 0.5 : 0.0;
      });
    }
    if (pairs == before) break;
    NodeSets further(nodes);
    for (size_t node = 0; node < nodes; ++node) {
      for (const int64_t effect : effects[node]) {
        further.unite(node, reached, static_cast<size_t>(effect));
      }
    }
    reached = std::move(further);
  }
  return pairs == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : ordered / static_cast<double>(pairs);
}

}  // namespace nsimplex::causal
