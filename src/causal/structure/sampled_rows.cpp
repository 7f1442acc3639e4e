// Draws samples of the rows of a table, and takes options to some of its rows and columns.

#include "causal/structure/sampled_rows.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace nsimplex::causal {
namespace {

using at::Tensor;

// Numbers of a sample of so many rows or blocks. Both halves of a pair come from one permutation.
Tensor numbers_of_sample(int64_t rows, int64_t number, Resampling resampling, int64_t seed) {
  constexpr uint64_t kStep = 1'000'003, kPositive = ~uint64_t{0} >> 1;
  const bool halves = resampling == Resampling::halves;
  const auto pair = static_cast<uint64_t>(halves ? number / 2 : number);
  const at::Generator generator =
      at::detail::createCPUGenerator((static_cast<uint64_t>(seed) * kStep + pair) & kPositive);
  if (!halves) return at::randint(rows, {rows}, generator, at::kLong);
  const int64_t half = rows / 2;
  return at::randperm(rows, generator, at::kLong).narrow(0, number % 2 == 0 ? 0 : half, half);
}

}  // namespace

std::vector<std::vector<int64_t>> rows_of_blocks(const std::vector<int64_t>& blocks) {
  std::vector<std::vector<int64_t>> found;
  std::unordered_map<int64_t, size_t> place;
  for (size_t row = 0; row < blocks.size(); ++row) {
    const auto [at, added] = place.emplace(blocks[row], found.size());
    if (added) found.emplace_back();
    found[at->second].push_back(static_cast<int64_t>(row));
  }
  return found;
}

Tensor RowDraws::rows_of(int64_t sample) const {
  const int64_t count = blocks.empty() ? rows : std::ssize(blocks);
  const Tensor numbers = numbers_of_sample(count, sample, resampling, seed);
  if (blocks.empty()) return numbers;
  std::vector<int64_t> chosen;
  for (int64_t k = 0; k < numbers.numel(); ++k) {
    const auto& block = blocks[static_cast<size_t>(numbers.const_data_ptr<int64_t>()[k])];
    chosen.insert(chosen.end(), block.begin(), block.end());
  }
  return at::tensor(at::IntArrayRef(chosen), at::kLong);
}

CausalFitOptions options_of_rows(const CausalFitOptions& options, const Tensor& rows) {
  CausalFitOptions own = options;
  own.groups.clear();
  own.targets.clear();
  const int64_t* chosen = rows.const_data_ptr<int64_t>();
  for (int64_t k = 0; k < rows.numel(); ++k) {
    const auto from = static_cast<size_t>(chosen[k]);
    if (!options.groups.empty()) own.groups.push_back(options.groups[from]);
    if (!options.targets.empty()) own.targets.push_back(options.targets[from]);
  }
  return own;
}

CausalFitOptions options_among(CausalFitOptions options, const std::vector<int64_t>& place) {
  const auto at = [&](int64_t column) { return place[static_cast<size_t>(column)]; };
  const auto keep_edges = [&](std::vector<CausalEdge>& edges) {
    std::erase_if(
        edges, [&](const CausalEdge& edge) { return at(edge.cause) < 0 || at(edge.effect) < 0; });
    for (CausalEdge& edge : edges) edge = {at(edge.cause), at(edge.effect)};
  };
  const auto keep_numbers = [&](std::vector<int64_t>& columns) {
    std::erase_if(columns, [&](int64_t column) { return at(column) < 0; });
    for (int64_t& column : columns) column = at(column);
  };
  const auto keep_columns = [&](auto& values) {
    if (values.empty()) return;
    size_t to = 0;
    for (size_t column = 0; column < place.size(); ++column) {
      if (place[column] >= 0) values[to++] = values[column];
    }
    values.resize(to);
  };
  keep_edges(options.constraints.forbidden);
  keep_edges(options.constraints.required);
  keep_edges(options.constraints.paths);
  keep_numbers(options.constraints.exogenous);
  keep_numbers(options.constraints.sinks);
  keep_columns(options.constraints.tiers);
  keep_columns(options.kinds);
  keep_columns(options.names);
  for (std::vector<int64_t>& own : options.targets) keep_numbers(own);
  return options;
}

Tensor usable_columns(const Tensor& table, const CausalFitOptions& options) {
  constexpr int64_t kLeastFree = 3;
  const int64_t rows = table.size(0), columns = table.size(1);
  Tensor unused = table.isnan();
  auto left_out = unused.accessor<bool, 2>();
  std::vector<bool> targeted(static_cast<size_t>(columns));
  for (size_t row = 0; row < options.targets.size(); ++row) {
    for (const int64_t column : options.targets[row]) {
      if (column < 0 || column >= columns) return at::arange(columns);  // the fit refuses it
      left_out[static_cast<int64_t>(row)][column] = true;
      targeted[static_cast<size_t>(column)] = true;
    }
  }
  const auto values = table.accessor<double, 2>();
  std::vector<int64_t> kept;
  for (int64_t column = 0; column < columns; ++column) {
    std::unordered_map<int64_t, double> first;  // value of each group
    double own = std::numeric_limits<double>::quiet_NaN();
    int64_t used = 0;
    bool varies = false;
    for (int64_t row = 0; row < rows; ++row) {
      if (left_out[row][column]) continue;
      const double value = values[row][column];
      if (!options.groups.empty()) {
        own = first.emplace(options.groups[static_cast<size_t>(row)], value).first->second;
      } else if (used == 0) {
        own = value;
      }
      varies = varies || own != value;
      ++used;
    }
    const int64_t groups = std::max<int64_t>(std::ssize(first), 1);
    const bool counted = !options.groups.empty() || targeted[static_cast<size_t>(column)];
    if (varies && (!counted || used - groups + 1 >= kLeastFree)) kept.push_back(column);
  }
  return at::tensor(at::IntArrayRef(kept), at::kLong);
}

}  // namespace nsimplex::causal
