#include "cli/causal_fit_command.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/causal.h>

#include <array>
#include <cmath>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/option_names.h"
#include "causal/structure/cape_structure.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/parent_search.h"
#include "causal/structure/prepare.h"
#include "causal/tensors.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "io/output_file.h"
#include "support/error.h"
#include "support/log.h"
#include "support/printable.h"

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

namespace {

using causal::Matrix;
using causal::TableView;

constexpr double kUsualThreshold = 0.3;  // in most published results

struct FitOptions : CommonOptions {
  CausalTableOptions table;
  ConstraintFlags constraints;
  std::string truth, estimator = "order";
  bool nonlinear = false, standardise = false, sample = false;
  std::optional<double> threshold, sparsity;
  int64_t rank = 40;
};

// How often a fit calls its checkpoint, if that is known: `paper` and `paper-lowrank` go through at
// most this number of batches. The others stop at convergence.
int64_t steps_of(const CausalFitOptions& options, int64_t rows) {
  const bool in_batches = options.estimator == StructureEstimator::paper ||
                          options.estimator == StructureEstimator::paper_lowrank;
  if (!in_batches) return 0;
  return causal::kPaperLoops * causal::kPaperEpochs * causal::paper_batches(rows);
}

CausalFit fit(const FitOptions& o, const CausalTable& table) {
  CausalFitOptions options;
  options.estimator = parse_name<StructureEstimator>("--estimator", o.estimator);
  options.nonlinear = o.nonlinear;
  options.standardise = o.standardise;
  options.threshold = o.threshold;
  options.sparsity = o.sparsity;
  options.rank = o.rank;
  options.sample = o.sample;
  options.seed = static_cast<int64_t>(o.seed);
  options.constraints = constraints_of(o.constraints, table.names);
  ProgressBar bar("fit", steps_of(options, table.observations.values.rows()), o.json);
  int64_t done = 0;
  options.checkpoint = [&] {
    interrupt::check();
    bar.update(done++);
  };
  try {
    return causal_fit(causal::to_tensor(table.observations.values), options);
  } catch (const c10::ValueError& error) {
    throw InputError(error.what_without_backtrace());
  }
}

std::vector<std::string> edge_names(const at::Tensor& edges,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (int64_t edge = 0; edge < edges.size(0); ++edge) {
    all.push_back(fmt::format("{} -> {}", names[edges[edge][0].item<int64_t>()],
                              names[edges[edge][1].item<int64_t>()]));
  }
  return all;
}

// The result and the baselines, as JSON and as text.
class FitReport {
 public:
  FitReport(const FitOptions& options, const CausalTable& table, const CausalFit& fit,
            std::optional<Matrix> truth, Json read)
      : options_(options),
        table_(table),
        fit_(fit),
        prepared_(causal::prepared_table(view(table.observations.values), options.standardise)),
        graph_(causal::view_matrix(fit.adjacency)),
        truth_(std::move(truth)),
        read_(std::move(read)) {
    answers_.push_back(
        score_graph(options.estimator, graph_, causal::view_matrix(fit.scores), truth_));
    for (const causal::Baseline& each : causal::baselines(view(prepared_))) {
      answers_.push_back(
          score_graph(each.name, each.structure.weights, each.structure.scores, truth_));
    }
    // Relative to the truth, or to the result if there is none.
    const Matrix& reference = truth_ ? *truth_ : graph_;
    varsortability_ = causal::sortability(causal::column_variances(view(prepared_)), reference);
    r2_sortability_ = causal::sortability(causal::column_r2(view(prepared_)), reference);
  }

  Json json() const {
    Json line{{"task", "fit"},
              {"table", options_.table.path},
              {"estimator", options_.estimator},
              {"model", fit_.model},
              {"nonlinear", options_.nonlinear},
              {"standardise", options_.standardise},
              {"seed", options_.seed},
              {"read", read_},
              {"observations", table_.observations.values.rows()},
              {"features", graph_.rows()},
              {"few_rows", table_.observations.values.rows() < graph_.rows()},
              {"edges", answers_.front().edges},
              {"removed", edge_names(fit_.removed, table_.names)},
              {"dropped", table_.observations.dropped},
              {"dropped_rows", table_.observations.dropped_rows},
              {"filled", table_.observations.filled}};
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

  std::string text() const {
    std::string text = fmt::format("{} rows, {} columns{}; {} ({}) took {:.3g} s\n",
                                   table_.observations.values.rows(), graph_.rows(),
                                   options_.standardise ? ", standardised" : ", not standardised",
                                   options_.estimator, fit_.model, fit_.seconds);
    for (const std::string& each : table_.observations.dropped)
      text += fmt::format("left out {}\n", printable(each));
    if (const int64_t rows = table_.observations.dropped_rows; rows > 0) {
      text += fmt::format("left out {} rows with missing values\n", rows);
    }
    if (const int64_t filled = table_.observations.filled; filled > 0) {
      text += fmt::format("{} missing values replaced by means\n", filled);
    }
    for (const std::string& each : edge_names(fit_.removed, table_.names)) {
      text += fmt::format("removed {}: it closed a cycle\n", printable(each));
    }
    text += table_of(answers_, truth_.has_value());
    text += fmt::format(
        "for the {} graph: varsortability {:.3f}, R2-sortability {:.3f} (0.5: scales tell "
        "nothing)\n",
        truth_ ? "true" : "learned", varsortability_, r2_sortability_);
    return text;
  }

  const Matrix& graph() const { return graph_; }
  const std::optional<Matrix>& truth() const { return truth_; }

 private:
  static TableView view(const Matrix& matrix) {
    return {matrix.data(), matrix.rows(), matrix.cols()};
  }

  const FitOptions& options_;
  const CausalTable& table_;
  const CausalFit& fit_;
  Matrix prepared_, graph_;
  std::optional<Matrix> truth_;
  Json read_;
  std::vector<CausalScores> answers_;  // the estimator's first
  double varsortability_ = 0, r2_sortability_ = 0;
};

int run_fit(const FitOptions& o) {
  const CausalTable table = read_causal_table(o.table);
  Json read{{"table", to_json(table.reading)}};
  std::optional<Matrix> truth;  // reports a fault of the truth before a long fit
  if (!o.truth.empty()) truth = table.graph(o.truth, read["truth"]);
  const Matrix& values = table.observations.values;
  const std::string warning = causal::few_rows_warning(values.rows(), values.cols());
  if (!warning.empty()) log_warning_once("few rows", warning);
  const CausalFit result = fit(o, table);
  const FitReport report(o, table, result, std::move(truth), std::move(read));
  RunLog log(o);
  log.write("fit", report.json());
  if (!o.json) print(report.text());
  if (o.out.empty()) return 0;
  write_graph(o.out, "graph", {table.names, report.graph()});
  io::write_text(o.out + "/scores.csv",
                 causal::table_csv(table.names, causal::view_matrix(result.scores)));
  if (report.truth()) write_graph(o.out, "truth", {table.names, *report.truth()});
  if (!o.json) print(fmt::format("graph: {}/graph.csv, .tsv, .graphml, .dot\n", o.out));
  return 0;
}

}  // namespace

void add_causal_fit(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<FitOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "fit",
       .summary = "Learn a directed acyclic causal graph from a table of observations",
       .examples = "nsimplex causal fit table.csv --out runs/graph\n"
                   "nsimplex causal fit table.csv --truth truth.csv --standardise --json\n"
                   "nsimplex causal fit cells.csv --missing means --drop --forbid Mek:Raf",
       .files = {"graph.csv", "graph.tsv", "graph.graphml", "graph.dot", "scores.csv", "truth.csv",
                 "truth.tsv", "truth.graphml", "truth.dot"}},
      options, run_fit);
  add_table_options(command, options->table);
  const auto add = option_adder(command, "Estimator");
  const std::vector<std::string> names = names_of<StructureEstimator>();
  add("--estimator", options->estimator, fmt::format("Estimator: {}", fmt::join(names, ", ")))
      ->check(CLI::IsMember(names));
  const auto add_flag = [&](const char* name, bool& flag, const char* text) {
    command.add_flag(name, flag, text)->group("Estimator");
  };
  add_flag("--nonlinear", options->nonlinear, "Use nonlinear regressions (order, logdet)");
  add_flag("--standardise", options->standardise,
           "Divide columns by their standard deviation first, so that units do not matter");
  add_flag("--sample", options->sample,
           "For paper and paper-lowrank: sample latent variables instead of using their means");
  command
      .add_option("--threshold", options->threshold,
                  "Smallest |weight| of an edge; default: 0.2, none for order")
      ->group("Estimator");
  command
      .add_option("--sparsity", options->sparsity,
                  "Weight of the l1 norm; default: set by the estimator")
      ->group("Estimator");
  add("--rank", options->rank, "Columns of the factors of lowrank and paper-lowrank");
  add_constraint_options(command, options->constraints);
  command
      .add_option("--truth", options->truth,
                  "Known graph to compare with: adjacency matrix (csv, tsv, npy) or edge list")
      ->type_name("FILE");
}

}  // namespace nsimplex::cli
