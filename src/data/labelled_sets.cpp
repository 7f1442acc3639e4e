#include "data/labelled_sets.h"

#include <ATen/ATen.h>

#include <cmath>

#include "io/mapped_file.h"
#include "io/npz.h"

namespace nsimplex::data {

using at::Tensor;

namespace {

Tensor to_tensor(const std::vector<int64_t>& numbers) { return at::tensor(numbers, at::kLong); }

std::vector<int64_t> integers(const io::Array& array) {
  if (array.shape.size() != 1) array.fail("expected one dimension, got " + array.shape_text());
  return array.integers();
}

Tensor read_points(const io::Array& array) {
  if (array.shape.size() != 2) array.fail("expected shape [n, d], got " + array.shape_text());
  const std::vector<double> values = array.doubles();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    array.fail("row " + std::to_string(static_cast<int64_t>(i) / array.shape[1]) +
               ": expected finite numbers, got " + std::to_string(values[i]));
  }
  return at::tensor(values, at::kDouble).to(at::kFloat).view({array.shape[0], array.shape[1]});
}

void expect_count(const io::Array& array, int64_t got, int64_t count, const char* of) {
  if (got == count) return;
  array.fail("expected " + std::to_string(count) + " numbers, one for each " + of + ", got " +
             std::to_string(got));
}

void check_offsets(const io::Array& array, const std::vector<int64_t>& offsets, int64_t points) {
  if (offsets.empty() || offsets.front() != 0) array.fail("expected 0 first");
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    array.fail("expected numbers that do not fall, got " + std::to_string(offsets[i]) + " after " +
               std::to_string(offsets[i - 1]));
  }
  if (offsets.back() == points) return;
  array.fail("expected the number of points, " + std::to_string(points) + ", last, got " +
             std::to_string(offsets.back()));
}

}  // namespace

LabelledSets read_labelled_sets(const std::string& path) {
  const io::MappedFile file(path);
  const io::Source source{path, file.bytes()};
  if (!source.starts_with(io::kZipMagic)) source.fail("expected an npz file");
  const io::Npz npz(source);
  LabelledSets sets;
  sets.points = read_points(npz.read("points"));
  const io::Array offset_array = npz.read("offsets"), label_array = npz.read("labels");
  const std::vector<int64_t> offsets = integers(offset_array), labels = integers(label_array);
  check_offsets(offset_array, offsets, sets.points.size(0));
  expect_count(label_array, std::ssize(labels), sets.points.size(0), "point");
  sets.node_offsets = to_tensor(offsets);
  sets.labels = to_tensor(labels);
  sets.kinds = at::empty({0}, at::kLong);
  if (npz.has("kinds")) {
    const io::Array kind_array = npz.read("kinds");
    const std::vector<int64_t> kinds = integers(kind_array);
    expect_count(kind_array, std::ssize(kinds), sets.size(), "set");
    for (const int64_t kind : kinds) {
      if (kind < 0) kind_array.fail("expected numbers from 0 on, got " + std::to_string(kind));
    }
    sets.kinds = to_tensor(kinds);
  }
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
  const Tensor index = to_tensor(points);
  return {sets.points.index_select(0, index), to_tensor(node_offsets),
          sets.labels.index_select(0, index),
          sets.kinds.numel() == 0 ? sets.kinds : sets.kinds.index_select(0, numbers)};
}

}  // namespace nsimplex::data
