// Reads tables of observations and their labels, and preprocesses, bins and splits them.

#include "data/observations.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "causal/tables/usable_table.h"
#include "data/row_texts.h"
#include "io/input_file.h"
#include "support/error.h"

namespace nsimplex::data {

using at::Tensor;

ValueBins::ValueBins(const Tensor& values, int64_t count) {
  const Tensor flat = values.to(at::kDouble).flatten();
  const Tensor sorted = std::get<0>(flat.index({flat.ne(0)}).sort());
  const int64_t size = sorted.size(0);
  if (size == 0) throw InputError("bins: expected a table with a value that is not zero");
  // at::quantile refuses more than 2^24 numbers. The value at a place in the sorted order is good
  // enough.
  const Tensor places = at::arange(1, count, at::kLong) * size / count;
  edges_ = sorted.index_select(0, places.to(at::kLong).clamp_max(size - 1));
}

ValueBins::ValueBins(Tensor edges) : edges_(std::move(edges)) {}

Tensor ValueBins::operator()(const Tensor& values) const {
  const Tensor numbers =
      at::searchsorted(edges_, values.to(at::kDouble).contiguous(), false, true) + 1;
  return numbers.masked_fill(values.eq(0), 0);
}

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

Labels read_labels(const std::string& path, const Observations& observations) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  RowTexts read = read_row_texts(source, observations, "label", /*numbers=*/false);
  const std::vector<std::string>& text = read.texts;
  Labels labels;
  labels.reading = std::move(read.reading);
  labels.classes = text;
  std::sort(labels.classes.begin(), labels.classes.end());
  labels.classes.erase(std::unique(labels.classes.begin(), labels.classes.end()),
                       labels.classes.end());
  if (labels.classes.size() < 2) {
    source.fail(std::string("expected two different labels, got ")
                    .append(std::to_string(labels.classes.size())));
  }
  std::vector<int64_t> numbers;
  for (const std::string& each : text) {
    numbers.push_back(std::lower_bound(labels.classes.begin(), labels.classes.end(), each) -
                      labels.classes.begin());
  }
  labels.numbers = at::tensor(numbers, at::kLong);
  return labels;
}

using at::Tensor;

Observations read_observations(const std::string& path, const io::TableOptions& options) {
  return observations_of(io::read_table(path, options));
}

Observations observations_of(io::Table table) {
  Observations result;
  result.values =
      at::from_blob(table.values.data(), {table.rows, table.width}, at::kDouble).clone();
  result.features =
      table.columns.empty() ? causal::column_names(table.width) : std::move(table.columns);
  result.names = std::move(table.labels);
  result.reading = std::move(table.reading);
  return result;
}

namespace {

void require_counts(const Tensor& values) {
  if (!values.isfinite().all().item<bool>() || values.lt(0).any().item<bool>()) {
    throw InputError("counts: expected finite numbers that are not negative");
  }
}

}  // namespace

Tensor scaled_counts(const Tensor& values) {
  require_counts(values);
  return (values * (1e4 / values.sum(1, true).clamp_min(1e-300))).log1p();
}

Tensor normalise_counts(Observations& observations, int64_t least) {
  Tensor& values = observations.values;
  require_counts(values);
  const Tensor rows = values.ne(0).sum(1).ge(least).nonzero().squeeze(1);
  if (rows.size(0) < 2) {
    throw InputError(std::string("counts: expected two rows with at least ")
                         .append(std::to_string(least))
                         .append(" values that are not zero"));
  }
  values = scaled_counts(values.index_select(0, rows));
  std::vector<std::string> names;
  for (int64_t row = 0; !observations.names.empty() && row < rows.size(0); ++row) {
    names.push_back(observations.names[static_cast<size_t>(rows[row].item<int64_t>())]);
  }
  observations.names = std::move(names);
  return rows;
}

namespace {

void keep_columns(Observations& observations, const Tensor& columns) {
  std::vector<std::string> features;
  for (int64_t column = 0; column < columns.size(0); ++column) {
    features.push_back(observations.features[static_cast<size_t>(columns[column].item<int64_t>())]);
  }
  observations.features = std::move(features);
  observations.values = observations.values.index_select(1, columns);
}

// Mean squared difference of any two rows over the columns that both have. It is infinite if there
// are none, and between a row and itself.
Tensor distances(const Tensor& values, const Tensor& present) {
  const Tensor known = values.mul(present), squares = known.square();
  const Tensor sums =
      squares.matmul(present.t()) + present.matmul(squares.t()) - 2 * known.matmul(known.t());
  const Tensor shared = present.matmul(present.t());
  const double far = std::numeric_limits<double>::infinity();
  return (sums / shared).masked_fill(shared.eq(0), far).fill_diagonal_(far);
}

}  // namespace

void impute_missing(Observations& observations, double share, int64_t neighbours) {
  const Tensor has = observations.values.isnan().logical_not();
  const Tensor columns =
      has.to(at::kDouble).mean(0).ge(std::max(share, 1e-12)).nonzero().squeeze(1);
  if (columns.size(0) == 0) {
    throw InputError(
        "values: expected a column that enough rows have, every one is missing in more");
  }
  keep_columns(observations, columns);
  Tensor& values = observations.values;
  if (!values.isnan().any().item<bool>()) return;

  const Tensor present = values.isnan().logical_not().to(at::kDouble);
  const Tensor counts = present.sum(0);
  const Tensor mean = values.nan_to_num(0).sum(0) / counts;
  const Tensor centred = (values - mean).nan_to_num(0);
  const Tensor deviation = (centred.square().sum(0) / counts).sqrt();
  const Tensor scaled = centred / deviation.masked_fill(deviation.eq(0), 1);
  const auto [distance, order] =
      distances(scaled, present).sort(/*stable=*/true, 1, /*descending=*/false);

  const auto here = present.accessor<double, 2>();
  const auto far = distance.accessor<double, 2>();
  const auto rows = order.accessor<int64_t, 2>();
  const auto means = mean.accessor<double, 1>();
  const Tensor filled = values.clone();
  auto out = filled.accessor<double, 2>();
  const auto in = values.accessor<double, 2>();
  for (int64_t row = 0; row < values.size(0); ++row) {
    for (int64_t column = 0; column < values.size(1); ++column) {
      if (here[row][column] != 0) continue;
      double sum = 0;
      int64_t found = 0;
      for (int64_t at = 0; at < values.size(0) && found < neighbours; ++at) {
        if (!std::isfinite(far[row][at])) break;
        const int64_t other = rows[row][at];
        if (here[other][column] == 0) continue;
        sum += in[other][column];
        ++found;
      }
      out[row][column] = found > 0 ? sum / static_cast<double>(found) : means[column];
    }
  }
  values = filled;
}

Tensor most_variable(const Tensor& values, int64_t count) {
  const Tensor variance = values.var(0, /*unbiased=*/false);
  const int64_t kept = std::min(count, values.size(1));
  const Tensor order = std::get<1>(variance.sort(/*stable=*/true, 0, /*descending=*/true));
  return std::get<0>(order.narrow(0, 0, kept).sort());
}

SplitRows stratified_split(const Labels& labels, double share, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<Tensor> first, second;
  for (int64_t label = 0; label < std::ssize(labels.classes); ++label) {
    const Tensor rows = labels.numbers.eq(label).nonzero().squeeze(1);
    const int64_t size = rows.size(0);
    const int64_t part =
        std::clamp<int64_t>(std::llround(share * static_cast<double>(size)), 1, size);
    const Tensor drawn = rows.index_select(0, at::randperm(size, generator, at::kLong));
    first.push_back(drawn.narrow(0, 0, part));
    second.push_back(drawn.narrow(0, part, size - part));
  }
  return {std::get<0>(at::cat(first).sort()), std::get<0>(at::cat(second).sort())};
}

}  // namespace nsimplex::data
