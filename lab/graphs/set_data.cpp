// Reads sets of points with labelled parts, and draws simulated jets.

#include "lab/graphs/set_data.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <numbers>

#include "data/observations.h"
#include "io/input_file.h"
#include "support/random.h"

namespace nsimplex::data {

using at::Tensor;

LabelledSets read_labelled_sets(const std::string& path) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  if (!source.starts_with(io::kZipMagic)) source.fail("expected an npz file");
  const io::Npz npz(source);
  LabelledSets sets;
  const io::Array points = npz.read("points"), labels = npz.read("labels");
  expect_dimensions(points, 2);
  expect_dimensions(labels, 1);
  expect_rows(labels, points.shape[0], "point");
  sets.points =
      at::tensor(finite_numbers(points), at::kFloat).view({points.shape[0], points.shape[1]});
  sets.labels = at::tensor(labels.integers(), at::kLong);
  sets.node_offsets =
      at::tensor(read_offsets(npz, "offsets", points.shape[0], "points"), at::kLong);
  sets.kinds = at::empty({0}, at::kLong);
  if (!npz.has("kinds")) return sets;
  const io::Array kinds = npz.read("kinds");
  expect_dimensions(kinds, 1);
  expect_rows(kinds, sets.size(), "set");
  const std::vector<int64_t> numbers = kinds.integers();
  for (const int64_t kind : numbers) {
    if (kind < 0) kinds.fail("expected numbers from 0 on, got " + std::to_string(kind));
  }
  sets.kinds = at::tensor(numbers, at::kLong);
  return sets;
}

LabelledSets select_sets(const LabelledSets& sets, const Tensor& numbers) {
  const auto offsets = sets.node_offsets.accessor<int64_t, 1>();
  const auto chosen = numbers.accessor<int64_t, 1>();
  std::vector<int64_t> points, node_offsets = {0};
  for (int64_t i = 0; i < chosen.size(0); ++i) {
    for (int64_t p = offsets[chosen[i]]; p < offsets[chosen[i] + 1]; ++p) points.push_back(p);
    node_offsets.push_back(std::ssize(points));
  }
  const Tensor index = at::tensor(points, at::kLong);
  return {sets.points.index_select(0, index), at::tensor(node_offsets, at::kLong),
          sets.labels.index_select(0, index),
          sets.kinds.numel() == 0 ? sets.kinds : sets.kinds.index_select(0, numbers)};
}

namespace {

constexpr double kCharmFlight = 2.0, kBottomFlight = 4.0;            // mean, mm
constexpr double kSpread = 0.15;                                     // of tracks around their jet
constexpr double kTransverseError = 0.03, kLongitudinalError = 0.1;  // mm

struct Jet {
  double azimuth, pseudorapidity, momentum;
  int64_t tracks;
};

// Distances along the jet of its vertices.
std::vector<double> draw_vertices(JetKind kind, RandomStream& draws) {
  std::vector<double> distances = {0.0};
  if (kind == JetKind::bottom) distances.push_back(kBottomFlight * draws.exponential());
  if (kind != JetKind::light) {
    distances.push_back(distances.back() + kCharmFlight * draws.exponential());
  }
  return distances;
}

// A straight line from a point at `distance` along the jet, described at its closest approach to
// the origin.
std::array<float, kJetFeatures> draw_track(const Jet& jet, double distance, RandomStream& draws) {
  const double azimuth = jet.azimuth + kSpread * draws.normal();
  const double pseudorapidity = jet.pseudorapidity + kSpread * draws.normal();
  const double cotangent = std::sinh(pseudorapidity);
  const double share = draws.exponential() / static_cast<double>(jet.tracks);
  const double momentum = 0.5 + share * jet.momentum;
  const double charge = draws.below(2) == 0 ? -1.0 : 1.0;
  // Along the jet in the transverse plane, and along the beam.
  const double across = distance / std::cosh(jet.pseudorapidity);
  const double along = distance * std::tanh(jet.pseudorapidity);
  const double turn = azimuth - jet.azimuth;
  const double transverse = across * std::sin(turn) + kTransverseError * draws.normal();
  const double longitudinal =
      along - across * std::cos(turn) * cotangent + kLongitudinalError * draws.normal();
  const auto scaled = [](double value) { return static_cast<float>(value); };
  return {scaled(transverse / 0.3),
          scaled(longitudinal / 0.5),
          scaled(std::remainder(azimuth, 2 * std::numbers::pi)),
          scaled(cotangent / 2),
          scaled(std::log(momentum) - 1.5),
          scaled(charge),
          scaled(std::log(jet.momentum) - 4),
          scaled(jet.pseudorapidity),
          scaled(std::remainder(jet.azimuth, 2 * std::numbers::pi)),
          scaled((static_cast<double>(jet.tracks) - 8) / 4)};
}

}  // namespace

LabelledSets synthetic_vertices(int64_t sets, uint64_t seed) {
  std::vector<float> features;
  std::vector<int64_t> offsets = {0}, labels, kinds;
  for (int64_t set = 0; set < sets; ++set) {
    RandomStream draws(random_bits(seed, static_cast<uint64_t>(set)));
    const auto kind = static_cast<JetKind>(set % kJetKinds);
    const Jet jet{.azimuth = (2 * draws.unit() - 1) * std::numbers::pi,
                  .pseudorapidity = 3 * draws.unit() - 1.5,
                  .momentum = 20 + 60 * draws.exponential(),
                  .tracks = 2 + draws.below(kMostTracks - 1)};
    const std::vector<double> vertices = draw_vertices(kind, draws);
    for (int64_t track = 0; track < jet.tracks; ++track) {
      const int64_t vertex = draws.below(std::ssize(vertices));
      const auto row = draw_track(jet, vertices[vertex], draws);
      features.insert(features.end(), row.begin(), row.end());
      labels.push_back(vertex);
    }
    offsets.push_back(std::ssize(labels));
    kinds.push_back(static_cast<int64_t>(kind));
  }
  return {at::tensor(features, at::kFloat).view({-1, kJetFeatures}), at::tensor(offsets, at::kLong),
          at::tensor(labels, at::kLong), at::tensor(kinds, at::kLong)};
}

}  // namespace nsimplex::data
