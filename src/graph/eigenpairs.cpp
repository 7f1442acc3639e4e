// Computes the lowest eigenvalues and eigenvectors of sparse symmetric matrices.

#include "graph/eigenpairs.h"

#include <Spectra/SymEigsSolver.h>
#include <Eigen/SparseCholesky>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace nsimplex::graph {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// A factor is thin if it has at most this many times the entries of its matrix.
constexpr int64_t kThinFactor = 16;
// The shift is below the spectrum, so the inverted matrix is positive definite. It is near the
// spectrum, so that the lowest eigenvalues (5e-9 apart for a chain of 30000 nodes) have very
// different inverses.
constexpr double kShift = -1e-6;
constexpr double kTolerance = 1e-10;
constexpr int kRestarts = 1000;
constexpr int64_t kBasis = 32;  // fewest Lanczos vectors; more of them need fewer restarts

// A factorisation that estimates its size before it is computed.
struct Factor : Eigen::SimplicialLDLT<SparseMatrix> {
  int64_t planned_entries() const { return m_matrix.nonZeros(); }
  bool is_thin(const SparseMatrix& of) const {
    return planned_entries() <= kThinFactor * of.nonZeros();
  }
};

// A transformed matrix: the lowest eigenvalues become the largest, and none is below 0.
class Inverse {
 public:
  explicit Inverse(const SparseMatrix& matrix) : shifted_(matrix) {
    for (int64_t i = 0; i < matrix.rows(); ++i) shifted_.coeffRef(i, i) -= kShift;
    shifted_.makeCompressed();
    factor_.analyzePattern(shifted_);
  }

  bool is_thin() const { return factor_.is_thin(shifted_); }
  void factorize() { factor_.factorize(shifted_); }

  VectorXd apply(const Eigen::Ref<const VectorXd>& x) const { return factor_.solve(x); }
  double original(double value) const { return 1 / value + kShift; }

 private:
  SparseMatrix shifted_;
  Factor factor_;
};

class Flipped {
 public:
  Flipped(const SparseMatrix& matrix, double highest) : matrix_(matrix), highest_(highest) {}

  VectorXd apply(const Eigen::Ref<const VectorXd>& x) const { return highest_ * x - matrix_ * x; }
  double original(double value) const { return highest_ - value; }

 private:
  const SparseMatrix& matrix_;
  double highest_;
};

// The matrix for Spectra: a transformed matrix in which the pairs found so far have eigenvalue 0.
template <class Transformed>
class Deflated {
 public:
  using Scalar = double;

  Deflated(const Transformed& matrix, const Eigenpairs& found, int64_t rows)
      : matrix_(matrix), found_(found), rows_(rows) {}

  int64_t rows() const { return rows_; }
  int64_t cols() const { return rows_; }
  void perform_op(const double* in, double* out) const {
    const Eigen::Map<const VectorXd> x(in, rows_);
    Eigen::Map<VectorXd> y(out, rows_);
    y = matrix_.apply(x);
    if (found_.values.size() == 0) return;
    const VectorXd shares = found_.vectors.transpose() * x;
    y -= found_.vectors * found_.values.cwiseProduct(shares);
  }

 private:
  const Transformed& matrix_;
  const Eigenpairs& found_;
  int64_t rows_;
};

// The largest eigenpairs of a transformed matrix, largest first.
template <class Transformed>
class Search {
 public:
  Search(const Transformed& matrix, int64_t rows) : matrix_(matrix), rows_(rows) {
    found_.vectors.resize(rows, 0);
  }

  std::optional<Eigenpairs> run(int64_t count) {
    if (!add(count)) return std::nullopt;
    // An iteration starts from one vector and finds only one vector of a repeated eigenvalue. So
    // the rest of the space is searched until nothing in it comes before the last of `count`.
    while (true) {
      const double last = found_.values[count - 1];
      if (!add(1)) return std::nullopt;
      if (newest_ <= last * (1 + kTolerance)) break;
    }
    return Eigenpairs{found_.values.head(count), found_.vectors.leftCols(count)};
  }

 private:
  bool add(int64_t count) {
    const Deflated<Transformed> rest(matrix_, found_, rows_);
    Spectra::SymEigsSolver<Deflated<Transformed>> solver(
        const_cast<Deflated<Transformed>&>(rest), count,
        std::min(rows_, std::max(2 * count + 1, kBasis)));
    solver.init();
    solver.compute(Spectra::SortRule::LargestAlge, kRestarts, kTolerance);
    if (solver.info() != Spectra::CompInfo::Successful) return false;
    newest_ = solver.eigenvalues().maxCoeff();

    VectorXd values(found_.values.size() + count);
    values << found_.values, solver.eigenvalues();
    MatrixXd vectors(rows_, values.size());
    vectors << found_.vectors, solver.eigenvectors();
    std::vector<int64_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return values[a] > values[b] || (values[a] == values[b] && a < b);
    });
    found_ = {values(order), vectors(Eigen::all, order)};
    return true;
  }

  const Transformed& matrix_;
  int64_t rows_;
  Eigenpairs found_;
  double newest_ = 0;
};

template <class Transformed>
std::optional<Eigenpairs> search(const Transformed& matrix, int64_t rows, int64_t count) {
  auto pairs = Search(matrix, rows).run(count);
  if (pairs) {
    for (double& value : pairs->values) value = matrix.original(value);
  }
  return pairs;
}

Eigenpairs dense_eigenpairs(const SparseMatrix& matrix, int64_t count) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver{MatrixXd(matrix)};
  if (solver.info() != Eigen::Success) throw std::runtime_error("eigenvalues did not converge");
  return {solver.eigenvalues().head(count), solver.eigenvectors().leftCols(count)};
}

// The number of eigenvalues below a number. It equals the number of negative entries on the
// diagonal of a factor (Sylvester's law of inertia).
int64_t eigenvalues_below(double number, const SparseMatrix& matrix, Factor& factor) {
  double aside = 0;  // used if an entry of the diagonal is exactly 0
  for (int attempt = 0; attempt < 8; ++attempt) {
    factor.setShift(-number * (1 + aside));
    factor.factorize(matrix);
    if (factor.info() == Eigen::Success) return (factor.vectorD().array() < 0).count();
    aside = aside == 0 ? 1e-13 : 4 * aside;
  }
  throw std::runtime_error("eigenvalues did not converge");
}

}  // namespace

Eigenpairs lowest_eigenpairs(const SparseMatrix& matrix, int64_t count, double highest) {
  const int64_t rows = matrix.rows();
  if (rows <= kDenseRows || 2 * count > rows) return dense_eigenpairs(matrix, count);
  Inverse inverse(matrix);
  const bool thin = inverse.is_thin();
  std::optional<Eigenpairs> pairs;
  if (!thin) pairs = search(Flipped(matrix, highest), rows, count);
  if (!pairs) {
    inverse.factorize();
    pairs = search(inverse, rows, count);
  }
  if (!pairs) throw std::runtime_error("eigenvalues did not converge");
  return *std::move(pairs);
}

double second_eigenvalue(const SparseMatrix& matrix, double highest) {
  Factor factor;
  if (matrix.rows() > kDenseRows) factor.analyzePattern(matrix);
  if (matrix.rows() <= kDenseRows || !factor.is_thin(matrix)) {
    return lowest_eigenpairs(matrix, 2, highest).values[1];
  }
  // Not one half, because 1 is an eigenvalue of bipartite graphs, often many times.
  constexpr double kShare = 0.4877;
  double low = 0, high = highest;
  while (high - low > std::max(1e-12 * high, 1e-15)) {
    const double middle = low + kShare * (high - low);
    (eigenvalues_below(middle, matrix, factor) >= 2 ? high : low) = middle;
  }
  return (low + high) / 2;
}

}  // namespace nsimplex::graph
