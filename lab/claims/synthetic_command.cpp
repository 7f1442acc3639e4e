// The command `lab synthetic`: whether embeddings of simulated tables show the graph.

#include "lab/claims/synthetic_command.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "causal/option_names.h"
#include "causal/tensors.h"
#include "cli/causal_embed_command.h"
#include "cli/causal_table.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/claims/robustness.h"
#include "lab/experiments.h"
#include "support/error.h"
#include "support/random.h"
#include "support/stopwatch.h"
#include "train/scores.h"

namespace nsimplex::training {
namespace {

PlacedGraph place(const at::Tensor& graph, const at::Tensor& truth,
                  const CausalEmbeddingOptions& options, bool learned) {
  CausalEmbedding made = causal_embed(graph, options);
  const causal::Matrix tangents = causal::view_matrix(made.tangents);
  const causal::Placement by_truth = causal::placement_of(tangents, causal::view_matrix(truth));
  const causal::Placement by_own = causal::placement_of(tangents, causal::view_matrix(graph));
  return {.learned = learned,
          .hops = made.hops,
          .generality = options.generality,
          .relative = options.relative,
          .edge_area = by_truth.edge_area,
          .generality_correlation = by_truth.generality_correlation,
          .own_edge_area = by_own.edge_area,
          .own_generality_correlation = by_own.generality_correlation,
          .mean_radius = tangents.rowwise().norm().mean(),
          .embedding = std::move(made)};
}

}  // namespace

PlacementTrial run_placement(const PlacementOptions& options, const std::function<void()>& placed) {
  const CausalSimulation simulated = simulate_causal(options.simulation);
  PlacementTrial trial;
  trial.truth = simulated.weights.ne(0).to(at::kDouble);
  trial.fit = causal_fit(simulated.table, options.structure);
  trial.metrics = causal_metrics(trial.fit.adjacency, trial.truth);
  for (const bool learned : {false, true}) {
    const at::Tensor& graph = learned ? trial.fit.adjacency : trial.truth;
    const auto add = [&](int64_t hops, double generality, bool relative) {
      CausalEmbeddingOptions embedding = options.embedding;
      embedding.hops = hops;
      embedding.generality = generality;
      embedding.relative = embedding.balanced = relative;
      trial.placed.push_back(place(graph, trial.truth, embedding, learned));
      if (placed) placed();
    };
    for (const int64_t hops : options.hops) {
      for (const double generality : options.generalities) add(hops, generality, true);
    }
    add(kPrintedHops, kPrintedGenerality, false);
  }
  return trial;
}

}  // namespace nsimplex::training

namespace nsimplex::cli {
namespace {

using training::PlacedGraph;
using training::PlacementTrial;

// Values that points must reach to show the graph.
constexpr double kEdgeArea = 0.8, kGeneralityCorrelation = 0.4;

struct SyntheticOptions : CommonOptions {
  training::PlacementOptions study{
      .simulation = {.graph = CausalGraph::scale_free, .observations = 5000},
      .structure = {},
      .embedding = {},
      .hops = {1, 2},
      .generalities = {0, 0.1, 0.3, 0.5, 1, 3, 10}};
  int64_t graphs = 10;
  std::string mechanism = "mlp", estimator = "order";
  bool linear = false;
  std::vector<int64_t> hops{1, 2};
  double generality = CausalEmbeddingOptions{}.generality;
};

// Embeddings of one kind over all graphs.
struct SyntheticArm {
  const PlacedGraph* first;
  std::vector<double> areas, correlations, own_areas, own_correlations, radii;
};

Json spread_of(Json line, const std::string& figure, const std::vector<double>& values) {
  const training::Spread spread = training::spread(values);
  line[figure] = spread.mean;
  line[figure + "_deviation"] = spread.deviation;
  return line;
}

class Synthetic {
 public:
  explicit Synthetic(const SyntheticOptions& options) : options_(options), log_(options) {}

  int run() {
    const training::PlacementOptions& study = options_.study;
    const int64_t embeddings = 2 * (std::ssize(study.hops) * std::ssize(study.generalities) + 1);
    ProgressBar bar("synthetic", options_.graphs * embeddings, options_.json);
    try {
      int64_t done = 0;
      for (int64_t graph = 0; graph < options_.graphs; ++graph) {
        run_graph(options_.seed + static_cast<uint64_t>(graph), [&] { bar.update(++done); });
      }
    } catch (const Interrupted&) {
      bar.finish();
      finish();
      throw;
    }
    bar.finish();
    finish();
    return 0;
  }

 private:
  void run_graph(uint64_t seed, const std::function<void()>& placed) {
    const Stopwatch watch;
    training::PlacementOptions study = options_.study;
    // A separate seed. Otherwise random features of a fit would use the numbers that made the
    // table.
    const auto own_seed = [&](uint64_t which) {
      return static_cast<int64_t>(random_bits(seed, which) >> 1);
    };
    study.simulation.seed = static_cast<int64_t>(seed);
    study.structure.seed = own_seed(1);
    study.embedding.seed = own_seed(2);
    study.structure.checkpoint = [] { interrupt::check(); };
    study.embedding.checkpoint = [](int64_t) { interrupt::check(); };
    trials_.push_back(training::run_placement(study, placed));
    const PlacementTrial& trial = trials_.back();
    log_.write("structure", {{"task", "synthetic"},
                             {"seed", seed},
                             {"edges", trial.metrics.true_edges},
                             {"learned_edges", trial.metrics.edges},
                             {"shd", trial.metrics.shd},
                             {"f1", trial.metrics.f1},
                             {"seconds", watch.seconds()}});
    for (const PlacedGraph& each : trial.placed) {
      log_.write("placement", {{"task", "synthetic"},
                               {"seed", seed},
                               {"graph", each.learned ? "learned" : "true"},
                               {"hops", each.hops},
                               {"generality", each.generality},
                               {"relative", each.relative},
                               {"edge_area", each.edge_area},
                               {"generality_correlation", each.generality_correlation},
                               {"own_edge_area", each.own_edge_area},
                               {"own_generality_correlation", each.own_generality_correlation},
                               {"mean_radius", each.mean_radius},
                               {"loss", each.embedding.loss}});
      const bool first = seed == options_.seed && each.hops == options_.hops.front();
      if (first && each.learned && judged(each)) draw(trial, each);
    }
  }

  bool judged(const PlacedGraph& each) const {
    return each.relative && each.generality == options_.generality &&
           std::ranges::find(options_.hops, each.hops) != options_.hops.end();
  }

  // The picture of Fig. 3: the learned graph of the first table.
  void draw(const PlacementTrial& trial, const PlacedGraph& placed) const {
    if (options_.out.empty()) return;
    write_ball(options_.out, placed.embedding, column_names(trial.truth.size(0)),
               trial.fit.adjacency);
  }

  std::vector<SyntheticArm> arms() const {
    std::vector<SyntheticArm> arms;
    if (trials_.empty()) return arms;
    for (size_t place = 0; place < trials_.front().placed.size(); ++place) {
      SyntheticArm arm{.first = &trials_.front().placed[place]};
      for (const PlacementTrial& trial : trials_) {
        const PlacedGraph& each = trial.placed[place];
        arm.areas.push_back(each.edge_area);
        arm.correlations.push_back(each.generality_correlation);
        arm.own_areas.push_back(each.own_edge_area);
        arm.own_correlations.push_back(each.own_generality_correlation);
        arm.radii.push_back(each.mean_radius);
      }
      arms.push_back(std::move(arm));
    }
    return arms;
  }

  void finish() {
    if (trials_.empty()) return;
    Table table({"graph", "hops", "lambda_g", "edges nearer", "generality", "by its own graph", "",
                 "radius", "passes"});
    for (const SyntheticArm& arm : arms()) {
      const PlacedGraph& first = *arm.first;
      Json line{{"task", "synthetic"},
                {"graphs", trials_.size()},
                {"graph", first.learned ? "learned" : "true"},
                {"hops", first.hops},
                {"generality", first.generality},
                {"relative", first.relative}};
      line = spread_of(line, "edge_area", arm.areas);
      line = spread_of(line, "generality_correlation", arm.correlations);
      line = spread_of(line, "own_edge_area", arm.own_areas);
      line = spread_of(line, "own_generality_correlation", arm.own_correlations);
      line = spread_of(line, "mean_radius", arm.radii);
      const double area = line["edge_area"], correlation = line["generality_correlation"];
      const bool passes = area >= kEdgeArea && correlation >= kGeneralityCorrelation;
      line["passes"] = passes;
      line["judged"] = judged(first);
      log_.write("placement_mean", line);
      table.add({first.learned ? "learned" : "true", fmt::format("{}", first.hops),
                 fmt::format("{}{}", first.generality,
                             first.relative ? (judged(first) ? " *" : "") : " as printed"),
                 cell(arm.areas), cell(arm.correlations), cell(arm.own_areas),
                 cell(arm.own_correlations),
                 fmt::format("{:.2f}", training::spread(arm.radii).mean), passes ? "yes" : "NO"});
    }
    if (options_.json) return;
    std::vector<double> distances;
    for (const PlacementTrial& trial : trials_) {
      distances.push_back(static_cast<double>(trial.metrics.shd));
    }
    print(table.text());
    print(
        fmt::format("\n{} graphs; learned with SHD {:.2f} on average. Edges nearer: probability "
                    "that a pair with an edge is nearer than one\nwithout (at least {}); "
                    "generality: Spearman's correlation of radius and -descendants (at least {}).\n"
                    "* used for the verdict; as printed: {} pi and weights as given.\n",
                    trials_.size(), training::spread(distances).mean, kEdgeArea,
                    kGeneralityCorrelation, training::kPrintedGenerality));
  }

  static std::string cell(const std::vector<double>& values) {
    const training::Spread spread = training::spread(values);
    return fmt::format("{:.3f} ± {:.3f}", spread.mean, spread.deviation);
  }

  const SyntheticOptions& options_;
  RunLog log_;
  std::vector<PlacementTrial> trials_;
};

// The value for the verdict is always tried.
template <class Number>
void include(std::vector<Number>& tried, Number judged) {
  if (std::ranges::find(tried, judged) == tried.end()) tried.push_back(judged);
  std::ranges::sort(tried);
}

int run_synthetic(const SyntheticOptions& given) {
  SyntheticOptions options = given;
  training::PlacementOptions& study = options.study;
  study.simulation.mechanism = parse_name<CausalMechanism>("--mechanism", options.mechanism);
  study.structure.estimator = parse_name<StructureEstimator>("--estimator", options.estimator);
  study.structure.nonlinear =
      !options.linear && (study.structure.estimator == StructureEstimator::order ||
                          study.structure.estimator == StructureEstimator::logdet);
  for (const int64_t hops : options.hops) include(study.hops, hops);
  include(study.generalities, options.generality);
  try {
    return Synthetic(options).run();
  } catch (const c10::ValueError& error) {
    throw InputError(error.what_without_backtrace());
  }
}

}  // namespace

void add_causal_synthetic(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SyntheticOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "synthetic",
       .summary = "Test whether the ball shows the graph that generated the data (Fig. 3)",
       .examples = "nsimplex lab synthetic --threads 1 --out runs/synthetic\n"
                   "nsimplex lab synthetic --seeds 3 --all-hops 1 --generalities 1,3 --json",
       .files = {"embedding.safetensors", "ball.csv", "edges.tsv"}},
      options, run_synthetic);
  training::PlacementOptions& study = options->study;
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  const auto data = option_adder(command, "Data");
  data("--seeds", options->graphs,
       "Number of graphs, with one table each; seeds count up from --seed")
      ->check(positive);
  data("--nodes", study.simulation.nodes, "Nodes of a Barabasi-Albert graph")->check(positive);
  data("--degree", study.simulation.degree, "Links per new node")->check(positive);
  data("--rows", study.simulation.observations, "Rows of a table")->check(positive);
  data("--mechanism", options->mechanism, "Mechanism of an effect: linear, mlp or gp")
      ->check(one_of(names_of<CausalMechanism>()));
  const auto fit = option_adder(command, "Graph");
  fit("--estimator", options->estimator,
      "Estimator of the graph: order, logdet, paper, paper-lowrank, lowrank, notears, spectral")
      ->check(one_of(names_of<StructureEstimator>()));
  command.add_flag("--linear", options->linear, "Use linear regressions in order and logdet")
      ->group("Graph");
  const auto embed = option_adder(command, "Embedding");
  embed("--dimension", study.embedding.dimension, "Number of coordinates of a point")
      ->check(within(int64_t{2}, int64_t{1} << 16));
  embed("--steps", study.embedding.steps, "Steps over all nodes")->check(positive);
  embed("--hops", options->hops, "Values of k for the verdict: links between nodes that attract")
      ->delimiter(',')
      ->check(positive);
  embed("--all-hops", study.hops, "All values of k to try")->delimiter(',')->check(positive);
  embed("--generality", options->generality, "Value of lambda_g for the verdict")
      ->check(at_least_zero());
  embed("--generalities", study.generalities, "All values of lambda_g to try")
      ->delimiter(',')
      ->check(at_least_zero());
}

}  // namespace nsimplex::cli
