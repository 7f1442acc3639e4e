// Encoders of higher-order transformers in C++. Their arithmetic is tested from Python, whose
// modules call the same operators; here is what the C++ modules decide themselves.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <nsimplex/equivariant_layers.h>
#include <nsimplex/graph.h>

#include "nn/module_checks.h"

namespace nsimplex {
namespace {

TupleBatch path_of_three() {
  return edge_tuples(at::tensor({0, 1, 1, 2}, at::kLong).view({2, 2}), 3, {.loops = true}).batch;
}

EquivariantEncoderOptions options(int64_t output = 2) {
  EquivariantEncoderOptions options;
  options.attention.input = {2};
  options.attention.output = {output};
  options.attention.in_channels = 6;
  options.attention.out_channels = 8;
  options.attention.heads = 2;
  return options;
}

TEST(EquivariantEncoder, HasTheParametersOfThePythonModule) {
  EquivariantEncoder layer(options());
  EXPECT_THAT(test::names(*layer),
              testing::UnorderedElementsAre(
                  "attention.query_weight", "attention.query_bias", "attention.key_weight",
                  "attention.key_bias", "attention.value_weight", "attention.output_weight",
                  "attention.light.weight", "norm_attention.weight", "norm_attention.bias",
                  "norm_mlp.weight", "norm_mlp.bias", "mlp_in.weight", "mlp_in.bias",
                  "mlp_out.weight", "mlp_out.bias"));
}

TEST(EquivariantEncoder, GivesEveryOutputTupleARowAndEveryParameterAGradient) {
  const TupleBatch graph = path_of_three();
  const TupleBatch nodes = project_tuples(graph, 1);
  for (const AttentionForm form : {AttentionForm::softmax, AttentionForm::kernel}) {
    for (const MlpForm mlp : {MlpForm::lightweight, MlpForm::pointwise}) {
      EquivariantEncoderOptions own = options(1);
      own.attention.form = form;
      own.mlp = mlp;
      EquivariantEncoder layer(own);
      const at::Tensor x = at::randn({graph.size(), 6});
      const at::Tensor y = layer->forward(x, equivariant_encoder_plan(graph, nodes, own));
      EXPECT_EQ(y.sizes(), (std::vector<int64_t>{3, 8}));
      y.square().sum().backward();
      for (const auto& parameter : layer->named_parameters()) {
        ASSERT_TRUE(parameter->grad().defined()) << parameter.key();
        EXPECT_TRUE(parameter->grad().isfinite().all().item<bool>()) << parameter.key();
      }
    }
  }
}

TEST(EquivariantEncoder, SharesTheFeaturesOfAModel) {
  RandomFeatures features(4);
  EquivariantEncoderOptions own = options();
  own.attention.form = AttentionForm::kernel;
  EquivariantEncoder first(own, features), second(own, features);
  const at::Tensor before = features->directions().clone();
  features->redraw();
  EXPECT_FALSE(at::equal(before, features->directions()));
  EXPECT_TRUE(at::equal(first->named_buffers()["attention.features.directions"],
                        second->named_buffers()["attention.features.directions"]));
}

TEST(EquivariantEncoder, ALoopFreeOutputHasAPointwiseMlp) {
  EquivariantEncoderOptions own = options(3);
  own.attention.input = {1};
  own.attention.output = {3, Symmetry::loop_free};
  const TupleBatch nodes = complete_tuples(at::tensor({4}, at::kLong), 1);
  const TupleBatch triples = complete_tuples(at::tensor({4}, at::kLong), 3, Symmetry::loop_free);
  const EquivariantEncoderPlan plan = equivariant_encoder_plan(nodes, triples, own);
  EXPECT_FALSE(plan.mlp.has_value());
  ASSERT_EQ(plan.pattern_rows.size(), 1U);
  EXPECT_EQ(EquivariantEncoder(own)->forward(at::randn({4, 6}), plan).size(0), 24);
}

TEST(EquivariantEncoder, RefusesWhatDoesNotFit) {
  EquivariantEncoderOptions own = options();
  own.residual = true;
  EXPECT_THROW(EquivariantEncoder{own}, c10::ValueError);
  own = options();
  own.dropout = 1;
  EXPECT_THROW(EquivariantEncoder{own}, c10::ValueError);
  own = options();
  own.attention.heads = 3;
  EXPECT_THROW(EquivariantEncoder{own}, c10::ValueError);
  own = options();
  EXPECT_THROW(equivariant_encoder_plan(project_tuples(path_of_three(), 1), path_of_three(), own),
               c10::ValueError);
}

}  // namespace
}  // namespace nsimplex
