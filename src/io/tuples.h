// Declares lists of tuples of nodes as files hold them.

#pragma once

#include <string>
#include <vector>

#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::io {

/// Tuples of nodes as a file lists them, in its order, with repetitions.
struct Tuples {
  int64_t width = 0;
  std::vector<int64_t> values;  ///< [count, width], one after the other

  /// For typed tuples: the number of nodes of each column's type; empty otherwise. Node i of column
  /// c has the number i + type_sizes[0] + .. + type_sizes[c - 1] in `values`.
  std::vector<int64_t> type_sizes;

  TextReading reading;  ///< decisions made while reading a text

  int64_t count() const { return width == 0 ? 0 : static_cast<int64_t>(values.size()) / width; }
  int64_t nodes() const;  ///< of all types, or one more than the largest node
};

struct TuplesOptions {
  std::string key;    ///< the array of an npz; "": train_data, test_data or the only candidate
  int64_t width = 0;  ///< expected columns; 0: any
  TextOptions text = {};
};

/// Parses tuples from npz, npy, csv or tsv; the bytes determine which of them it is. Integers may
/// be stored as floating point numbers without a fraction. An npz may hold nums_type, the number of
/// nodes of each column's type. Then every column counts its nodes from 0.
///
/// Fails for fractions, missing values, nodes below 0 or beyond their type, and another width.
Tuples parse_tuples(const Source& source, const TuplesOptions& options = {});

/// parse_tuples() of a file.
Tuples read_tuples(const std::string& path, const TuplesOptions& options = {});

}  // namespace nsimplex::io
