// The collapse diagnostics of nsimplex/analysis.h and their operators.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/library.h>

#include <limits>

#include "analysis/residual.h"
#include "support/parallel.h"
#include "support/plain_tensor.h"

namespace nsimplex {

using at::Tensor;

namespace {

Tensor checked(const char* name, const Tensor& tokens) {
  TORCH_CHECK_TYPE(is_floating(tokens), "[", name,
                   "] tokens: expected floating point numbers, got ", tokens.scalar_type());
  TORCH_CHECK_VALUE(tokens.dim() >= 2, "[", name,
                    "] tokens: expected [.., tokens, channels], got shape ", tokens.sizes());
  return tokens.to(at::kDouble);
}

// The largest sum, or 0 for an empty dimension.
Tensor largest(const Tensor& sums) { return sums.size(-1) == 0 ? sums.sum(-1) : sums.amax(-1); }

Tensor centred(const Tensor& tokens) { return tokens - tokens.mean(-2, true); }

// The tokens, each divided by its largest number if its squares could overflow or vanish.
Tensor of_moderate_size(const Tensor& tokens) {
  if (tokens.size(-1) == 0) return tokens;
  const Tensor most = tokens.detach().abs().amax(-1, true);
  const Tensor moderate = (most > 1e-100).logical_and(most < 1e100);
  const Tensor kept = moderate.logical_or(most == 0).logical_or(most.isfinite().logical_not());
  return tokens / most.masked_fill(kept, 1);
}

}  // namespace

Tensor composite_norm(const Tensor& tokens) {
  const Tensor sizes = checked("composite_norm", tokens).abs();
  return largest(sizes.sum(-2)).sqrt() * largest(sizes.sum(-1)).sqrt();
}

Tensor mean_residual(const Tensor& tokens) { return centred(checked("mean_residual", tokens)); }

MinimalResidual minimal_residual(const Tensor& tokens, double tolerance) {
  const Tensor own = checked("minimal_residual", tokens.detach()).contiguous();
  TORCH_CHECK_VALUE(own.is_cpu(), "[minimal_residual] tokens: expected the CPU, got ",
                    own.device());
  TORCH_CHECK_VALUE(tolerance > 0, "[minimal_residual] tolerance: expected more than 0, got ",
                    tolerance);
  TORCH_CHECK_VALUE(own.isfinite().all().item<bool>(),
                    "[minimal_residual] tokens: expected finite numbers");
  const int64_t n = own.size(-2), d = own.size(-1);
  const at::IntArrayRef batch = own.sizes().slice(0, own.dim() - 2);
  std::vector<int64_t> offset_shape = batch.vec();
  offset_shape.push_back(d);
  const MinimalResidual result{at::empty(batch, own.options()), at::empty(batch, own.options()),
                               at::empty(offset_shape, own.options())};
  const double* values = own.const_data_ptr<double>();
  double* norms = result.norm.mutable_data_ptr<double>();
  double* lowers = result.lower.mutable_data_ptr<double>();
  double* offsets = result.offset.mutable_data_ptr<double>();
  parallel_tasks(result.norm.numel(), [&](int64_t i, int) {
    const Eigen::Map<const analysis::TokenMatrix> matrix(values + i * n * d, n, d);
    const analysis::ResidualMinimum found = analysis::minimal_residual(matrix, tolerance);
    norms[i] = found.norm;
    lowers[i] = found.lower;
    Eigen::Map<Eigen::VectorXd>(offsets + i * d, d) = found.offset;
  });
  return result;
}

Tensor effective_rank(const Tensor& tokens) {
  const Tensor own = checked("effective_rank", tokens);
  // The decomposition refuses a NaN or an infinity. The rank of a matrix that contains one is NaN.
  const Tensor bad = own.isfinite().flatten(-2).all(-1).logical_not();
  const Tensor values = at::linalg_svdvals(own.masked_fill(bad.unsqueeze(-1).unsqueeze(-1), 0));
  const Tensor sum = values.sum(-1, true);
  const Tensor shares = values / at::where(sum == 0, 1, sum);
  const Tensor entropy = -at::xlogy(shares, shares).sum(-1);
  const Tensor rank = at::where(sum.squeeze(-1) == 0, 0, entropy.exp());
  return rank.masked_fill(bad, std::numeric_limits<double>::quiet_NaN());
}

Tensor mean_cosine(const Tensor& tokens) {
  const Tensor own = of_moderate_size(checked("mean_cosine", tokens));
  const Tensor length = at::linalg_vector_norm(own, 2, {-1}, true);
  const Tensor units = own / at::where(length == 0, 1, length);
  // The cosines of all pairs sum to the square of the sum. The cosines of tokens with themselves
  // sum to the number of nonzero tokens.
  const Tensor pairs = units.sum(-2).square().sum(-1) - units.square().sum({-2, -1});
  const auto n = static_cast<double>(own.size(-2));
  return pairs / (n * (n - 1));
}

Tensor dirichlet_energy(const Tensor& tokens) {
  return 2 * centred(checked("dirichlet_energy", tokens)).square().sum({-2, -1});
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("composite_norm(Tensor tokens) -> Tensor", &composite_norm);
  m.def("mean_residual(Tensor tokens) -> Tensor", &mean_residual);
  m.def("effective_rank(Tensor tokens) -> Tensor", &effective_rank);
  m.def("mean_cosine(Tensor tokens) -> Tensor", &mean_cosine);
  m.def("dirichlet_energy(Tensor tokens) -> Tensor", &dirichlet_energy);
  m.def("minimal_residual(Tensor tokens, float tolerance) -> (Tensor, Tensor, Tensor)",
        [](const Tensor& tokens, double tolerance) {
          MinimalResidual found = minimal_residual(tokens, tolerance);
          return std::tuple(found.norm, found.lower, found.offset);
        });
}

}  // namespace nsimplex
