#include "data/labelled_sets.h"

#include <ATen/ATen.h>

#include "data/npz_arrays.h"
#include "io/file_bytes.h"

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

}  // namespace nsimplex::data
