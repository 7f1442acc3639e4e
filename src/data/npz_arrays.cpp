#include "data/npz_arrays.h"

#include <cmath>

namespace nsimplex::data {

void expect_dimensions(const io::Array& array, size_t dimensions) {
  if (array.shape.size() == dimensions) return;
  array.fail("expected " + std::to_string(dimensions) +
             (dimensions == 1 ? " dimension" : " dimensions") + ", got shape " +
             array.shape_text());
}

void expect_rows(const io::Array& array, int64_t rows, const char* of) {
  if (!array.shape.empty() && array.shape[0] == rows) return;
  array.fail("expected " + std::to_string(rows) + " rows, one for each " + of + ", got shape " +
             array.shape_text());
}

std::vector<int64_t> read_integers(const io::Npz& npz, const std::string& name) {
  const io::Array array = npz.read(name);
  expect_dimensions(array, 1);
  return array.integers();
}

std::vector<int64_t> read_offsets(const io::Npz& npz, const std::string& name, int64_t rows,
                                  const char* of) {
  const io::Array array = npz.read(name);
  expect_dimensions(array, 1);
  std::vector<int64_t> offsets = array.integers();
  if (offsets.empty() || offsets.front() != 0) array.fail("expected 0 first");
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    array.fail("expected numbers that do not fall, got " + std::to_string(offsets[i]) + " after " +
               std::to_string(offsets[i - 1]));
  }
  if (offsets.back() != rows) {
    array.fail(std::string("expected the number of ") + of + ", " + std::to_string(rows) +
               ", last, got " + std::to_string(offsets.back()));
  }
  return offsets;
}

std::vector<double> finite_numbers(const io::Array& array) {
  std::vector<double> values = array.doubles();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const int64_t row = static_cast<int64_t>(i) * array.shape[0] / std::ssize(values);
    array.fail("row " + std::to_string(row) + ": expected finite numbers, got " +
               std::to_string(values[i]));
  }
  return values;
}

}  // namespace nsimplex::data
