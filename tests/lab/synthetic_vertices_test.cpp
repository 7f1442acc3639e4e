#include "lab/graphs/set_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace nsimplex::data {
namespace {

TEST(SyntheticVertices, AreSetsOfTracks) {
  const LabelledSets sets = synthetic_vertices(600, 1);
  ASSERT_EQ(sets.size(), 600);
  const at::Tensor sizes = sets.node_offsets.diff();
  EXPECT_EQ(sizes.min().item<int64_t>(), 2);
  EXPECT_EQ(sizes.max().item<int64_t>(), kMostTracks);
  EXPECT_EQ(sets.points.size(1), kJetFeatures);
  EXPECT_TRUE(sets.points.isfinite().all().item<bool>());
  // Of about unit size, as a model likes its inputs.
  EXPECT_LT(sets.points.square().mean(0).max().item<double>(), 100.0);
  for (int64_t set = 0; set < 600; ++set) {
    const int64_t kind = sets.kinds[set].item<int64_t>();
    EXPECT_EQ(kind, set % kJetKinds);
    const at::Tensor labels = sets.labels.slice(0, sets.node_offsets[set].item<int64_t>(),
                                                sets.node_offsets[set + 1].item<int64_t>());
    EXPECT_LE(labels.max().item<int64_t>(), kind) << "a " << name_of(JetKind(kind)) << " jet";
  }
}

TEST(SyntheticVertices, DependOnTheSeedAlone) {
  const LabelledSets few = synthetic_vertices(10, 4), many = synthetic_vertices(40, 4);
  EXPECT_TRUE(few.points.equal(many.points.slice(0, 0, few.points.size(0))));
  EXPECT_TRUE(few.labels.equal(many.labels.slice(0, 0, few.labels.size(0))));
  EXPECT_FALSE(few.points.equal(synthetic_vertices(10, 5).points));
}

// Tracks of the collision pass it within the smearing, displaced ones often do not: without that
// there would be nothing to learn.
TEST(SyntheticVertices, TellDisplacedTracksByTheirDistance) {
  const LabelledSets sets = synthetic_vertices(3000, 2);
  const at::Tensor transverse = sets.points.select(1, 0) * 0.3, displaced = sets.labels > 0;
  const at::Tensor prompt = transverse.masked_select(displaced.logical_not());
  EXPECT_NEAR(prompt.std().item<double>(), 0.03, 0.001);
  EXPECT_GT(transverse.masked_select(displaced).std().item<double>(), 0.2);
}

}  // namespace
}  // namespace nsimplex::data
