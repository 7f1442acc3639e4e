#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/equivariant_layers.h>

#include "error_of.h"

namespace nsimplex {
namespace {

TEST(EquivariantClasses, AreNamedAndCounted) {
  const auto classes = equivariant_classes({2}, {1});
  ASSERT_EQ(static_cast<int64_t>(classes.size()), bell_number(3));
  std::vector<std::string> names;
  for (const auto& each : classes) names.push_back(partition_name(each.members.front(), 2));
  EXPECT_EQ(names, (std::vector<std::string>{"{i1 i2 j1}", "{i1 i2}{j1}", "{i1 j1}{i2}",
                                             "{i1}{i2 j1}", "{i1}{i2}{j1}"}));
  EXPECT_TRUE(classes[0].light());
  EXPECT_FALSE(classes[2].light());
  EXPECT_EQ(classes[4].key_only, 2);
  EXPECT_EQ(classes[4].query_only, 1);
}

// All pairs of three nodes, listed, are the dense tensor.
TEST(EquivariantLinear, OnACompleteListIsTheDenseLayer) {
  at::manual_seed(1);
  const at::Tensor pairs = at::cartesian_prod({at::arange(3), at::arange(3)});
  const TupleBatch list = tuple_batch(pairs, 3);
  const EquivariantPlan plan = equivariant_plan(list, list);
  const at::Tensor x = at::randn({1, 3, 3, 4}, at::kDouble);
  const at::Tensor weight = at::randn({15, 4, 5}, at::kDouble),
                   bias = at::randn({2, 5}, at::kDouble);
  const at::Tensor dense = equivariant_linear(x, weight, bias, {.input = {2}, .output = {2}});
  const at::Tensor sparse = equivariant_linear_sparse(x.view({9, 4}), weight, bias, plan);
  EXPECT_TRUE(at::allclose(dense.view({9, 5}), sparse, 1e-10, 1e-10));
}

TEST(EquivariantLinear, NamesWhatDoesNotFit) {
  const TupleBatch list = tuple_batch(at::arange(3).view({3, 1}), 3);
  const EquivariantPlan plan = equivariant_plan(list, list);
  const at::Tensor x = at::ones({3, 2}), weight = at::ones({3, 2, 2});
  EXPECT_THAT(error_of([&] { equivariant_linear_sparse(x, weight, {}, plan); }),
              ::testing::HasSubstr("weight: expected 2 classes, got 3"));
}

TEST(EquivariantLinear, IsAModule) {
  const TupleBatch list = tuple_batch(at::arange(4).view({4, 1}), 4);
  EquivariantLinear layer(
      EquivariantLinearOptions{.input = {1}, .output = {1}, .in_channels = 3, .out_channels = 2});
  const at::Tensor x = at::randn({4, 3});
  const at::Tensor sparse = layer->forward(x, equivariant_plan(list, list));
  EXPECT_TRUE(at::allclose(layer->forward(x.unsqueeze(0)).squeeze(0), sparse, 1e-5, 1e-6));
  EXPECT_EQ(layer->named_parameters()["weight"].sizes(), (std::vector<int64_t>{2, 3, 2}));
  EXPECT_EQ(layer->named_parameters()["bias"].sizes(), (std::vector<int64_t>{1, 2}));
  const auto copy = std::dynamic_pointer_cast<EquivariantLinearImpl>(layer->clone());
  EXPECT_TRUE(at::equal(copy->forward(x.unsqueeze(0)), layer->forward(x.unsqueeze(0))));
  const EquivariantPlan light = equivariant_plan(list, list, {.classes = ClassSet::light});
  EXPECT_THAT(error_of([&] { layer->forward(x, light); }), ::testing::HasSubstr("plan: expected"));
}

}  // namespace
}  // namespace nsimplex
