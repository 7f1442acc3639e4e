// Shows how sure the edges of `causal fit` are, and what the table cannot tell.

#include "cli/causal_certainty.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/causal.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "causal/graph/graph_text.h"
#include "causal/option_names.h"
#include "causal/structure/prepare.h"
#include "causal/tensors.h"
#include "io/output_file.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

constexpr int64_t kMostResamples = 100'000;
constexpr double kStableFrom = 0.9;  // the frequency from which an edge counts as stable

// A pair of columns that the graph or a sample connects.
struct SureEdge {
  int64_t cause, effect;
  double weight, frequency, connected, ancestor, low, high;
};

// The most frequent edges of the graph first, and then other pairs of samples.
std::vector<SureEdge> edges_of(const EdgeConfidence& found) {
  const auto of = [](const at::Tensor& matrix) { return matrix.accessor<double, 2>(); };
  const auto weight = of(found.adjacency), frequency = of(found.frequencies);
  const auto connected = of(found.connected), ancestor = of(found.ancestors);
  const auto low = of(found.low), high = of(found.high);
  std::vector<SureEdge> edges;
  for (int64_t i = 0; i < weight.size(0); ++i) {
    for (int64_t j = 0; j < weight.size(1); ++j) {
      if (weight[i][j] == 0 && frequency[i][j] == 0) continue;
      edges.push_back({i, j, weight[i][j], frequency[i][j], connected[i][j], ancestor[i][j],
                       low[i][j], high[i][j]});
    }
  }
  const auto key = [](const SureEdge& edge) {
    return std::tuple(edge.weight == 0, -edge.frequency, -edge.connected);
  };
  std::ranges::stable_sort(edges, {}, key);
  return edges;
}

Json line_of(const SureEdge& edge, const std::vector<std::string>& names) {
  return {{"cause", names[edge.cause]},
          {"effect", names[edge.effect]},
          {"weight", edge.weight},
          {"frequency", edge.frequency},
          {"connected", edge.connected},
          {"ancestor", edge.ancestor},
          {"low", edge.low},
          {"high", edge.high}};
}

std::string csv_of(const std::vector<SureEdge>& edges, const std::vector<std::string>& names) {
  const auto cell = [](double number) {
    return std::isnan(number) ? std::string() : fmt::format("{}", number);
  };
  std::string text = "cause,effect,weight,frequency,connected,ancestor,low,high\n";
  for (const SureEdge& edge : edges) {
    text +=
        fmt::format("{},{},{},{},{},{},{},{}\n", causal::text_cell(names[edge.cause]),
                    causal::text_cell(names[edge.effect]), cell(edge.weight), cell(edge.frequency),
                    cell(edge.connected), cell(edge.ancestor), cell(edge.low), cell(edge.high));
  }
  return text;
}

std::string edge_table_of(std::span<const SureEdge> edges, const std::vector<std::string>& names) {
  Table table({"edge", "weight", "95 % interval", "direction", "connection"});
  for (const SureEdge& edge : edges) {
    table.add({fmt::format("{} -> {}", printable(names[edge.cause]), printable(names[edge.effect])),
               fmt::format("{:.3f}", edge.weight),
               std::isnan(edge.low) ? "-" : fmt::format("{:.3f} to {:.3f}", edge.low, edge.high),
               fmt::format("{:.2f}", edge.frequency), fmt::format("{:.2f}", edge.connected)});
  }
  return table.text();
}

}  // namespace

void add_certainty_options(CLI::App& command, FitOptions& options) {
  const auto add = option_adder(command, "Certainty");
  add("--confidence", options.confidence,
      "Samples of the rows from which the graph is learned again; 0: none. Says how often each "
      "edge is found, and the interval of its weight")
      ->check(within(int64_t{0}, kMostResamples));
  add("--min-frequency", options.min_frequency,
      "Leave out edges whose direction a smaller share of the samples has, 0 to 1; an open "
      "direction "
      "counts a half")
      ->check(within(0.0, 1.0));
  add("--resampling", options.resampling,
      fmt::format("Samples of --confidence: {}", fmt::join(names_of<Resampling>(), ", ")));
  command
      .add_option(
          "--blocks", options.table.rows.blocks,
          "Rows that stay together in a sample: a column with the block of each row, or the "
          "number of rows of a block")
      ->type_name("COLUMN|ROWS")
      ->group("Certainty");
  add("--limits", options.limits,
      "Say which directions, units and hidden causes the table leaves open");
}

void check_certainty(const FitOptions& o) {
  if (o.confidence == 1) throw InputError("--confidence: expected 0 or at least 2, got 1");
  if (o.min_frequency && o.confidence == 0) {
    throw InputError("--min-frequency: expected a number of samples, --confidence, too");
  }
  if (!o.table.rows.blocks.empty() && o.confidence == 0) {
    throw InputError("--blocks: expected a number of samples, --confidence, too");
  }
  if (o.limits) require_plain_rows("--limits", o.table);
}

namespace {

// The number of blocks of rows; null without --blocks.
Json blocks_of(const std::vector<int64_t>& blocks) {
  if (blocks.empty()) return {};
  return std::set<int64_t>(blocks.begin(), blocks.end()).size();
}

EdgeConfidence sample_edges(const FitOptions& o, CausalFitOptions fitted, const CausalTable& table,
                            const CausalFit& fit) {
  ProgressBar bar("confidence", o.confidence, o.json);
  fitted.stop = {};
  fitted.checkpoint = interrupt::check;
  EdgeConfidence found = [&] {
    try {
      return edge_confidence(causal::to_tensor(table.observations.values), fit.adjacency, fitted,
                             {.replicates = o.confidence,
                              .resampling = o.resampling,
                              .blocks = table.rows.blocks,
                              .progress = [&](int64_t done) {
                                interrupt::check();
                                bar.update(done);
                              }});
    } catch (const c10::ValueError& error) {
      throw InputError(command_line_message(error.what_without_backtrace()));
    }
  }();
  bar.finish();
  return found;
}

void report_confidence(const FitOptions& o, const EdgeConfidence& found, const CausalTable& table,
                       RunLog& log) {
  const double stable_from = o.min_frequency.value_or(kStableFrom);
  const std::vector<SureEdge> all = edges_of(found);
  const auto is_edge = [](const SureEdge& edge) { return edge.weight != 0; };
  const std::span edges(all.begin(), std::ranges::count_if(all, is_edge));
  const auto share =
      fmt::format("at least {:.4g}% of {} samples", 100 * stable_from, found.replicates);
  const auto counted = [&](double SureEdge::* frequency) {
    return std::ranges::count_if(
        edges, [&](const SureEdge& edge) { return edge.*frequency >= stable_from; });
  };
  // No bound holds up to a half.
  const auto bound = [&](bool connections) {
    return stable_from > 0.5 ? Json(found.expected_false(stable_from, connections)) : Json();
  };
  const auto said = [&](const Json& expected) {
    if (expected.is_null()) return std::string();
    return fmt::format(
        "; at most {:.2g} of these are expected to be false{}", expected.get<double>(),
        o.resampling == Resampling::halves ? "" : " (a guide for bootstrap samples)");
  };
  const int64_t directed = counted(&SureEdge::frequency), joined = counted(&SureEdge::connected);
  const Json false_directions = bound(false), false_connections = bound(true);
  const std::vector findings{fmt::format("{} of {} edges connect their columns in {}{}", joined,
                                         edges.size(), share, said(false_connections)),
                             fmt::format("{} of {} edges have their direction in {}{}", directed,
                                         edges.size(), share, said(false_directions))};
  log.write("confidence", {{"replicates", found.replicates},
                           {"resampling", name_of(o.resampling)},
                           {"blocks", blocks_of(table.rows.blocks)},
                           {"edges", edges.size()},
                           {"edges_per_sample", found.edges},
                           {"stable", directed},
                           {"stable_connections", joined},
                           {"stable_from", stable_from},
                           {"expected_false", false_directions},
                           {"expected_false_connections", false_connections},
                           {"findings", findings}});
  for (const SureEdge& edge : edges) log.write("edge_confidence", line_of(edge, table.names));
  if (!o.out.empty()) io::write_text(o.out + "/confidence.csv", csv_of(all, table.names));
  if (o.json) return;
  print("\n" +
        edge_table_of(edges.first(std::min(edges.size(), size_t{kShownEdges})), table.names));
  print(more_edges_text(std::ssize(edges), o.out, "confidence.csv"));
  for (const std::string& finding : findings) print(finding + "\n");
}

void measure_limits(const FitOptions& o, const CausalTable& table, const CausalFit& fit,
                    RunLog& log) {
  // In the units of the fit, as Python's CausalGraph.limits.
  const causal::Matrix& values = table.observations.values;
  const causal::Matrix scaled =
      o.fit.standardise
          ? causal::prepared_table({values.data(), values.rows(), values.cols()}, true)
          : values;
  const CausalLimits found = [&] {
    try {
      return causal_limits(causal::to_tensor(scaled), fit.adjacency, {.names = table.names});
    } catch (const c10::ValueError& error) {
      throw InputError(command_line_message(error.what_without_backtrace()));
    }
  }();
  const auto named = [&](const at::Tensor& pairs, int64_t row) {
    const int64_t* pair = pairs.const_data_ptr<int64_t>() + 2 * row;
    return Json::array({table.names[pair[0]], table.names[pair[1]]});
  };
  Json reversible = Json::array(), dependent = Json::array();
  for (int64_t k = 0; k < found.reversible.size(0); ++k) {
    reversible.push_back(named(found.reversible, k));
  }
  for (int64_t k = 0; k < found.dependent.size(0); ++k) {
    dependent.push_back(named(found.dependent, k));
    dependent.back().push_back(found.p_values.const_data_ptr<double>()[k]);
  }
  log.write("causal_limits", {{"bic", found.bic},
                              {"edges", found.variances.edges},
                              {"reversible", reversible},
                              {"varsortability", found.variances.varsortability},
                              {"sorted_by_variance", found.variances.shared},
                              {"dependent", dependent},
                              {"tests", found.tests},
                              {"findings", found.findings}});
  if (o.json) return;
  for (const std::string& finding : found.findings) print(printable(finding) + "\n");
}

}  // namespace

std::optional<EdgeConfidence> remove_rare_edges(const FitOptions& o, const CausalFitOptions& fitted,
                                                const CausalTable& table, CausalFit& fit) {
  if (!o.min_frequency || fit.interrupted) return {};
  try {
    EdgeConfidence found = sample_edges(o, fitted, table, fit);
    fit.adjacency = found.stable(*o.min_frequency);
    return found;
  } catch (const Interrupted&) {
    fit.interrupted = true;
    return {};
  }
}

void measure_certainty(const FitOptions& o, const CausalFitOptions& fitted,
                       const CausalTable& table, const CausalFit& fit,
                       const std::optional<EdgeConfidence>& known, RunLog& log) {
  if (o.confidence > 0) {
    report_confidence(o, known ? *known : sample_edges(o, fitted, table, fit), table, log);
  }
  if (o.limits) measure_limits(o, table, fit, log);
}

}  // namespace nsimplex::cli
