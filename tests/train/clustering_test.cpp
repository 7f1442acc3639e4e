#include "train/feature_study.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace nsimplex::training {
namespace {

using at::Tensor;

TEST(KMeans, FindsClustersThatAreApart) {
  at::manual_seed(1);
  const Tensor truth = at::arange(90, at::kLong).remainder(3);
  const Tensor centres = at::tensor({0.0, 0.0, 10.0, 0.0, 0.0, 10.0}, at::kDouble).view({3, 2});
  const Tensor x = centres.index_select(0, truth) + 0.5 * at::randn({90, 2}, at::kDouble);
  const Tensor found = k_means(x, 3, 7);
  EXPECT_NEAR(normalised_mutual_information(found, truth), 1.0, 1e-12);
  EXPECT_GT(silhouette(x, found), 0.8);
  EXPECT_TRUE(at::equal(found, k_means(x, 3, 7)));
}

TEST(KMeans, FewerDifferentRowsThanClusters) {
  const Tensor x = at::tensor({1.0, 1.0, 2.0, 2.0}, at::kDouble).unsqueeze(1);
  const Tensor found = k_means(x, 3, 1);
  EXPECT_EQ(found[0].item<int64_t>(), found[1].item<int64_t>());
  EXPECT_NE(found[0].item<int64_t>(), found[2].item<int64_t>());
}

TEST(NormalisedMutualInformation, ByHand) {
  const Tensor a = at::tensor({0, 0, 1, 1}, at::kLong);
  EXPECT_NEAR(normalised_mutual_information(a, 1 - a), 1.0, 1e-12);
  EXPECT_NEAR(normalised_mutual_information(a, at::tensor({0, 1, 0, 1}, at::kLong)), 0.0, 1e-12);
  EXPECT_EQ(normalised_mutual_information(at::zeros({3}, at::kLong), at::zeros({3}, at::kLong)),
            1.0);
  // U = {0, 0, 1, 1}, V = {0, 0, 0, 1}: H(U) = log 2, H(V), H(U, V) from 1/2, 1/4, 1/4.
  const double u = std::log(2.0), v = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  const double joint = 0.5 * std::log(2.0) + 0.5 * std::log(4.0);
  EXPECT_NEAR(normalised_mutual_information(a, at::tensor({0, 0, 0, 1}, at::kLong)),
              2 * (u + v - joint) / (u + v), 1e-12);
}

TEST(Silhouette, ByHand) {
  // Points 0, 1 | 4, and a row alone in its label counts 0.
  const Tensor x = at::tensor({0.0, 1.0, 4.0}, at::kDouble).unsqueeze(1);
  const double expected = ((4.0 - 1.0) / 4.0 + (3.0 - 1.0) / 3.0) / 3.0;
  EXPECT_NEAR(silhouette(x, at::tensor({0, 0, 1}, at::kLong)), expected, 1e-12);
}

TEST(PrincipalComponents, KeepDistances) {
  at::manual_seed(2);
  const Tensor flat = at::randn({20, 2}, at::kDouble).matmul(at::randn({2, 7}, at::kDouble));
  const Tensor components = principal_components(flat, 2);
  EXPECT_LT((at::cdist(components, components) - at::cdist(flat, flat)).abs().max().item<double>(),
            1e-6);
  EXPECT_EQ(principal_components(flat, 50).size(1), 7);
}

}  // namespace
}  // namespace nsimplex::training
