// The function edge_confidence(): the graph is learned again from samples of the rows. Python
// spreads the samples over threads and machines, and calls the operator of some samples.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/option_names.h"
#include "causal/structure/fit_arguments.h"
#include "causal/structure/linear_model.h"
#include "causal/tensors.h"
#include "support/interruptible.h"
#include "support/parallel.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr int64_t kMostReplicates = 100'000;  // frequencies are then exact to 0.002
constexpr double kNoWeight = std::numeric_limits<double>::quiet_NaN();

// Continuous columns less their means and divided by their deviations, of the values there.
Tensor scaled_columns(const Tensor& table, const std::vector<ColumnKind>& kinds) {
  const Tensor moderate = times_power(table, -binary_exponents(table));
  const Tensor centred = moderate - moderate.nanmean(0);
  const Tensor scaled = centred / centred.square().nanmean(0).sqrt();
  if (kinds.empty()) return scaled;
  Tensor plain = at::zeros({table.size(1)}, at::kBool);
  for (size_t column = 0; column < kinds.size(); ++column) {
    if (kinds[column] != ColumnKind::continuous) plain[static_cast<int64_t>(column)] = true;
  }
  return at::where(plain, table, scaled);
}

// The table in units in which the squares of all columns stay within the range of double. Weights
// are the same in all units of a whole table. Columns of other kinds have no units.
Tensor moderate_columns(const Tensor& table, const CausalFitOptions& options) {
  if (options.standardise) return scaled_columns(table, options.kinds);
  return options.kinds.empty() ? times_power(table, -large_exponent(table)) : table;
}

// The rows of a sample. Both halves of a pair come from one permutation.
Tensor rows_of_sample(int64_t rows, int64_t number, Resampling resampling, int64_t seed) {
  constexpr uint64_t kStep = 1'000'003, kPositive = ~uint64_t{0} >> 1;
  const bool halves = resampling == Resampling::halves;
  const auto pair = static_cast<uint64_t>(halves ? number / 2 : number);
  const at::Generator generator =
      at::detail::createCPUGenerator((static_cast<uint64_t>(seed) * kStep + pair) & kPositive);
  if (!halves) return at::randint(rows, {rows}, generator, at::kLong);
  const int64_t half = rows / 2;
  return at::randperm(rows, generator, at::kLong).narrow(0, number % 2 == 0 ? 0 : half, half);
}

// The options for a table of some rows only.
CausalFitOptions options_of_rows(const CausalFitOptions& options, const Tensor& rows) {
  CausalFitOptions own = options;
  const int64_t* chosen = rows.const_data_ptr<int64_t>();
  for (int64_t k = 0; k < rows.numel(); ++k) {
    const auto to = static_cast<size_t>(k), from = static_cast<size_t>(chosen[k]);
    if (!options.groups.empty()) own.groups[to] = options.groups[from];
    if (!options.targets.empty()) own.targets[to] = options.targets[from];
  }
  const auto count = static_cast<size_t>(rows.numel());
  if (!own.groups.empty()) own.groups.resize(count);
  if (!own.targets.empty()) own.targets.resize(count);
  return own;
}

// The options for a table of some columns only, by their places there; -1 for the other columns.
CausalFitOptions options_among(CausalFitOptions options, const std::vector<int64_t>& place) {
  const auto at = [&](int64_t column) { return place[static_cast<size_t>(column)]; };
  const auto keep_edges = [&](std::vector<CausalEdge>& edges) {
    std::erase_if(
        edges, [&](const CausalEdge& edge) { return at(edge.cause) < 0 || at(edge.effect) < 0; });
    for (CausalEdge& edge : edges) edge = {at(edge.cause), at(edge.effect)};
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
  keep_columns(options.constraints.tiers);
  keep_columns(options.kinds);
  keep_columns(options.names);
  for (std::vector<int64_t>& own : options.targets) {
    std::erase_if(own, [&](int64_t column) { return at(column) < 0; });
    for (int64_t& column : own) column = at(column);
  }
  return options;
}

// int64 [k]: the columns of a sample that a fit accepts. Values that are missing and rows with an
// intervention on a column do not count. The column must vary within groups; with groups, or
// interventions on it, its regression needs three degrees of freedom.
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

// The graph of a sample; columns that say nothing there have no edges.
Tensor graph_of_sample(const Tensor& table, const CausalFitOptions& options) {
  const Tensor kept = usable_columns(table, options);
  if (kept.numel() == table.size(1)) return causal_fit(table, options).adjacency;
  Tensor graph = at::zeros({table.size(1), table.size(1)}, at::kDouble);
  if (kept.numel() < 2) return graph;
  std::vector<int64_t> place(static_cast<size_t>(table.size(1)), -1);
  for (int64_t k = 0; k < kept.numel(); ++k) {
    place[static_cast<size_t>(kept.const_data_ptr<int64_t>()[k])] = k;
  }
  const Tensor inside =
      causal_fit(table.index_select(1, kept), options_among(options, place)).adjacency;
  graph.index_put_({kept.unsqueeze(1), kept}, inside);
  return graph;
}

// Which columns have a directed path to which; bool [M, M].
Tensor closure_of(const Tensor& edges) {
  const int64_t count = edges.size(0);
  Paths paths(count);
  const Tensor pairs = edges.nonzero();
  const auto pair = pairs.accessor<int64_t, 2>();
  for (int64_t k = 0; k < pairs.size(0); ++k) paths.add({pair[k][0], pair[k][1]});
  Tensor found = at::zeros({count, count}, at::kBool);
  auto at = found.accessor<bool, 2>();
  for (int64_t from = 0; from < count; ++from) {
    for (int64_t to = 0; to < count; ++to) at[from][to] = from != to && paths.leads(from, to);
  }
  return found;
}

// Sums over some samples.
struct Samples {
  Tensor edges, connected, ancestors;  ///< float64 [M, M]: numbers of samples
  Tensor weights;                      ///< [samples, edges of the graph of all rows]
};

class Sampler {
 public:
  Sampler(const Tensor& table, const Tensor& graph, CausalFitOptions options, Resampling resampling)
      : table_(moderate_columns(table, options)),
        graph_(graph),
        places_((graph != 0).flatten().nonzero().flatten()),
        options_(std::move(options)),
        resampling_(resampling) {}

  // The samples first .. first + count - 1. They run at once on torch's threads. Sums of whole
  // numbers do not depend on the order. `done` is called by one thread at a time.
  Samples run(int64_t first, int64_t count, const std::function<void(int64_t)>& done) const {
    const Tensor zero = at::zeros_like(graph_);
    Samples samples{zero, zero.clone(), zero.clone(),
                    at::empty({count, places_.numel()}, at::kDouble)};
    std::mutex mutex;
    int64_t finished = 0;
    parallel_tasks(count, [&](int64_t task, int) {
      const Tensor rows = rows_of_sample(table_.size(0), first + task, resampling_, options_.seed);
      const Tensor table = table_.index_select(0, rows);
      const CausalFitOptions own = options_of_rows(options_, rows);
      const Tensor found = graph_of_sample(table, own), edges = found != 0,
                   paths = closure_of(edges);
      const Tensor weights =
          own.nonlinear || !own.kinds.empty()
              ? at::where(edges, found, kNoWeight)
              : linear_model(table, graph_, own.groups, own.targets).coefficients;
      const std::lock_guard lock(mutex);
      samples.edges += edges;
      samples.connected += edges.logical_or(edges.t());
      samples.ancestors += paths;
      samples.weights.select(0, task).copy_(weights.flatten().index_select(0, places_));
      if (done) done(++finished);
    });
    return samples;
  }

  // Writes numbers of the edges of the graph of all rows into a matrix [M, M] with NaN elsewhere.
  Tensor spread(const Tensor& numbers) const {
    return at::full_like(graph_, kNoWeight)
        .flatten()
        .index_copy(0, places_, numbers)
        .view_as(graph_);
  }

 private:
  Tensor table_, graph_, places_;
  CausalFitOptions options_;
  Resampling resampling_;
};

void check_stable_frequency(double min_frequency) {
  TORCH_CHECK_VALUE(min_frequency > 0.5 && min_frequency <= 1,
                    "[expected_false] min_frequency: expected above 0.5, at most 1, got ",
                    min_frequency);
}

// The table and the graph, and options that suit them.
std::pair<Tensor, Tensor> checked_input(const Tensor& table, const Tensor& graph,
                                        const CausalFitOptions& fit, int64_t samples) {
  const Gaps gaps = fit.missing == MissingValues::likelihood ? Gaps::kept : Gaps::refused;
  std::pair both = checked_table_and_graph("[edge_confidence] ", table, graph, gaps);
  TORCH_CHECK_VALUE(both.first.size(0) >= 4,
                    "[edge_confidence] table: expected at least 4 rows to sample from, got ",
                    both.first.size(0));
  as_function("edge_confidence", [&] {
    check_fit_options(fit, both.first.size(0), both.first.size(1));
    require_room("replicates", {samples, both.second.count_nonzero().item<int64_t>()});
  });
  return both;
}

}  // namespace

Tensor EdgeConfidence::stable(double min_frequency) const {
  TORCH_CHECK_VALUE(min_frequency >= 0 && min_frequency <= 1,
                    "[stable] min_frequency: expected a number from 0 to 1, got ", min_frequency);
  return at::where(frequencies >= min_frequency, adjacency, 0.0);
}

double EdgeConfidence::expected_false(double min_frequency) const {
  check_stable_frequency(min_frequency);
  const auto count = static_cast<double>(adjacency.size(0));
  return edges * edges / ((2 * min_frequency - 1) * count * (count - 1));
}

EdgeConfidence edge_confidence(const Tensor& table, const CausalFitOptions& fit,
                               const EdgeConfidenceOptions& options) {
  return edge_confidence(table, causal_fit(table, fit).adjacency, fit, options);
}

EdgeConfidence edge_confidence(const Tensor& table, const Tensor& graph,
                               const CausalFitOptions& fit, const EdgeConfidenceOptions& options) {
  TORCH_CHECK_VALUE(options.replicates >= 2 && options.replicates <= kMostReplicates,
                    "[edge_confidence] replicates: expected 2 to ", kMostReplicates, ", got ",
                    options.replicates);
  TORCH_CHECK_VALUE(options.level > 0 && options.level < 1,
                    "[edge_confidence] level: expected a number in (0, 1), got ", options.level);
  const auto [values, adjacency] = checked_input(table, graph, fit, options.replicates);
  const Sampler sampler(values, adjacency, fit, options.resampling);
  const Samples samples = sampler.run(0, options.replicates, options.progress);
  const Tensor ends = at::tensor({0.5 - options.level / 2, 0.5 + options.level / 2}, at::kDouble);
  const Tensor bounds = samples.weights.size(1) > 0 ? at::nanquantile(samples.weights, ends, 0)
                                                    : at::zeros({2, 0}, at::kDouble);
  const auto count = static_cast<double>(options.replicates);
  return {.adjacency = adjacency,
          .frequencies = samples.edges / count,
          .connected = samples.connected / count,
          .ancestors = samples.ancestors / count,
          .low = sampler.spread(bounds[0]),
          .high = sampler.spread(bounds[1]),
          .edges = samples.edges.sum().item<double>() / count,
          .replicates = options.replicates};
}

namespace causal {
namespace {

struct SamplesCall {
  Tensor table;
  FitArguments fit;
  Tensor graph;
  std::string_view resampling;
  int64_t first = 0, count = 0;

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.table), FitArguments::fields(self.fit),
                          std::tie(self.graph, self.resampling, self.first, self.count));
  }
};

// The samples `first`, first + 1, .. as counts, and the weights of the graph's edges per sample.
std::tuple<Tensor, Tensor, Tensor, Tensor> edge_samples(const SamplesCall& call) {
  const int64_t first = call.first, count = call.count;
  TORCH_CHECK_VALUE(first >= 0 && first < kMostReplicates && count >= 1 && count <= kMostReplicates,
                    "[edge_confidence] samples: expected 0 to ", kMostReplicates, ", got ", count,
                    " from ", first);
  const Tensor given = checked_matrix("[edge_confidence] table", call.table);
  CausalFitOptions options = fit_options("edge_confidence", call.fit, given.size(0));
  const auto [values, adjacency] = checked_input(given, call.graph, options, count);
  const Interruptible interruptible;
  options.checkpoint = [&] { interruptible.check(); };
  const Sampler sampler(values, adjacency, options, as_function("edge_confidence", [&] {
                          return parse_name<Resampling>("resampling", call.resampling);
                        }));
  Samples samples = sampler.run(first, count, {});
  return {samples.edges, samples.connected, samples.ancestors, samples.weights};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string schema = "causal_edge_samples(Tensor table, " + fit_schema() +
                             ", Tensor graph, str resampling, int first, int count) -> (Tensor, "
                             "Tensor, Tensor, Tensor)";
  m.def(schema.c_str(), TORCH_FN(flat<&edge_samples>));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
