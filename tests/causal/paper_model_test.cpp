#include "causal/structure/cape_structure.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace nsimplex::causal {
namespace {

using at::Tensor;

constexpr int64_t kColumns = 5;
constexpr double kRho = 3, kAlpha = 0.7;

Tensor some_table() {
  at::manual_seed(7);
  return at::randn({40, kColumns}, at::kDouble);
}

// Sets unknowns of a model without a derivative of it.
void assign(const Tensor& unknown, const Tensor& values) { unknown.detach().copy_(values); }

PaperModel some_model(StructureEstimator estimator, int64_t rank) {
  CausalFitOptions options{.estimator = estimator, .rank = rank};
  options.constraints.forbidden = {{0, 3}};
  options.constraints.required = {{1, 2}};
  return {kColumns, options};
}

TEST(PaperModel, FactorsHaveTheLossAndTheDerivativesOfTheirProduct) {
  const Tensor x = some_table();
  for (const int64_t rank : {2, 5, 40}) {  // below, at and above the number of columns
    const PaperModel dense = some_model(StructureEstimator::paper, rank);
    const PaperModel thin = some_model(StructureEstimator::paper_lowrank, rank);
    ASSERT_EQ(dense.graph_unknowns().size(), 1);
    ASSERT_EQ(thin.graph_unknowns().size(), 2);
    const Tensor a = dense.graph_unknowns()[0];
    const Tensor u = thin.graph_unknowns()[0], v = thin.graph_unknowns()[1];
    EXPECT_EQ(u.sizes(), at::IntArrayRef({kColumns, std::min(rank, kColumns)}));
    EXPECT_EQ(thin.graph().abs().max().item<double>(), 0);
    assign(u, 0.5 * at::randn(u.sizes(), at::kDouble));
    assign(v, 0.5 * at::randn(v.sizes(), at::kDouble));
    assign(a, at::matmul(u, v.t()));
    const Tensor dense_loss = dense.loss(x, kRho, kAlpha), loss = thin.loss(x, kRho, kAlpha);
    EXPECT_NEAR(loss.item<double>(), dense_loss.item<double>(), 1e-12);
    dense_loss.backward();
    loss.backward();
    EXPECT_TRUE(at::allclose(u.grad(), at::matmul(a.grad(), v), 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(v.grad(), at::matmul(a.grad().t(), u), 1e-9, 1e-9));
    EXPECT_EQ(a.grad()[0][3].item<double>(), 0);
    EXPECT_EQ(thin.graph()[0][3].item<double>(), 0);
    EXPECT_EQ(thin.graph()[2][1].item<double>(), 0);
    EXPECT_EQ(thin.graph().diagonal().abs().max().item<double>(), 0);
  }
}

TEST(PaperModel, DerivativesAreDifferencesOfTheLoss) {
  const Tensor x = some_table();
  for (const auto estimator : {StructureEstimator::paper, StructureEstimator::paper_lowrank}) {
    const PaperModel model = some_model(estimator, 3);
    for (const Tensor& unknown : model.graph_unknowns()) {
      assign(unknown, 0.5 * at::randn(unknown.sizes(), at::kDouble));
    }
    model.loss(x, kRho, kAlpha).backward();
    for (const Tensor& unknown : model.graph_unknowns()) {
      const Tensor entries = unknown.detach().view({-1});
      const Tensor slopes = unknown.grad().view({-1});
      for (int64_t i = 0; i < entries.numel(); ++i) {
        const double before = entries[i].item<double>(), step = 1e-6;
        const auto loss_at = [&](double value) {
          entries[i].fill_(value);
          return model.loss(x, kRho, kAlpha).item<double>();
        };
        const double difference = (loss_at(before + step) - loss_at(before - step)) / (2 * step);
        entries[i].fill_(before);
        const double slope = slopes[i].item<double>();
        EXPECT_NEAR(slope, difference, 1e-5 * (1 + std::abs(slope)));
      }
    }
  }
}

TEST(PaperModel, AcyclicityIsTheTraceOfAnExponential) {
  const Tensor graph = (0.5 * at::randn({4, 4}, at::kDouble)).requires_grad_();
  const Tensor value = PaperModel::acyclicity(graph);
  value.backward();
  const Tensor slopes = graph.grad().clone();
  graph.mutable_grad().zero_();
  const Tensor reference = at::linalg_matrix_exp(graph.square()).trace() - 4;
  reference.backward();
  EXPECT_NEAR(value.item<double>(), reference.item<double>(), 1e-12);
  EXPECT_TRUE(at::allclose(slopes, graph.grad(), 1e-10, 1e-10));
}

}  // namespace
}  // namespace nsimplex::causal
