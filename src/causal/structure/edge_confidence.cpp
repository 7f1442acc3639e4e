// The function edge_confidence(): the graph is learned again from samples of the rows. Python
// spreads the samples over threads and machines, and calls the operator of some samples.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/option_names.h"
#include "causal/structure/fit_arguments.h"
#include "causal/structure/linear_model.h"
#include "causal/structure/sampled_rows.h"
#include "causal/structure/told_directions.h"
#include "causal/tensors.h"
#include "support/interruptible.h"
#include "support/parallel.h"
#include "support/require.h"

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

// What a sample says. Columns that say nothing there have no edges.
struct SampleGraph {
  Tensor weights;  // float64 [M, M]
  Tensor told;     // bool [M, M]: told_graph()
};

SampleGraph graph_of_sample(const Tensor& table, const CausalFitOptions& options, bool scaled) {
  const int64_t columns = table.size(1);
  const Tensor kept = usable_columns(table, options);
  SampleGraph found{at::zeros({columns, columns}, at::kDouble),
                    at::zeros({columns, columns}, at::kBool)};
  if (kept.numel() < 2) return found;
  std::vector<int64_t> place(static_cast<size_t>(columns), -1);
  for (int64_t k = 0; k < kept.numel(); ++k) {
    place[static_cast<size_t>(kept.const_data_ptr<int64_t>()[k])] = k;
  }
  const CausalFitOptions own = options_among(options, place);
  const CausalFit fit = causal_fit(table.index_select(1, kept), own);
  found.weights.index_put_({kept.unsqueeze(1), kept}, fit.adjacency);
  found.told.index_put_({kept.unsqueeze(1), kept}, told_graph(fit, own, scaled));
  return found;
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
  /// float64 [M, M]: numbers of samples. An open direction counts a half, and so does a path that
  /// some graphs of the equivalence class have.
  Tensor edges, connected, ancestors;
  Tensor weights;  ///< [samples, edges of the graph of all rows]
};

class Sampler {
 public:
  Sampler(const Tensor& table, const Tensor& graph, CausalFitOptions options,
          const EdgeConfidenceOptions& drawn)
      : table_(moderate_columns(table, options)),
        graph_(graph),
        places_((graph != 0).flatten().nonzero().flatten()),
        scaled_(options.standardise || (options.kinds.empty() && has_one_variance(table))),
        options_(std::move(options)),
        draws_{table.size(0), rows_of_blocks(drawn.blocks), drawn.resampling, options_.seed} {}

  // The samples first .. first + count - 1. They run at once on torch's threads. Sums of whole
  // numbers do not depend on the order. `done` is called by one thread at a time.
  Samples run(int64_t first, int64_t count, const std::function<void(int64_t)>& done) const {
    const Tensor zero = at::zeros_like(graph_);
    Samples samples{zero, zero.clone(), zero.clone(),
                    at::empty({count, places_.numel()}, at::kDouble)};
    std::mutex mutex;
    int64_t finished = 0;
    parallel_tasks(count, [&](int64_t task, int) {
      const Tensor rows = draws_.rows_of(first + task);
      const Tensor table = table_.index_select(0, rows);
      const CausalFitOptions own = options_of_rows(options_, rows);
      const auto [found, told] = graph_of_sample(table, own, scaled_);
      const Tensor either = told.logical_or(told.t()),
                   sure = told.logical_and(told.t().logical_not());
      const auto half_of = [](const Tensor& one, const Tensor& other) {
        return (one.to(at::kDouble) + other.to(at::kDouble)) / 2;
      };
      const Tensor directions = half_of(told, sure),
                   paths = half_of(closure_of(told), closure_of(sure));
      const Tensor weights =
          own.nonlinear || !own.kinds.empty()
              ? at::where(found != 0, found, kNoWeight)
              : linear_model(table, graph_, own.groups, own.targets).coefficients;
      const std::lock_guard lock(mutex);
      samples.edges += directions;
      samples.connected += either;
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
  bool scaled_;
  CausalFitOptions options_;
  RowDraws draws_;
};

void check_stable_frequency(double min_frequency) {
  TORCH_CHECK_VALUE(min_frequency > 0.5 && min_frequency <= 1,
                    "[expected_false] min_frequency: expected above 0.5, at most 1, got ",
                    min_frequency);
}

// The table and the graph, and options that suit them.
std::pair<Tensor, Tensor> checked_input(const Tensor& table, const Tensor& graph,
                                        const CausalFitOptions& fit,
                                        const EdgeConfidenceOptions& drawn) {
  const Gaps gaps = fit.missing == MissingValues::likelihood ? Gaps::kept : Gaps::refused;
  std::pair both = checked_table_and_graph("[edge_confidence] ", table, graph, gaps);
  TORCH_CHECK_VALUE(both.first.size(0) >= 4,
                    "[edge_confidence] table: expected at least 4 rows to sample from, got ",
                    both.first.size(0));
  as_function("edge_confidence", [&] {
    check_fit_options(fit, both.first.size(0), both.first.size(1));
    if (drawn.blocks.empty()) return;
    require_one_per_row("blocks", drawn.blocks.size(), both.first.size(0));
    const int64_t blocks = std::ssize(rows_of_blocks(drawn.blocks));
    require_argument(blocks >= 4, "blocks", "at least 4 to sample from", std::to_string(blocks));
    require_room("replicates", {drawn.replicates, both.second.count_nonzero().item<int64_t>()});
  });
  return both;
}

}  // namespace

Tensor EdgeConfidence::stable(double min_frequency, double min_connected) const {
  const auto check = [](const char* argument, double share) {
    TORCH_CHECK_VALUE(share >= 0 && share <= 1, "[stable] ", argument,
                      ": expected a number from 0 to 1, got ", share);
  };
  check("min_frequency", min_frequency);
  check("min_connected", min_connected);
  const Tensor often = frequencies.ge(min_frequency).logical_and(connected.ge(min_connected));
  return at::where(often, adjacency, 0.0);
}

double EdgeConfidence::expected_false(double min_frequency, bool connections) const {
  check_stable_frequency(min_frequency);
  const auto count = static_cast<double>(adjacency.size(0));
  const Tensor shares = connections ? connected.triu(1) : frequencies;
  const double tried = count * (count - 1) / (connections ? 2 : 1);
  const auto found = static_cast<double>(shares.ge(min_frequency).sum().item<int64_t>());
  return std::min(edges * edges / ((2 * min_frequency - 1) * tried), found);
}

EdgeConfidence edge_confidence(const Tensor& table, const CausalFitOptions& fit,
                               const EdgeConfidenceOptions& options) {
  const CausalFit found = causal_fit(table, fit);
  return edge_confidence(table, found.adjacency, settled_options(fit, found.choices), options);
}

EdgeConfidence edge_confidence(const Tensor& table, const Tensor& graph,
                               const CausalFitOptions& fit, const EdgeConfidenceOptions& options) {
  TORCH_CHECK_VALUE(options.replicates >= 2 && options.replicates <= kMostReplicates,
                    "[edge_confidence] replicates: expected 2 to ", kMostReplicates, ", got ",
                    options.replicates);
  TORCH_CHECK_VALUE(options.level > 0 && options.level < 1,
                    "[edge_confidence] level: expected a number in (0, 1), got ", options.level);
  const auto [values, adjacency] = checked_input(table, graph, fit, options);
  const Sampler sampler(values, adjacency, fit, options);
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
  at::IntArrayRef blocks;

  static auto fields(auto& self) {
    return std::tuple_cat(
        std::tie(self.table), FitArguments::fields(self.fit),
        std::tie(self.graph, self.resampling, self.first, self.count, self.blocks));
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
  const EdgeConfidenceOptions drawn{
      .replicates = count,
      .resampling = as_function(
          "edge_confidence", [&] { return parse_name<Resampling>("resampling", call.resampling); }),
      .blocks = call.blocks.vec()};
  const auto [values, adjacency] = checked_input(given, call.graph, options, drawn);
  const Interruptible interruptible;
  options.checkpoint = [&] { interruptible.check(); };
  const Sampler sampler(values, adjacency, options, drawn);
  Samples samples = sampler.run(first, count, {});
  return {samples.edges, samples.connected, samples.ancestors, samples.weights};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string schema =
      "causal_edge_samples(Tensor table, " + fit_schema() +
      ", Tensor graph, str resampling, int first, int count, int[] blocks) -> "
      "(Tensor, Tensor, Tensor, Tensor)";
  m.def(schema.c_str(), TORCH_FN(flat<&edge_samples>));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
