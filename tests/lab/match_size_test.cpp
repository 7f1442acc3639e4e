#include "lab/match/match_data.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <nsimplex/attention.h>
#include <nsimplex/sparse_attention.h>

#include <string>
#include <vector>

#include "lab/match/match_training.h"
#include "support/error.h"

namespace nsimplex::training {
namespace {

constexpr MatchSize kSize{.modulus = 37, .length = 8, .heads = 4, .dim = 24, .hidden = 70};

const std::vector<MatchArm> kArms{{1, 1},
                                  {2, 1},
                                  {3, 2},
                                  {1, 4},
                                  {1, 1, MatchTuples::topk, 3},
                                  {2, 2, MatchTuples::topk, 5},
                                  {2, 1, MatchTuples::path, 3},
                                  {3, 1, MatchTuples::path, 20}};

MatchModel model_of(const MatchArm& arm) {
  return {arm, kSize, HeadNorm::none, at::make_generator<at::CPUGeneratorImpl>(1)};
}

TEST(MatchSize, ParametersAreThoseOfTheModel) {
  for (const MatchArm& arm : kArms) {
    int64_t numbers = 0;
    for (const at::Tensor& parameter : model_of(arm).parameters()) numbers += parameter.numel();
    EXPECT_EQ(match_parameters(arm, kSize), numbers) << arm.order << " x " << arm.depth;
  }
}

// Forward operations of one layer's attention, from the operators' own counts.
double attention_forward(const MatchArm& arm) {
  const int64_t t = kSize.length, head_dim = kSize.dim / kSize.heads;
  const at::Tensor x = at::zeros({1, kSize.heads, t, head_dim});
  const std::vector<at::Tensor> axes(arm.order, x);
  if (arm.tuples == MatchTuples::dense) return attention_flops(x, axes, axes);
  const at::Tensor row = at::arange(std::min(arm.topk, t), at::kLong);
  SparseAttentionOptions options;
  options.pattern = arm.tuples == MatchTuples::path ? TuplePattern::path : TuplePattern::product;
  const double tuples = sparse_attention_tuples(x, axes, axes, row.expand({1, 1, t, row.size(0)}),
                                                std::nullopt, options);
  return 4.0 * static_cast<double>(head_dim) * tuples;
}

TEST(MatchSize, FlopsAreThoseOfTheWeightsAndTheOperators) {
  for (const MatchArm& arm : kArms) {
    double expected = 0, index_weights = 0;  // of all positions
    const double t = static_cast<double>(kSize.length);
    for (const auto& item : model_of(arm).named_parameters()) {
      const auto count = static_cast<double>(item.value().numel());
      if (item.value().dim() < 2 || item.key() == "embedding.weight") continue;
      const bool index = item.key().find("indexer") != std::string::npos;
      expected += (index ? 4 : 6) * t * count;
      index_weights += index ? count : 0;
    }
    const double forward = attention_forward(arm), layers = static_cast<double>(arm.depth);
    expected += layers * 4 * forward;
    if (index_weights > 0) {
      const double k = static_cast<double>(std::min(arm.topk, kSize.length)), channels = 4 * 16;
      expected += layers * (t * channels * (2 * t + 6 * k) + forward / 2);
    }
    EXPECT_DOUBLE_EQ(match_flops(arm, kSize) * t, expected) << arm.order << " x " << arm.depth;
  }
}

class Equal : public ::testing::TestWithParam<MatchEqual> {
 protected:
  static double cost(const MatchArm& arm, const MatchSize& size) {
    return GetParam() == MatchEqual::flops ? match_flops(arm, size)
                                           : static_cast<double>(match_parameters(arm, size));
  }
};

constexpr MatchSize kReference{.modulus = 37, .length = 8, .heads = 4, .dim = 96, .hidden = 384};

TEST_P(Equal, EveryArmCostsWhatTheReferenceDoesToHalfAHiddenUnit) {
  const MatchArm reference{.order = 3};
  for (const MatchArm& arm : kArms) {
    const MatchSize size = equal_size(arm, reference, kReference, GetParam());
    MatchSize wider = size;
    ++wider.hidden;
    const double unit = cost(arm, wider) - cost(arm, size);
    EXPECT_LE(std::abs(cost(arm, size) - cost(reference, kReference)), unit / 2 + 1e-6)
        << arm.order << " x " << arm.depth;
    EXPECT_EQ(size.dim % size.heads, 0);
    EXPECT_LE(size.dim, kReference.dim);
    EXPECT_GE(size.hidden, 3 * size.dim);
    // No wider one would do.
    if (size.dim == kReference.dim) continue;
    wider.dim = size.dim + size.heads;
    wider.hidden = 3 * wider.dim - 1;
    EXPECT_GT(cost(arm, wider), cost(reference, kReference) - unit);
  }
}

TEST_P(Equal, TheReferenceStaysAsItIs) {
  const MatchArm reference{.order = 2};
  const MatchSize size = equal_size(reference, reference, kReference, GetParam());
  EXPECT_EQ(size.dim, 96);
  EXPECT_EQ(size.hidden, 384);
}

TEST_P(Equal, MoreLayersThanFitAreRefused) {
  const MatchArm reference{.order = 1};
  EXPECT_THROW(equal_size({.order = 3, .depth = 4000}, reference, kReference, GetParam()),
               InputError);
}

INSTANTIATE_TEST_SUITE_P(Match, Equal, ::testing::Values(MatchEqual::parameters, MatchEqual::flops),
                         [](const auto& info) {
                           return info.param == MatchEqual::flops ? "Flops" : "Parameters";
                         });

TEST(MatchSize, LowerOrdersOfOneLayerHaveExactlyAsManyParameters) {
  const MatchArm reference{.order = 3};
  for (const int64_t order : {1, 2}) {
    const MatchArm arm{.order = order};
    const MatchSize size = equal_size(arm, reference, kReference, MatchEqual::parameters);
    EXPECT_EQ(size.dim, 96);
    EXPECT_EQ(size.hidden, (4 + 3 - order) * 96);
    EXPECT_EQ(match_parameters(arm, size), match_parameters(reference, kReference));
  }
}

}  // namespace
}  // namespace nsimplex::training
