#pragma once

#include <string>
#include <vector>

#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::io {

/// Tuples of nodes as a file lists them: in its order, repetitions included.
struct Tuples {
  int64_t width = 0;
  std::vector<int64_t> values;  ///< [count, width], one after the other

  /// Of typed tuples, how many nodes the type of each column has; empty otherwise. Node i of column
  /// c has the number i + type_sizes[0] + .. + type_sizes[c - 1] in `values`.
  std::vector<int64_t> type_sizes;

  TextReading reading;  ///< what was decided to read a text

  int64_t count() const { return width == 0 ? 0 : static_cast<int64_t>(values.size()) / width; }
  int64_t nodes() const;  ///< of all types, or one more than the largest node
};

struct TuplesOptions {
  std::string key;    ///< of npz: the array; "": train_data, test_data or the only one it can be
  int64_t width = 0;  ///< expected columns; 0: any
  TextOptions text = {};
};

/// Tuples from npz, npy, csv or tsv; which of them it is, the bytes say. Integers may come as
/// floating point numbers without fraction. An npz may hold nums_type, the number of nodes of each
/// column's type; then the columns count their nodes from 0, each for itself.
///
/// Fails for fractions, missing values, nodes below 0 or beyond their type, another width.
Tuples parse_tuples(const Source& source, const TuplesOptions& options = {});

/// parse_tuples() of a file.
Tuples read_tuples(const std::string& path, const TuplesOptions& options = {});

}  // namespace nsimplex::io
