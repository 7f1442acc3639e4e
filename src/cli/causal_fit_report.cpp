// Reports what `causal fit` found, with baselines and metrics against a known graph.

#include "cli/causal_fit_report.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <ranges>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/option_names.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/prepare.h"
#include "causal/tensors.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

using causal::Matrix;
using causal::TableView;

constexpr std::array kShown{"shd", "sid", "f1", "precision", "recall", "auroc", "auprc"};

Json distance_of(const Matrix& graph, const Matrix& truth) {
  const std::optional<int64_t> distance = causal::intervention_distance(graph, truth);
  return distance ? Json(*distance) : Json();
}

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_integer()) return fmt::format("{}", value.get<int64_t>());
  const double number = value.get<double>();
  return std::isnan(number) ? "-" : fmt::format("{:.3f}", number);
}

// `graph` is the result; `scores` rank all pairs.
CausalScores score_graph(const std::string& name, const Matrix& graph, const Matrix& scores,
                         const std::optional<Matrix>& truth) {
  CausalScores result{name, (graph.array() != 0.0).count(), Json::object()};
  Json& figures = result.figures;
  if (!truth) {
    for (const char* figure : kShown) figures[figure] = nullptr;
    return result;
  }
  const causal::EdgeErrors errors = causal::edge_errors(graph, *truth);
  const causal::EdgeRanking ranking = causal::edge_ranking(scores, *truth);
  figures = {{"shd", errors.shd},
             {"sid", distance_of(graph, *truth)},
             {"f1", errors.f1},
             {"auroc", ranking.auroc},
             {"auprc", ranking.auprc},
             {"precision", errors.precision},
             {"recall", errors.recall},
             {"tpr", errors.recall},
             {"fdr", errors.false_discovery_rate},
             {"reversed", errors.reversed},
             {"extra", errors.extra},
             {"missing", errors.missing}};
  return result;
}

// shd, f1 and sid of weights that are cut at a threshold and made acyclic.
Json score_at_threshold(const Matrix& weights, double threshold, const Matrix& truth) {
  Matrix graph = (weights.array().abs() >= threshold).select(weights, 0.0);
  const causal::AllowedEdges all({}, graph.rows());
  causal::repair_cycles(graph, all);
  const causal::EdgeErrors errors = causal::edge_errors(graph, truth);
  return {{"threshold", threshold},
          {"shd", errors.shd},
          {"f1", errors.f1},
          {"sid", distance_of(graph, truth)}};
}

// A table with one graph per row. Without a truth it shows only their edges.
std::string scores_table(const std::vector<CausalScores>& all, bool truth) {
  std::vector<std::string> header{"graph", "edges"};
  if (truth) header.insert(header.end(), kShown.begin(), kShown.end());
  Table table(header);
  for (const CausalScores& each : all) {
    std::vector<std::string> row{each.name, fmt::format("{}", each.edges)};
    for (const char* figure : kShown) {
      if (truth) row.push_back(cell(each.figures[figure]));
    }
    table.add(row);
  }
  return table.text();
}

constexpr double kUsualThreshold = 0.3;  // in most published results

TableView view(const Matrix& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }

int64_t gaps_in(const Matrix& table) { return table.array().isNaN().count(); }

// The table with the means of its columns in the gaps.
Matrix filled(Matrix table) {
  for (int64_t column = 0; column < table.cols(); ++column) {
    const auto values = table.col(column).array();
    const int64_t gaps = values.isNaN().count();
    if (gaps == 0) continue;
    const double mean =
        values.isNaN().select(0.0, values).sum() / static_cast<double>(table.rows() - gaps);
    for (double& value : table.col(column)) value = std::isnan(value) ? mean : value;
  }
  return table;
}

}  // namespace

std::vector<std::string> edge_names(const at::Tensor& edges,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (int64_t edge = 0; edge < edges.size(0); ++edge) {
    all.push_back(fmt::format("{} -> {}", names[edges[edge][0].item<int64_t>()],
                              names[edges[edge][1].item<int64_t>()]));
  }
  return all;
}

std::string more_edges_text(int64_t edges, const std::string& folder, const char* file) {
  const int64_t more = edges - kShownEdges;
  if (more <= 0) return "";
  return folder.empty() ? fmt::format("{} more edges are not shown; --out writes all\n", more)
                        : fmt::format("{} more edges are in {}\n", more, file);
}

FitReport::FitReport(const FitOptions& options, const CausalTable& table, const CausalFit& fit,
                     std::optional<Matrix> truth, Json read)
    : options_(options),
      table_(table),
      fit_(fit),
      graph_(causal::view_matrix(fit.adjacency)),
      truth_(std::move(truth)),
      read_(std::move(read)) {
  answers_.push_back(score_graph(std::string(name_of(options.fit.estimator)), graph_,
                                 causal::view_matrix(fit.scores), truth_));
  const Matrix whole = filled(table.observations.values);
  const Matrix prepared = causal::prepared_table(view(whole), options.fit.standardise);
  if (!fit.interrupted) {
    for (const causal::Baseline& each : causal::baselines(view(prepared))) {
      answers_.push_back(
          score_graph(each.name, each.structure.weights, each.structure.scores, truth_));
    }
  }
  // Relative to the truth, or to the result if there is none.
  const Matrix& reference = truth_ ? *truth_ : graph_;
  varsortability_ = causal::sortability(causal::column_variances(view(prepared)), reference);
  r2_sortability_ = causal::sortability(causal::column_r2(view(prepared)), reference);
}

Json FitReport::json() const {
  Json line{{"task", "fit"},
            {"table", options_.table.path},
            {"estimator", name_of(options_.fit.estimator)},
            {"model", fit_.model},
            {"interrupted", fit_.interrupted},
            {"nonlinear", options_.fit.nonlinear},
            {"standardise", options_.fit.standardise},
            {"seed", options_.seed},
            {"read", read_},
            {"observations", table_.observations.values.rows()},
            {"features", graph_.rows()},
            {"few_rows", table_.observations.values.rows() < graph_.rows()},
            {"edges", answers_.front().edges},
            {"min_frequency", options_.min_frequency ? Json(*options_.min_frequency) : Json()},
            {"removed", edge_names(fit_.removed, table_.names)},
            {"dropped", table_.observations.dropped},
            {"dropped_rows", table_.observations.dropped_rows},
            {"filled", table_.observations.filled},
            {"gaps", gaps_in(table_.observations.values)},
            {"screened_out", table_.screened_out},
            {"columns", nullptr}};
  if (table_.screened_out > 0) line["columns"] = table_.observations.columns;
  line.update(to_json(table_.rows, table_.names));
  line["soft"] = options_.table.rows.soft;
  line.update(answers_.front().figures);
  if (truth_) {
    const TableView weights = causal::view_matrix(fit_.weights);
    line["true_edges"] = (truth_->array() != 0.0).count();
    line["at_0.3"] = score_at_threshold(weights, kUsualThreshold, *truth_);
    line["at_best"] =
        score_at_threshold(weights, causal::best_threshold(weights, *truth_).threshold, *truth_);
  }
  line["varsortability"] = varsortability_;
  line["r2_sortability"] = r2_sortability_;
  line["sortability_of"] = truth_ ? "truth" : "fit";
  for (size_t at = 1; at < answers_.size(); ++at) {
    Json& baseline = line["baselines"][answers_[at].name];
    baseline = {{"edges", answers_[at].edges}};
    baseline.update(answers_[at].figures);
  }
  line["seconds"] = fit_.seconds;
  return line;
}

std::vector<FoundEdge> FitReport::edges() const {
  const auto scores = fit_.scores.accessor<double, 2>();
  std::vector<FoundEdge> found;
  for (int64_t i = 0; i < graph_.rows(); ++i) {
    for (int64_t j = 0; j < graph_.cols(); ++j) {
      if (graph_(i, j) != 0) found.push_back({i, j, graph_(i, j), scores[i][j]});
    }
  }
  std::ranges::stable_sort(found, std::greater{}, &FoundEdge::score);
  return found;
}

std::string FitReport::edges_text() const {
  const std::vector<FoundEdge> all = edges();
  if (all.empty()) return "no edges\n";
  Table table({"edge", "weight", "score"});
  for (const FoundEdge& edge : all | std::views::take(kShownEdges)) {
    table.add({fmt::format("{} -> {}", printable(table_.names[edge.cause]),
                           printable(table_.names[edge.effect])),
               fmt::format("{:.3f}", edge.weight), fmt::format("{:.4g}", edge.score)});
  }
  return table.text() + more_edges_text(std::ssize(all), options_.out, "graph.tsv");
}

std::string FitReport::text() const {
  std::string text = fmt::format("{} rows, {} columns{}; {} ({}) took {:.3g} s\n",
                                 table_.observations.values.rows(), graph_.rows(),
                                 options_.fit.standardise ? ", standardised" : ", not standardised",
                                 name_of(options_.fit.estimator), fit_.model, fit_.seconds);
  for (const std::string& each : table_.observations.dropped)
    text += fmt::format("left out {}\n", printable(each));
  if (table_.screened_out > 0) {
    text += fmt::format("screened {} columns by {}, kept {}\n", table_.screened_out + graph_.rows(),
                        name_of(options_.table.screen_by), graph_.rows());
  }
  if (const int64_t rows = table_.observations.dropped_rows; rows > 0) {
    text += fmt::format("left out {} rows with missing values\n", rows);
  }
  if (const int64_t filled = table_.observations.filled; filled > 0) {
    text += fmt::format("{} missing values replaced by means\n", filled);
  }
  if (const int64_t gaps = gaps_in(table_.observations.values); gaps > 0) {
    text += fmt::format("{} missing values stayed missing\n", gaps);
  }
  text += rows_text(table_.rows, options_.table.rows.soft, table_.names);
  if (fit_.interrupted) {
    text += "interrupted: the best graph so far, without baselines for comparison\n";
  }
  for (const std::string& each : edge_names(fit_.removed, table_.names)) {
    text += fmt::format("removed {}: it closed a cycle\n", printable(each));
  }
  text += scores_table(answers_, truth_.has_value());
  text += fmt::format(
      "for the {} graph: varsortability {:.3f}, R2-sortability {:.3f} (0.5: scales tell "
      "nothing)\n",
      truth_ ? "true" : "learned", varsortability_, r2_sortability_);
  return text;
}

}  // namespace nsimplex::cli
