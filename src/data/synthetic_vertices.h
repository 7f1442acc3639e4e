#pragma once

#include <cstdint>

#include "data/labelled_sets.h"

namespace nsimplex::data {

/// Which decays a jet has, the `kinds` of synthetic_vertices(): all tracks from the collision; some
/// from one displaced vertex; some from a displaced vertex and some from a second one beyond it.
enum class JetKind : int64_t { light = 0, charm = 1, bottom = 2 };
inline constexpr int64_t kJetKinds = 3;
const char* name_of(JetKind kind);

inline constexpr int64_t kJetFeatures = 10;
inline constexpr int64_t kMostTracks = 14;

/// Made-up jets, a stand-in for simulated ones that this project has no copy of: figures on them
/// compare with nothing published. Each is a set of 2 to 14 tracks; its parts are the tracks of one
/// vertex. Kinds come by turns, light, charm, bottom.
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
/// Depends on the seed alone; a set does not depend on how many there are.
LabelledSets synthetic_vertices(int64_t sets, uint64_t seed);

}  // namespace nsimplex::data
