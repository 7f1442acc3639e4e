// Declares tables of observations, their labels and bins.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/npz.h"
#include "io/table.h"

namespace nsimplex::data {

/// Maps measured values to numbers of bins, like the code books of single-cell transformers.
///
/// Zeros are bin 0. The other values of the table from which the bins are made are cut at their
/// quantiles into `count` bins of equal size, 1 .. count, the same for all columns. Values of
/// another table outside the range go to the first or last bin. Equal values stay together, so a
/// bin of a table with few different values may be empty.
class ValueBins {
 public:
  /// From `values`, floating [N, M], all finite. Throws InputError if all of them are zero.
  ValueBins(const at::Tensor& values, int64_t count);

  /// From the edges() of earlier bins.
  explicit ValueBins(at::Tensor edges);

  /// int64 of the same shape, 0 .. count.
  at::Tensor operator()(const at::Tensor& values) const;

  /// float64 [count - 1], ascending: v belongs to bin 1 + the number of edges <= v.
  const at::Tensor& edges() const { return edges_; }

 private:
  at::Tensor edges_;
};

}  // namespace nsimplex::data

// Arrays of an npz file that must fit together. Errors are an InputError with one line that names
// the file and the array.

namespace nsimplex::data {

/// Fails if an array has another number of dimensions.
void expect_dimensions(const io::Array& array, size_t dimensions);

/// Fails unless it has `rows` rows, one per item that `of` names.
void expect_rows(const io::Array& array, int64_t rows, const char* of);

/// Integers of one dimension.
std::vector<int64_t> read_integers(const io::Npz& npz, const std::string& name);

/// Offsets into `rows` rows of the items that `of` names: they rise from 0 to that number.
std::vector<int64_t> read_offsets(const io::Npz& npz, const std::string& name, int64_t rows,
                                  const char* of);

/// Numbers, all finite, of any shape.
std::vector<double> finite_numbers(const io::Array& array);

/// Tables of observations by features (cells by genes, for example), and labels of each row.

struct Observations {
  at::Tensor values;                  ///< float64 [N, M]; NaN where missing
  std::vector<std::string> features;  ///< names of the columns; x0, x1, .. if a file has none
  std::vector<std::string> names;     ///< of the rows; empty if the file has none
  io::TextReading reading;            ///< decisions made while reading a text
};

/// Reads npy, npz or a text, like io::read_table(). Throws InputError with file and line.
Observations read_observations(const std::string& path, const io::TableOptions& options = {});

/// The same for a table that was already parsed.
Observations observations_of(io::Table table);

struct Labels {
  at::Tensor numbers;                ///< int64 [N], into `classes`
  std::vector<std::string> classes;  ///< in the order of their text
  io::TextReading reading = {};      ///< decisions made while reading them
};

/// Reads one label per row of `observations` from a text with a header. It has one column of labels
/// in the order of the rows. If the observations have names, it may instead have a column of names
/// and one of labels, with rows in any order. Throws InputError, with file and line, for rows
/// without a label, two labels for a name, another number of rows, and fewer than two classes.
Labels read_labels(const std::string& path, const Observations& observations);

/// Normalises single-cell counts: removes rows with fewer than `least` nonzero values, scales each
/// row to a sum of 10^4, and takes log(1 + x). Returns the numbers of the remaining rows, int64.
at::Tensor normalise_counts(Observations& observations, int64_t least = 200);

/// The same scaling without removing rows, for new rows that must be predicted.
at::Tensor scaled_counts(const at::Tensor& values);

/// Removes columns that fewer than `share` of the rows have. Then every missing value becomes the
/// mean of its column over the `neighbours` nearest rows that have it. Nearness is the mean squared
/// difference of the columns that both rows have, divided by their deviations (ties: the earlier
/// row). If no other row shares a column, the value is the mean of the column. Time O(N^2 M).
void impute_missing(Observations& observations, double share = 0.1, int64_t neighbours = 5);

/// Numbers of the `count` columns with the largest variance, ascending; all columns if there are
/// fewer.
at::Tensor most_variable(const at::Tensor& values, int64_t count);

/// Rows in two parts, with ascending numbers. The first has round(share * size) of each class, at
/// least one.
struct SplitRows {
  at::Tensor first, second;
};
SplitRows stratified_split(const Labels& labels, double share, uint64_t seed);

}  // namespace nsimplex::data
