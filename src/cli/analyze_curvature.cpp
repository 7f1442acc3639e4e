// `nsimplex analyze curvature`: compares discrete Ricci curvatures of graphs and their line graphs.

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "data/simple_graph.h"
#include "graph/curvature.h"
#include "io/safetensors.h"
#include "kernels/common/rounding.h"
#include "support/error.h"
#include "support/parallel.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;
using graph::CurvatureComparison;
using graph::CurvatureSummary;

struct CurvatureOptions : CommonOptions {
  std::string file;
  TextFlags text;
};

constexpr int64_t kGraphsOfATask = 256;
// The paper's claims: means rise in all molecules, minima in at least 95 %.
constexpr double kMeanShare = 1.0, kMinimumShare = 0.95;
// Each mean is a sum of a few fractions, so two equal means differ by less than this.
constexpr double kCurvatureRounding = 1e-9;

std::vector<CurvatureComparison> compare_all(const std::vector<io::SimpleGraph>& graphs,
                                             bool quiet) {
  std::vector<CurvatureComparison> results(graphs.size());
  const int64_t count = std::ssize(graphs);
  ProgressBar bar("curvature", count, quiet);
  std::mutex mutex;
  int64_t done = 0;
  parallel_tasks(ceil_div(count, kGraphsOfATask), [&](int64_t task, int) {
    const int64_t first = task * kGraphsOfATask, last = std::min(first + kGraphsOfATask, count);
    for (int64_t g = first; g < last; ++g) {
      interrupt::check();
      const graph::Rows edges{graphs[g].edges.data(), std::ssize(graphs[g].edges) / 2, 2};
      results[g] = graph::compare_with_line_graph(edges, graphs[g].nodes);
    }
    const std::lock_guard lock(mutex);
    bar.update(done += last - first);
  });
  return results;
}

// A mean over graphs.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return sum_ / static_cast<double>(count_); }  // NaN if empty

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// One metric of one curvature, for graphs and their line graphs.
struct Figure {
  std::string curvature, name;
  Statement rises, does_not_fall;
  Mean graph, line_graph;
};

Figure figure_of(const std::vector<CurvatureComparison>& results, graph::Curvature kind,
                 const std::string& name, double CurvatureSummary::* value, double share) {
  const auto place = static_cast<size_t>(kind);
  const std::string text = fmt::format("{} {} curvature", name, name_of(kind));
  Figure figure{std::string(name_of(kind)),
                name,
                Statement(text + ": line graph > graph", share),
                Statement(text + ": line graph >= graph", share),
                {},
                {}};
  for (const CurvatureComparison& result : results) {
    if (!result.line_graph[place]) continue;
    const double graph = *result.graph[place].*value, line = *result.line_graph[place].*value;
    figure.graph.add(graph);
    figure.line_graph.add(line);
    figure.rises.add(line - graph > kCurvatureRounding, line - graph);
    figure.does_not_fall.add(line - graph > -kCurvatureRounding, line - graph);
  }
  return figure;
}

std::vector<Figure> figures_of(const std::vector<CurvatureComparison>& results) {
  std::vector<Figure> figures;
  for (const graph::Curvature kind : graph::kCurvatures) {
    figures.push_back(figure_of(results, kind, "mean", &CurvatureSummary::mean, kMeanShare));
    figures.push_back(
        figure_of(results, kind, "minimum", &CurvatureSummary::minimum, kMinimumShare));
  }
  return figures;
}

Json summary_of(const std::vector<CurvatureComparison>& results) {
  int64_t nodes = 0, edges = 0, line_edges = 0, compared = 0;
  Mean density, tokens_ratio;
  for (const CurvatureComparison& result : results) {
    const auto n = static_cast<double>(result.nodes), m = static_cast<double>(result.edges);
    nodes += result.nodes;
    edges += result.edges;
    line_edges += result.line_edges;
    compared += result.line_edges > 0;
    if (result.nodes > 1) density.add(2 * m / (n * (n - 1)));
    if (result.nodes > 0) tokens_ratio.add(m / n);
  }
  return {{"graphs", results.size()},
          {"compared", compared},
          {"nodes", nodes},
          {"edges", edges},
          {"line_edges", line_edges},
          {"density", density.value()},
          {"tokens_ratio", tokens_ratio.value()}};
}

// For every graph and curvature: mean and minimum, of the graph and of its line graph.
void write_graphs(const std::string& path, const std::vector<CurvatureComparison>& results) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  io::Safetensors file;
  for (const graph::Curvature kind : graph::kCurvatures) {
    const auto place = static_cast<size_t>(kind);
    std::vector<double> values;
    values.reserve(4 * results.size());
    for (const CurvatureComparison& result : results) {
      for (const auto& each : {result.graph[place], result.line_graph[place]}) {
        values.push_back(each ? each->mean : kNone);
        values.push_back(each ? each->minimum : kNone);
      }
    }
    file.tensors.push_back(
        {std::string(name_of(kind)), at::tensor(values, at::kDouble).view({-1, 2, 2})});
  }
  io::write_safetensors(path, file);
}

// A metric without graphs is "-" in the table and null in JSON.
std::string shown(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string percent(const Statement& statement) { return shown(100 * statement.share(), 2); }

std::string text_of(const Json& summary, const std::vector<Figure>& figures) {
  std::string text = fmt::format(
      "{} graphs, {} with a line graph that has edges; density {}, {} line graph tokens per node\n",
      summary["graphs"].get<int64_t>(), summary["compared"].get<int64_t>(),
      shown(summary["density"].get<double>(), 4), shown(summary["tokens_ratio"].get<double>(), 4));
  if (summary["compared"].get<int64_t>() == 0) {
    return text +
           "there is nothing to compare: no graph has two edges that share a node, and curvatures "
           "belong to edges\n";
  }
  Table table({"curvature", "of edges", "graph", "line graph", "rises %", "does not fall %"});
  for (const Figure& each : figures) {
    table.add({each.curvature, each.name, shown(each.graph.value(), 4),
               shown(each.line_graph.value(), 4), percent(each.rises),
               percent(each.does_not_fall)});
  }
  return text + "\n" + table.text();
}

int run_curvature(const CurvatureOptions& options) {
  const auto [graphs, reading] = data::read_simple_graphs(options.file, text_options(options.text));
  say_reading(options.text, options.file,
              reading.text ? fmt::format("{} nodes and {} edges", graphs[0].nodes,
                                         graphs[0].edges.size() / 2)
                           : "",
              reading);
  RunLog log(options);
  const std::vector<CurvatureComparison> results = compare_all(graphs, options.json);
  Json summary = summary_of(results);
  summary["read"] = {{"graph", to_json(reading)}};
  const std::vector<Figure> figures = figures_of(results);
  log.write("curvature", summary);
  for (const Figure& figure : figures) {
    for (const Statement* statement : {&figure.rises, &figure.does_not_fall}) {
      Json line = to_json(*statement);
      line["share"] = statement->share();
      line["graph"] = figure.graph.value();
      line["line_graph"] = figure.line_graph.value();
      log.write("statement", line);
    }
  }
  if (!options.out.empty()) write_graphs(options.out + "/curvatures.safetensors", results);
  if (!options.json) print(text_of(summary, figures));
  return 0;
}

}  // namespace

void add_analyze_curvature(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<CurvatureOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "curvature",
       .summary = "Compare discrete Ricci curvatures of graphs with those of their line graphs",
       .examples = "nsimplex analyze curvature qm9.npz\n"
                   "nsimplex analyze curvature graphs.g6 --out runs/curvature --json",
       .acts = {.seed = false},
       .files = {"curvatures.safetensors"}},
      options, run_curvature);
  command
      .add_option(
          "FILE", options->file,
          "An npz that python -m nsimplex.molecules writes, a graph6 file or a list of edges")
      ->required()
      ->type_name("");
  add_text_options(command, options->text, /*table=*/false);
}

}  // namespace nsimplex::cli
