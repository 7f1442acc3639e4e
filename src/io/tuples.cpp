// Reads tuples of nodes from npz, npy, csv and tsv files.

#include "io/tuples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "io/edge_list.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/table.h"
#include "io/text.h"

namespace nsimplex::io {
namespace {

constexpr const char* kTypeSizes = "nums_type";

Tuples tuples_of(const Array& array) {
  if (array.shape.size() != 2) {
    array.fail("expected tuples of shape [rows, nodes], got shape " + array.shape_text());
  }
  return {array.shape[1], array.integers(), {}, {}};
}

// The array that holds the tuples: the requested one, or the one with a fitting name.
Array main_array(const Source& source, const Npz& file, const std::string& key) {
  if (!key.empty()) return file.read(key);
  const bool train = file.has("train_data"), test = file.has("test_data");
  if (train && test) source.fail("holds train_data and test_data: name one");
  if (train || test) return file.read(train ? "train_data" : "test_data");
  return file.read_matrix();
}

Tuples tuples_of_npz(const Source& source, const std::string& key) {
  const Npz file(source);
  const Array array = main_array(source, file, key);
  Tuples tuples = tuples_of(array);
  if (!file.has(kTypeSizes)) return tuples;

  const Array sizes = file.read(kTypeSizes);
  tuples.type_sizes = sizes.integers();
  if (std::ssize(tuples.type_sizes) != tuples.width) {
    sizes.fail("expected one number for each of " + std::to_string(tuples.width) +
               " columns, got shape " + sizes.shape_text());
  }
  int64_t first = 0;
  for (int64_t column = 0; column < tuples.width; ++column) {
    const int64_t size = tuples.type_sizes[column];
    if (size < 0 || size > INT64_MAX - first) {
      sizes.fail("expected numbers of nodes, got " + std::to_string(size));
    }
    for (size_t i = column; i < tuples.values.size(); i += tuples.width) {
      if (tuples.values[i] < 0 || tuples.values[i] >= size) {
        array.fail("row " + std::to_string(i / tuples.width) + ", column " +
                   std::to_string(column) + ": expected nodes 0 to " + std::to_string(size - 1) +
                   ", got " + std::to_string(tuples.values[i]));
      }
      tuples.values[i] += first;
    }
    first += size;
  }
  return tuples;
}

Tuples tuples_of_text(const Source& source, const TextOptions& options) {
  // Numbers are nodes here, never names of columns.
  const TextGrid grid(source, options, {.numeric_names = false});
  for (const std::string& name : grid.names()) {
    if (!names_weights(name)) continue;
    source.fail("column " + quoted_name(name) +
                ": expected nodes in all columns, got weights; leave it out, or read lists of "
                "edges, which may have weights");
  }
  Tuples tuples{grid.width(), {}, {}, grid.reading()};
  tuples.values.reserve(grid.rows() * grid.width());
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (int64_t column = 0; column < grid.width(); ++column) {
      if (const auto node = parse_integer(grid.at(row, column))) {
        tuples.values.push_back(*node);
        continue;
      }
      constexpr double kLargestExact = 0x1p53;
      const double value = number_at(grid, row, column, {.text = options, .allow_missing = false});
      if (value != std::trunc(value) || std::abs(value) > kLargestExact) {
        grid.fail_at(row, column, "expected an integer, got " + quoted_name(grid.at(row, column)));
      }
      tuples.values.push_back(static_cast<int64_t>(value));
    }
  }
  return tuples;
}

}  // namespace

int64_t Tuples::nodes() const {
  if (!type_sizes.empty()) return std::accumulate(type_sizes.begin(), type_sizes.end(), int64_t{0});
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end()) + 1;
}

Tuples parse_tuples(const Source& source, const TuplesOptions& options) {
  Tuples tuples = source.starts_with(kNpyMagic)   ? tuples_of(parse_npy(source))
                  : source.starts_with(kZipMagic) ? tuples_of_npz(source, options.key)
                                                  : tuples_of_text(source, options.text);
  if (tuples.width == 0) source.fail("tuples without nodes");
  if (options.width != 0 && tuples.width != options.width) {
    source.fail("expected tuples of " + std::to_string(options.width) + " nodes, got " +
                std::to_string(tuples.width));
  }
  for (size_t i = 0; i < tuples.values.size(); ++i) {
    if (tuples.values[i] < 0 || tuples.values[i] == INT64_MAX) {
      source.fail("row " + std::to_string(i / tuples.width) + ": expected nodes from 0 on, got " +
                  std::to_string(tuples.values[i]));
    }
  }
  return tuples;
}

Tuples read_tuples(const std::string& path, const TuplesOptions& options) {
  const FileBytes file(path);
  return parse_tuples({path, file.bytes()}, options);
}

}  // namespace nsimplex::io
