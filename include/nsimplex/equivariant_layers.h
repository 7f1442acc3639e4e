#pragma once

#include <nsimplex/equivariant_plan.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

namespace nsimplex {

struct EquivariantLinearOptions {
  TensorKind input, output;
  int64_t in_channels = 0, out_channels = 0;
  ClassSet classes = ClassSet::all;
  Pooling pooling = Pooling::mean;
  bool bias = true;
};

/// L_{k->l}, or with ClassSet::light its lightweight form, as a module: equivariant_linear() and
/// equivariant_linear_sparse() with parameters `weight` [classes, C, D], normal with variance 1 /
/// (3 classes C) at first, and `bias` [bias classes, D], zero at first.
///
/// Errors: c10::ValueError for orders that do not fit, or a plan of other kinds or classes.
class NSIMPLEX_API EquivariantLinearImpl : public torch::nn::Cloneable<EquivariantLinearImpl> {
 public:
  explicit EquivariantLinearImpl(const EquivariantLinearOptions& options);

  /// Dense: x [B, n, .., n, C] -> [B, n, .., n, D].
  at::Tensor forward(const at::Tensor& x,
                     const std::optional<at::Tensor>& node_counts = std::nullopt,
                     std::optional<int64_t> nodes = std::nullopt);

  /// On lists of tuples: x [m, C] -> [m', D].
  at::Tensor forward(const at::Tensor& x, const EquivariantPlan& plan);

  void reset() override;
  void reset_parameters();

  const EquivariantLinearOptions& options() const { return options_; }

 private:
  std::optional<at::Tensor> bias() const;

  EquivariantLinearOptions options_;
  at::Tensor weight_, bias_;
};
TORCH_MODULE(EquivariantLinear);

}  // namespace nsimplex
