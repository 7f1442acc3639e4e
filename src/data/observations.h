#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/npz.h"
#include "io/table.h"

namespace nsimplex::data {

/// Measured values as numbers of bins, as the code books of single-cell transformers take them.
///
/// Zeros are bin 0. The other values of the table that the bins are made from are cut at their
/// quantiles into `count` bins of equally many, 1 .. count, the same for all columns; values of
/// another table that lie outside go to the first or last of them. Equal values stay together, so
/// that a bin of a table with few different values may be empty.
class ValueBins {
 public:
  /// From `values`, floating [N, M], all finite. Throws InputError where all of them are zero.
  ValueBins(const at::Tensor& values, int64_t count);

  /// Of edges(), as they were before.
  explicit ValueBins(at::Tensor edges);

  /// int64 of the same shape, 0 .. count.
  at::Tensor operator()(const at::Tensor& values) const;

  /// float64 [count - 1], ascending: v belongs to bin 1 + the number of edges <= v.
  const at::Tensor& edges() const { return edges_; }

 private:
  at::Tensor edges_;
};

}  // namespace nsimplex::data

// Arrays of an npz file that have to fit together. What does not is an InputError of one line with
// the file and the array.

namespace nsimplex::data {

/// Fails where an array has not so many dimensions.
void expect_dimensions(const io::Array& array, size_t dimensions);

/// Fails where it has not `rows` rows, one for each of what `of` names.
void expect_rows(const io::Array& array, int64_t rows, const char* of);

/// Integers of one dimension.
std::vector<int64_t> read_integers(const io::Npz& npz, const std::string& name);

/// Offsets into `rows` rows of what `of` names: they rise from 0 to that number.
std::vector<int64_t> read_offsets(const io::Npz& npz, const std::string& name, int64_t rows,
                                  const char* of);

/// Numbers, all finite, of any shape.
std::vector<double> finite_numbers(const io::Array& array);

/// Tables of observations by features (cells by genes, for example), and what is known of each row.

struct Observations {
  at::Tensor values;                  ///< float64 [N, M]; NaN where missing
  std::vector<std::string> features;  ///< names of the columns; x0, x1, .. where a file has none
  std::vector<std::string> names;     ///< of the rows; empty where the file has none
  io::TextReading reading;            ///< what was decided to read a text
};

/// npy, npz or a text, as io::read_table() reads them. Throws InputError with file and line.
Observations read_observations(const std::string& path, const io::TableOptions& options = {});

struct Labels {
  at::Tensor numbers;                ///< int64 [N], into `classes`
  std::vector<std::string> classes;  ///< in the order of their text
  io::TextReading reading = {};      ///< what was decided to read them
};

/// One label a row of `observations`, from a text with a header: one column of labels in the order
/// of the rows, or a column of names and one of labels, in any order where the observations have
/// names too. Throws InputError, with file and line, for rows without a label, two labels of a
/// name, a number of rows that does not fit, and fewer than two classes.
Labels read_labels(const std::string& path, const Observations& observations);

/// Single-cell counts made comparable: rows with fewer than `least` non-zero values go; each row is
/// scaled to a sum of 10^4; log(1 + x). The numbers of the rows that stayed, int64.
at::Tensor normalise_counts(Observations& observations, int64_t least = 200);

/// The same scale without a look at which rows are poor: of new rows that are to be answered for.
at::Tensor scaled_counts(const at::Tensor& values);

/// Drops columns that fewer than `share` of the rows have; then every missing value becomes the
/// mean of that column over the `neighbours` nearest rows that have it, by the mean squared
/// difference of the columns, divided by their deviations, that both rows have (ties: the earlier
/// row); the mean of the column where no other row shares a column. Time O(N^2 M).
void impute_missing(Observations& observations, double share = 0.1, int64_t neighbours = 5);

/// Numbers of the `count` columns with the largest variance, ascending; all where there are fewer.
at::Tensor most_variable(const at::Tensor& values, int64_t count);

/// Rows in two parts, numbers ascending: round(share * size) of each class, at least one, in the
/// first.
struct SplitRows {
  at::Tensor first, second;
};
SplitRows stratified_split(const Labels& labels, double share, uint64_t seed);

}  // namespace nsimplex::data
