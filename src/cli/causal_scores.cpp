#include "cli/causal_scores.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "causal/graphs/metrics.h"
#include "causal/graphs/repair.h"
#include "cli/output.h"

namespace nsimplex::cli {
namespace {

using causal::Matrix;

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

}  // namespace

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

std::string table_of(const std::vector<CausalScores>& all, bool truth) {
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

}  // namespace nsimplex::cli
