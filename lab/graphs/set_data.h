// Declares sets of points that consist of parts.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "support/names.h"

/// Sets of points that consist of parts, for models that predict which points belong together.
namespace nsimplex::data {

/// B sets one after the other, in the layout of a TupleBatch's nodes. The partition as a graph is
/// label_cliques(labels, node_offsets).
struct LabelledSets {
  at::Tensor points;        ///< fp32 [n, d]
  at::Tensor node_offsets;  ///< int64 [B + 1], from 0 to n
  at::Tensor labels;        ///< int64 [n]: points of a set with the same label form a part
  at::Tensor kinds;         ///< int64 [B]: the kind of each set, for reports; [0] for none

  int64_t size() const { return node_offsets.size(0) - 1; }  ///< B
};

/// Reads sets from an npz with the arrays
///
///     points   [n, d]   numbers, finite
///     offsets  [B + 1]  integers: set b has the points offsets[b] to offsets[b + 1] - 1
///     labels   [n]      integers of any size
///     kinds    [B]      integers from 0 on; optional
///
/// Throws InputError, with one line that names the file and the array, if an array is missing, does
/// not fit the others or has invalid contents.
LabelledSets read_labelled_sets(const std::string& path);

/// The sets with these numbers, in this order.
LabelledSets select_sets(const LabelledSets& sets, const at::Tensor& numbers);

/// The decays of a jet, which are the `kinds` of synthetic_vertices(). light: all tracks come from
/// the collision. charm: some come from one displaced vertex. bottom: some come from a displaced
/// vertex and some from a second one beyond it.
enum class JetKind : int64_t { light = 0, charm = 1, bottom = 2 };
inline constexpr int64_t kJetKinds = 3;

inline constexpr int64_t kJetFeatures = 10;
inline constexpr int64_t kMostTracks = 14;

/// Synthetic jets, as a substitute for simulated ones that this project has no copy of. Results on
/// them cannot be compared with published ones. Each jet is a set of 2 to 14 tracks; the tracks of
/// one vertex are a part. Kinds alternate: light, charm, bottom.
///
/// A jet flies in a random direction. The collision is at the origin; a charm decay lies a
/// distance exponential with mean 2 mm along the jet, a bottom decay one of mean 4 mm, with a charm
/// decay another 2 mm beyond. Tracks are straight lines from their vertex, spread about the jet by
/// a normal of 0.15 in azimuth and pseudorapidity. Features, each scaled to about unit size: the
/// transverse and longitudinal distance of closest approach to the collision, smeared by 0.03 and
/// 0.1 mm; azimuth, cotangent of the polar angle, logarithm of the transverse momentum, charge;
/// logarithm of the jet's transverse momentum, its pseudorapidity, azimuth, and the number of its
/// tracks.
///
/// The sets depend only on the seed; a set does not depend on their number.
LabelledSets synthetic_vertices(int64_t sets, uint64_t seed);

}  // namespace nsimplex::data

namespace nsimplex {

template <>
inline constexpr Names<data::JetKind, 3> kNames<data::JetKind>{{{"light", data::JetKind::light},
                                                                {"charm", data::JetKind::charm},
                                                                {"bottom", data::JetKind::bottom}}};

}  // namespace nsimplex
